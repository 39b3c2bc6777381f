"""The command line. `main` is the console script; everything else is imported when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from warfence.cli.exits import BAD_INPUT, DONE, FAILED, INTERRUPTED, CheckFailed, Interrupted
from warfence.core.errors import InputError, StageError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 1 a check or a stage failed, 2 bad input, 130 interrupted.

    Each of these but the first is one line on stderr without a traceback; any other exception is a bug and keeps it.
    """
    import typer

    from warfence.cli.app import build_app

    # Older typers use click's class, newer ones bring their own: only this way is it the same one.
    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        code = build_app()(args=None if argv is None else list(argv), prog_name="warfence", standalone_mode=False)
    except InputError as bad:
        return _end(BAD_INPUT, f"error: {bad}")
    except usage_error as wrong:
        command = getattr(getattr(wrong, "ctx", None), "command_path", "warfence")
        return _end(BAD_INPUT, f"error: {_sentence(wrong)}; see {command} --help")
    except (CheckFailed, StageError) as failed:
        return _end(FAILED, f"error: {failed}")
    except Interrupted as kept:
        return _end(INTERRUPTED, f"interrupted: {kept}")
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    if code == INTERRUPTED:
        return _end(INTERRUPTED, "interrupted")
    return code if isinstance(code, int) else DONE


def _end(code: int, line: str) -> int:
    print(" ".join(line.split()), file=sys.stderr)
    return code


def _sentence(wrong: BaseException) -> str:
    """A usage error of the option parser, without its full stop: more follows."""
    message: str = wrong.format_message() if hasattr(wrong, "format_message") else str(wrong)
    return message.rstrip(". ")
