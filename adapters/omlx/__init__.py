"""oMLX."""
