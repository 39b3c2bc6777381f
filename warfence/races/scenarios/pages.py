"""The catalogue as pages of text, one for each group, with what exploring says about every program."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from warfence.core.errors import InputError
from warfence.host.files import write_output
from warfence.races.scenarios.forms import DECLARATIONS, FORMS
from warfence.races.scenarios.groups import groups
from warfence.races.scenarios.library import catalogue


def pages() -> dict[str, str]:
    """File name -> text: a page for each group, and `README.md`, which lists them."""
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
    )
    folder = files("warfence.races.scenarios")
    group_page, index = (
        environment.from_string(folder.joinpath(name).read_text("utf-8")) for name in ("group.md.j2", "index.md.j2")
    )
    found = groups()
    readme = {
        "README.md": index.render(groups=found, count=len(catalogue()), declarations=DECLARATIONS.items(), forms=FORMS)
    }
    return readme | {group.file: group_page.render(group=group) for group in found}


def write_pages(folder: Path) -> list[Path]:
    """Write all pages. InputError when the folder cannot be written."""
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in pages().items():
            write_output(folder / name, content)
            written.append(folder / name)
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror or error}); give another folder") from error
    return written
