"""The templates of a package: everything that is put into one is escaped, and a name that is not given is an error."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def templates(package: str) -> Environment:
    """Those in the folder `templates` beside the package's files. Filter `px`: a pixel, to a tenth."""
    environment = Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["px"] = "{:.1f}".format
    return environment
