"""From an analysis to files: the page, Markdown, JSON, and a run's folder as a whole."""
