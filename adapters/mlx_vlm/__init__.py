"""mlx-vlm."""
