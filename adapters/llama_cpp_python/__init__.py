"""llama-cpp-python."""
