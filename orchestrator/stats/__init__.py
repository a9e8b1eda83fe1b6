"""What records say about speed, memory and acceptance: frames in, estimates and comparisons out, no I/O."""
