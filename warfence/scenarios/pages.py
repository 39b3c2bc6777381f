"""The catalogue as pages of text, one for each group, with what exploring says about every program."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from warfence.errors import InputError
from warfence.scenarios.explore import explore
from warfence.scenarios.forms import DECLARATIONS, FORMS
from warfence.scenarios.library import catalogue
from warfence.scenarios.program import GROUPS
from warfence.scenarios.repair import repair
from warfence.scenarios.report import headline, interleaving, sentences
from warfence.scenarios.text import text


def pages() -> dict[str, str]:
    """File name -> text: a page for each group, and `README.md`, which lists them."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False
    )
    folder = files("warfence.scenarios")
    group_page, index = (
        environment.from_string(folder.joinpath(name).read_text("utf-8")) for name in ("group.md.j2", "index.md.j2")
    )
    groups: list[dict[str, Any]] = []
    for group in GROUPS:
        entries = []
        for scenario in (one for one in catalogue() if one.group == group):
            outcome = explore(scenario)
            lanes, rows = interleaving(outcome)
            said = sentences(outcome, repair(outcome))
            entries.append(
                {
                    "scenario": scenario,
                    "text": text(scenario),
                    "headline": headline(outcome),
                    "verdict": outcome.verdict,
                    "lanes": lanes,
                    "rows": rows,
                    "said": said,
                }
            )
        groups.append({"name": group, "file": f"{group.replace(' ', '-')}.md", "entries": entries})
    readme = {
        "README.md": index.render(groups=groups, count=len(catalogue()), declarations=DECLARATIONS.items(), forms=FORMS)
    }
    return readme | {group["file"]: group_page.render(group=group) for group in groups}


def write_pages(folder: Path) -> list[Path]:
    """Write all pages. InputError when the folder cannot be written."""
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in pages().items():
            (folder / name).write_text(content, encoding="utf-8")
            written.append(folder / name)
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror or error}); give another folder") from error
    return written
