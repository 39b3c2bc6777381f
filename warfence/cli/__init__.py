"""The command line. `main` is the console script; everything else is imported when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from warfence.errors import InputError

INTERRUPTED = 130  # 128 + SIGINT, as shells count


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 1 a check failed, 2 bad input, 130 interrupted.

    Bad input is one line on stderr without a traceback; any other exception is a bug and keeps its traceback.
    """
    try:
        from warfence.cli.app import build_app

        build_app()(args=None if argv is None else list(argv), prog_name="warfence")
    except InputError as bad:
        print(f"error: {' '.join(str(bad).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        code: object = INTERRUPTED
    except SystemExit as done:  # typer ends every command with one; its own usage errors carry 2
        code = done.code
    else:
        return 0
    if code == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return code if isinstance(code, int) else 0 if code is None else 1
