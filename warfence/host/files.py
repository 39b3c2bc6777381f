"""The one writer and the one reader of files that users name.

Written is whole or not at all: beside the file first, synced, then in its place, so that whatever fails leaves the old file as it
was. A link stays a link and its target is written; a device or a pipe is written through. Read are regular files alone, up to a
bound: a pipe that nobody feeds, or an endless device, would never end.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from warfence.core.errors import InputError, WarfenceError

MOST_BYTES = 1 << 34  # of one file that is read: 16 GiB
MOST_JSON = 1 << 28  # of a configuration: 256 MiB
MOST_TEXT = 1 << 30  # of a text that people write: 1 GiB


class OutputError(WarfenceError):
    """What was made cannot be written. Nothing of the file that was there is lost."""


def check_output(option: str, path: Path | None) -> None:
    """InputError now, and not after the run, when no file can be written there."""
    if path is None:
        return
    try:
        target = path.resolve()
        if target.is_dir():
            raise InputError(f"{option} '{path}' is a folder; give a file")
        if target.exists() and not target.is_file():  # a device, a pipe
            able = os.access(target, os.W_OK)
        else:
            able = target.parent.is_dir() and os.access(target.parent, os.W_OK)
            able = able and not (target.exists() and not os.access(target, os.W_OK))
    except (OSError, RuntimeError, ValueError) as cause:  # too long a name, links in a circle, a null byte
        why = cause.strerror if isinstance(cause, OSError) else str(cause)
        raise InputError(f"{option} '{path}': no file can be written there ({why}); give another name") from cause
    if not able:
        raise InputError(f"{option} '{path}': no file can be written there; give one in a folder that is writable")


def write_output(path: Path, content: str | bytes, option: str = "") -> None:
    """Write the whole file, or keep the old one. OutputError with the file and the reason."""
    raw = content.encode("utf-8") if isinstance(content, str) else content
    beside: Path | None = None
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            with target.open("wb") as through:
                through.write(raw)
            return
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name[:100]}.", delete=False) as file:
            beside = Path(file.name)
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        beside.chmod(_mode(target))
        beside.replace(target)
        beside = None
    except (OSError, RuntimeError, ValueError) as cause:
        why = cause.strerror if isinstance(cause, OSError) else str(cause)
        name = f"{option} '{path}'" if option else f"'{path}'"
        raise OutputError(f"{name} cannot be written ({why}); what was there is as it was") from cause
    finally:
        if beside is not None:
            with suppress(OSError):
                beside.unlink()


def read_input(path: Path, name: str, remedy: str, most: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file. name: of it in messages, "prompts file 'a.txt'". InputError, which ends in the remedy."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # opening a pipe does not wait for its writer
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"{name} cannot be read (it is no regular file); {remedy}")
            if found.st_size > most:
                raise InputError(f"{name} has {found.st_size} bytes, and at most {most} are read; {remedy}")
            return file.read(most + 1)
    except (OSError, ValueError) as cause:
        why = cause.strerror if isinstance(cause, OSError) else str(cause)
        raise InputError(f"{name} cannot be read ({why}); {remedy}") from cause


def _mode(target: Path) -> int:
    """That of the file which is replaced; of a new one what the process may give."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
