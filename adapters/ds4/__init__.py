"""ds4 (`ds4` and `ds4-server`)."""
