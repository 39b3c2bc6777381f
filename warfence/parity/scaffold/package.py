"""Writes the package of a new backend from the templates beside this file, whole or not at all."""

from __future__ import annotations

import keyword
import os
import re
import tempfile
from importlib.util import find_spec
from pathlib import Path

from warfence.backends import REFERENCE, available
from warfence.core.errors import InputError

TEMPLATES = Path(__file__).parent / "templates"


def class_name(name: str) -> str:
    """The backend class of a package: "my_tpu" -> "MyTpuBackend"."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Backend"


def check_name(name: str) -> None:
    """InputError for a name that no new package can have."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or keyword.iskeyword(name):
        raise InputError(
            f"'{name}' cannot name a Python package; use a letter, then letters, digits and underscores, such as "
            f"my_backend"
        )
    if name in available() | REFERENCE:
        raise InputError(f"a backend '{name}' is registered already; choose another name (see: warfence backends)")


def write_package(name: str, directory: Path) -> tuple[Path, list[str]]:
    """Make `directory/name`. Returns it and the files in it. InputError, with nothing written, where that cannot be."""
    check_name(name)
    target = directory / name
    if not directory.is_dir():
        raise InputError(f"there is no directory '{directory}'; make it, or give another --dir")
    if os.path.lexists(target):
        raise InputError(f"'{target}' exists already; remove it, or choose another name or --dir")
    spec = find_spec(name)
    if spec is not None and spec.origin is not None:  # without an origin it is a mere folder that lies around
        raise InputError(f"there is a module '{name}' already, which the package would hide; choose another name")
    texts = render(name)
    try:
        # Built beside its place and then renamed: whoever looks sees all of it or nothing, also after Ctrl-C.
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=directory) as scratch:
            built = Path(scratch) / name
            for file, text in texts.items():
                path = built / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            built.rename(target)
    except OSError as cause:
        raise InputError(f"'{target}' cannot be written ({cause.strerror or cause}); give another --dir") from cause
    return target, list(texts)


def render(name: str) -> dict[str, str]:
    """File -> text. A template `a.py.j2` becomes `a.py`; the folder `package` becomes the package itself."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    cls = class_name(name)
    words = {"name": name, "cls": cls, "prefix": cls.removesuffix("Backend"), "target": f"{name}.backend:{cls}"}
    texts = {}
    for template in sorted(TEMPLATES.rglob("*.j2")):
        source = template.relative_to(TEMPLATES).as_posix()
        file = re.sub(r"^package/", f"{name}/", source.removesuffix(".j2"))
        texts[file] = environment.get_template(source).render(words)
    return texts
