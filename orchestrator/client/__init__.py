"""The streaming HTTP client for server engines: one clock for all of them."""
