"""What JAX can run on here, for `warfence doctor`."""

from __future__ import annotations

import jax


def devices() -> list[tuple[str, str]]:
    """(platform, name) of each device: the CPU client's, which is always there, then the default client's."""
    found = [("cpu", device.device_kind) for device in jax.devices("cpu")]
    return found + [(device.platform, device.device_kind) for device in jax.devices() if device.platform != "cpu"]
