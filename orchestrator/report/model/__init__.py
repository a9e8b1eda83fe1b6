"""The typed view-model: all that the page shows, computed and worded; templates only place it."""
