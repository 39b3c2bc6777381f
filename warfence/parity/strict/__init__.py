"""The strict reference backend: numpy, virtual time, no threads, and no mercy. See `warfence.parity.strict.backend`."""
