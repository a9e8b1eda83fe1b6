"""The synthetic runs, each built, analysed and rendered once."""

from __future__ import annotations

import pytest
import run_builder
from report_runs import Report, report_of


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_of(run_builder.full_run(tmp_path_factory.mktemp("runs") / "full"))


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_of(run_builder.empty_run(tmp_path_factory.mktemp("runs") / "empty"))


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_of(run_builder.bare_run(tmp_path_factory.mktemp("runs") / "bare"))


@pytest.fixture(scope="session")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_of(run_builder.interrupted_run(tmp_path_factory.mktemp("runs") / "interrupted"))
