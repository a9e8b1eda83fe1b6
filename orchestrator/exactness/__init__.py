"""Whether speculation changed the answers: checks, and the four groups decided in one place; no I/O."""
