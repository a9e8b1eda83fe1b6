"""Adapters: one file per engine; helpers start with an underscore. See `orchestrator/schema/adapter.py`."""
