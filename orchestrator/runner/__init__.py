"""Runs blocks of cells as interleaved sessions, judges each, and appends what happened to the journal."""
