"""Adapters: a sub-package or a file per engine, `shared` for what several use; see `orchestrator/schema/adapter.py`."""
