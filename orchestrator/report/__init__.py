"""From a run directory to the page people read; nothing here needs an engine."""
