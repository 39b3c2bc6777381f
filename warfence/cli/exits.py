"""How a command ends early with one line: `main` prints it and returns the exit status."""

from __future__ import annotations

import typer

from warfence.core.errors import InputError, StageError, WarfenceError
from warfence.host.files import OutputError

DONE, FAILED, BAD_INPUT = 0, 1, 2
INTERRUPTED = 130  # 128 + SIGINT, as shells count


class CheckFailed(WarfenceError):
    """A check that the command makes did not hold: exit 1."""


class Interrupted(WarfenceError):
    """Ctrl-C, with a sentence about what was kept. No KeyboardInterrupt: typer would swallow the sentence."""


def how_it_ends(ended: BaseException) -> tuple[int, str]:
    """Exit status and line of what ended a command. What is no end but a bug is raised again."""
    # Older typers use click's class, newer ones bring their own: only this way is it the same one.
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    if isinstance(ended, InputError):
        return BAD_INPUT, f"error: {ended}"
    if isinstance(ended, usage_error):
        command = getattr(getattr(ended, "ctx", None), "command_path", "warfence")
        return BAD_INPUT, f"error: {_sentence(ended)}; see {command} --help"
    if isinstance(ended, (CheckFailed, OutputError, StageError)):
        return FAILED, f"error: {ended}"
    if isinstance(ended, Interrupted):
        return INTERRUPTED, f"interrupted: {ended}"
    if isinstance(ended, (KeyboardInterrupt, typer.Abort)):
        return INTERRUPTED, "interrupted"
    raise ended


def _sentence(wrong: BaseException) -> str:
    """A usage error of the option parser, without its full stop: more follows."""
    message: str = wrong.format_message() if hasattr(wrong, "format_message") else str(wrong)
    return message.rstrip(". ")
