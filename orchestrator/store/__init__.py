"""The run directory: an append-only journal under a lock, and what it says as an index, a frame and outputs."""
