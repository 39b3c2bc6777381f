"""How a command ends early with one line: `main` prints it and returns the exit status."""

from __future__ import annotations

from warfence.core.errors import WarfenceError

DONE, FAILED, BAD_INPUT = 0, 1, 2
INTERRUPTED = 130  # 128 + SIGINT, as shells count


class CheckFailed(WarfenceError):
    """A check that the command makes did not hold: exit 1."""


class Interrupted(WarfenceError):
    """Ctrl-C, with a sentence about what was kept. No KeyboardInterrupt: typer would swallow the sentence."""
