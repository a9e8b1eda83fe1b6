"""Slipstream."""
