"""The neutral package imports no framework: in a fresh interpreter, module by module. And this check can fail."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FRAMEWORKS = ("jax", "jaxlib", "torch")

# Imports the modules in the order given; prints those frameworks that are loaded, each with the first module after
# whose import it was there.
CHILD = """
import importlib, json, sys
culprits = {}
for name in sys.argv[2:]:
    importlib.import_module(name)
    for framework in json.loads(sys.argv[1]):
        if framework in sys.modules:
            culprits.setdefault(framework, name)
print(json.dumps(culprits))
"""


def modules_of(package: Path) -> list[str]:
    """Every module below `package`, found by file so that a folder without __init__.py is not passed over."""
    names = []
    for file in sorted(package.rglob("*.py")):
        parts = file.relative_to(package.parent).with_suffix("").parts
        names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return names


def frameworks_loaded_by(package: Path) -> dict[str, str]:
    command = [sys.executable, "-c", CHILD, json.dumps(FRAMEWORKS), *modules_of(package)]
    done = subprocess.run(command, cwd=package.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"importing {package.name} failed:\n{done.stderr}"
    return json.loads(done.stdout)


@pytest.mark.slow
def test_no_module_of_warfence_imports_a_framework() -> None:
    modules = modules_of(ROOT / "warfence")
    assert {"warfence", "warfence.core.errors", "warfence.cli.app", "warfence.__main__"} <= set(modules)
    assert frameworks_loaded_by(ROOT / "warfence") == {}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_check_finds_an_import_in_any_module(tmp_path: Path, framework: str) -> None:
    (tmp_path / f"{framework}.py").write_text("")  # a stand-in: the check must not need the real one
    package = tmp_path / "leaky"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "clean.py").write_text(f"def later():\n    import {framework}\n")
    (package / "deep" / "leak.py").write_text(f"import {framework}\n")
    assert frameworks_loaded_by(package) == {framework: "leaky.deep.leak"}


def test_an_import_inside_a_function_is_no_import_of_the_module(tmp_path: Path) -> None:
    package = tmp_path / "lazy"
    package.mkdir()
    (package / "__init__.py").write_text("def later():\n    import torch\n")
    assert frameworks_loaded_by(package) == {}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_the_list_of_commands_imports_none_of_them_and_no_numpy(arguments: list[str]) -> None:
    script = (
        "import json, sys\n"
        "from warfence.cli import main\n"
        "status = main(json.loads(sys.argv[1]))\n"
        "loaded = sorted(n for n in sys.modules if n.split('.')[0] in ('warfence', 'numpy') and '.' in n)\n"
        "sys.exit(status or (None if loaded == ['warfence.cli', 'warfence.cli.app', 'warfence.cli.lazy'] else loaded))\n"
    )
    command = [sys.executable, "-c", script, json.dumps(arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--help"], ["doctor", "--help"], ["--version"]])
def test_the_command_line_answers_without_a_framework(arguments: list[str]) -> None:
    script = (
        "import json, sys\n"
        "from warfence.cli import main\n"
        "status = main(json.loads(sys.argv[1]))\n"
        f"sys.exit(f'loaded: {{loaded}}' if (loaded := set(sys.modules) & set({FRAMEWORKS})) else status)\n"
    )
    command = [sys.executable, "-c", script, json.dumps(arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
