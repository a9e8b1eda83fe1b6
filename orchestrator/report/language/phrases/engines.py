"""Why an engine is not here and how to get it, as its adapter says."""

from __future__ import annotations

ENGINES: tuple[str, ...] = (
    "{what} cannot be imported ({last})",
    "{what} cannot import {module} ({last})",
    "pip install {packages}  (it compiles llama.cpp: a compiler, cmake, some minutes)",
    "{what} has no omlx ({last})",
    "{what} does not answer as {engine} does ({last})",
    "{what} does not answer as {engine} does",
    "{python} -m pip install {packages}  (on macOS {mac} instead of {linux})",
    "install llama.cpp (on a Mac: brew install llama.cpp; elsewhere: a release archive or a build) and name its "
    "llama-server as the engine's binary",
    "on a Mac with Apple silicon: brew install npanj/tap/slipstream, or clone github.com/npanj/slipstream and make, "
    "and name its launcher as the engine's binary",
    "git clone https://github.com/antirez/ds4, run make there, get a model with its download_model.sh, and name its "
    "ds4 (for mode server its ds4-server) as the engine's binary",
    "install oMLX (Mac: brew tap jundot/omlx && brew install omlx) and name its command as the engine's binary; "
    "elsewhere scripts/build-omlx-env.sh makes an interpreter with a fork for the CPU: name that as its python",
    "on a Mac with Apple silicon: python -m pip install {packages} in an environment of its own, and name its mtplx "
    "command as the engine's binary",
)
"""Why an engine is not here and how to get it, as its adapter says: the one thing of theirs that everybody reads."""
