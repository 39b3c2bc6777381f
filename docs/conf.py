"""The docs site: `make docs`. Lessons are executed while it is built; a warning is an error."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "extensions")]

# Lessons run in kernels that inherit this: one thread a library, small programs compiled without optimising.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["IPYTHONDIR"] = str(HERE / "extensions" / "ipython")  # not the configuration of whoever builds

from warfence import __version__  # noqa: E402

project, author, copyright = "warfence", "The warfence authors", "The warfence authors"
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "cli_help", "plain_docstrings"]
exclude_patterns = ["_build", "extensions"]
suppress_warnings = ["toc.no_title"]  # some recorded results begin without a heading; results.md links them

myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3

nb_execution_mode = "auto"
nb_execution_timeout = 60
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_code_prompt_show = "Show the solution"
nb_code_prompt_hide = "Hide the solution"

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
highlight_language = "text"
default_role = "code"
smartquotes_action = "q"  # options keep both their dashes
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"warfence {__version__}"
html_static_path, html_css_files = ["_static"], ["docs.css"]
pygments_style, pygments_dark_style = "friendly", "native"
