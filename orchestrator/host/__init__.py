"""Facts of the machine and samplers of it: each gives data or says why there is none."""
