"""The ops of programs as pure JAX functions. One file a room: the model, and each way to speculate."""

from warfence_jax.kernels.model import KERNELS, Attrs, Env, run_stage

__all__ = ["KERNELS", "Attrs", "Env", "run_stage"]
