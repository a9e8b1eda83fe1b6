"""A llama GGUF as a folder that MLX-LM and Hugging Face's libraries load, and as an unquantised GGUF."""
