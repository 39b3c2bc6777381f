"""How fast: one workload behind every strategy of fencing, interleaved in one run. `warfence bench` prints it."""
