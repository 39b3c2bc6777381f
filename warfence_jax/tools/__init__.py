"""Tools for JAX programs that are not ours: cutting, watching, replay, timing."""
