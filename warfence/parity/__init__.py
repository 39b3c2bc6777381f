"""The tools that prove it: probe, rig, laws, mutants, kernels in numpy, the strict backend, audit. No pytest inside."""
