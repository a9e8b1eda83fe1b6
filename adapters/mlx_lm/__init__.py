"""MLX-LM."""
