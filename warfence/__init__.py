"""warfence: a write-after-read fence for overlapped LLM servers, written once and implemented on two backends.

This package is the neutral half: policy, fence, scheduler, probe and laws. It imports neither PyTorch nor JAX;
`warfence_torch` and `warfence_jax` are the two implementations of its interface (`warfence.core.backend`).
"""

__version__ = "0.1.0"
