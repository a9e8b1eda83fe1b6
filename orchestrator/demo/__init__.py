"""Tiny models made for this project, so that every engine and every failure can be tried in seconds and offline.

`orchestrator.demo.export` writes them and finds them by name; `orchestrator.demo.corpus` is the text they know.
"""
