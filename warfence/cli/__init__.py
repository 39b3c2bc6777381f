"""The command line. `main` is the console script; everything else is imported when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence

CTRL_C = 130  # what typer returns for it, without a word


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0 done, 1 a check or a stage failed, 2 bad input, 130 interrupted.

    Each of these but the first is one line on stderr without a traceback; any other exception is a bug and keeps it.
    """
    from warfence.cli.app import build_app

    try:
        code = build_app()(args=None if argv is None else list(argv), prog_name="warfence", standalone_mode=False)
        if code == CTRL_C:
            raise KeyboardInterrupt
    except (Exception, KeyboardInterrupt) as ended:
        from warfence.cli.exits import how_it_ends  # the heart comes with it, which help can do without

        code, line = how_it_ends(ended)
        print(" ".join(line.split()), file=sys.stderr)
    return code if isinstance(code, int) else 0
