"""The JAX backend: chains of ahead-of-time executables, cut at the read boundary; waits are operands."""
