"""Draws: plain numbers in, SVG out. Nothing here knows what is measured."""
