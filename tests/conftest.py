"""What every test needs: property tests that are the same each time, and a heap that is not searched again and again."""

from __future__ import annotations

import gc

from hypothesis import HealthCheck, settings

settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay to the end: the runner's collection before each exchange passes over them."""
    gc.collect()
    gc.freeze()
