"""How much memory MLX's device may use, asked by the probe that imports MLX."""

from __future__ import annotations

GPU_LIMIT_CODE = """
def gpu_limit():
    try:
        found = mx.device_info().get("max_recommended_working_set_size")
    except Exception:
        return None
    return found if isinstance(found, int) and found > 0 else None
"""
"""A function for an interpreter that has imported ``mlx.core as mx``: bytes by Metal, ``None`` on another device.

Source: mlx's Metal backend (``device_info``); on Linux (CPU, 0.32.4) the key is not there. Never a reason to fail.
"""
