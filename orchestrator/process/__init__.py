"""The only place that starts engines: spawning, stopping, probing, and talking to workers over stdio."""
