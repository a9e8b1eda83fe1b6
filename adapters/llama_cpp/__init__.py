"""llama.cpp: its server, and its library inside a worker of ours."""
