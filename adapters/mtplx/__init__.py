"""MTPLX."""
