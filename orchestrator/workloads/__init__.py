"""Prompts to measure with: the ones that come with the program, and the user's own files."""
