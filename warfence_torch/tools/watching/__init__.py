"""Watching a torch program: `with watch(shared={"table": table}) as log:`, then `log.check()` or `log.write(path)`."""

from warfence_torch.tools.watching.session import Watch, watch

__all__ = ["Watch", "watch"]
