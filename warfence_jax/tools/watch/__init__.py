"""Host memory and donation under watch: `with watch_host() as w:`, calls through `w`, then `w.check()` or `w.write(path)`."""

from warfence_jax.tools.watch.watching import HostWatch, Refused, watch_host

__all__ = ["HostWatch", "Refused", "watch_host"]
