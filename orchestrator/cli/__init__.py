"""The command line, in workflow order: init, check, plan, run, rerun, status, report, show, engines.

Nothing heavy is imported here, so that ``specmatrix --help`` answers at once.
"""

from __future__ import annotations

import signal
import sys

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def main() -> None:
    """Entry point: user errors are printed without a traceback and end with status 2."""
    from orchestrator.cli.app import app  # noqa: PLC0415  (kept out of the import of the package)
    from orchestrator.schema.errors import SpecmatrixError  # noqa: PLC0415
    from orchestrator.workloads.errors import WorkloadError  # noqa: PLC0415

    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        app(standalone_mode=True)
    except (SpecmatrixError, WorkloadError) as err:
        sys.stderr.write(f"specmatrix: {err}\n")
        sys.exit(EXIT_USAGE)
    except KeyboardInterrupt:
        sys.stderr.write("specmatrix: interrupted\n")
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does: not an error of ours.
        sys.stderr.close()
        sys.exit(0)


def _as_interrupt(_signum: int, _frame: object) -> None:
    raise KeyboardInterrupt
