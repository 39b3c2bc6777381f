"""How long a write is waited for where only the runtime knows what blocks it, before it is said not to land."""

LANDING_FACTOR = 50  # landing times
LEAST_BOUND_S = 0.03  # a busy machine may leave a thread alone for this long


def bound_s(landing_s: float) -> float:
    """The bound in seconds, from the time in which a write landed in the same run with nothing in its way."""
    return max(LEAST_BOUND_S, LANDING_FACTOR * landing_s)
