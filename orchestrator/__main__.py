"""``python -m orchestrator`` is the command ``specmatrix``."""

from orchestrator.cli import main

main()
