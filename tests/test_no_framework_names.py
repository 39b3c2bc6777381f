"""No framework's name in the neutral package, but in docstrings and comments. And this check can fail."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Whole words, as in `torch`, `warfence_torch`, `JAX_DEBUG_NANS`, `torch.cuda`; not `jaxtyping`, which is no framework.
NAME = re.compile(r"(?<![a-z])(pytorch|torch|jaxlib|jax|xla|cuda)(?![a-z])", re.IGNORECASE)
# Calls of the GPU's driver, whoever's stream it is: there `cuda` is the driver's name, and no framework's.
DRIVER, DRIVERS_NAME = ("host/cuda.py", "host/cuda_gates.py"), re.compile("cuda", re.IGNORECASE)


def docstrings(tree: ast.AST) -> set[int]:
    """The ids of the nodes that are docstrings: of modules, classes and functions."""
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, owners) and node.body]
    return {id(body[0].value) for body in bodies if isinstance(body[0], ast.Expr)}


def words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Each identifier and each text of the code, with its line."""
    told = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str | bytes) and id(node) not in told:
                yield node.lineno, node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            continue
        for _, value in ast.iter_fields(node):
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    yield getattr(node, "lineno", 1), text


def names_in(package: Path) -> list[str]:
    """Where a framework is named in the code below a folder: "file:line: the word in its text"."""
    found = []
    for file in sorted(package.rglob("*.py")):
        for line, text in words(ast.parse(file.read_text(encoding="utf-8"))):
            where = file.relative_to(package).as_posix()
            if NAME.search(DRIVERS_NAME.sub("", text) if where in DRIVER else text):
                found.append(f"{where}:{line}: {text}")
    return found


def test_the_neutral_package_names_no_framework() -> None:
    assert len(list((ROOT / "warfence").rglob("*.py"))) > 200
    assert names_in(ROOT / "warfence") == []


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    import torch\n",
        "from warfence_jax.backend import JaxBackend\n",
        "KNOWN = ('cpu', 'cuda')\n",
        "def f(jax_array): ...\n",
        "f(torch=1)\n",
        "class Xla: ...\n",
        "x.jaxlib\n",
        "MESSAGE = f'{1}: install torch'\n",
        "HELP = 'JAX_DEBUG_NANS'\n",
        "try:\n    pass\nexcept OSError as cuda:\n    pass\n",
        "match x:\n    case {'a': torch}: ...\n",
        "RAW = b'torch'\n",
        "def f():\n    pass\n    'a text behind torch is no docstring'\n",
    ],
)
def test_the_check_finds_a_name_wherever_it_is_planted(code: str, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "planted.py").write_text(code)
    assert len(names_in(tmp_path)) >= 1


def test_the_drivers_name_is_free_in_its_file_alone_and_no_other_is(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    for file in ("host/cuda.py", "host/lanes.py"):
        (tmp_path / file).write_text("from cuda.bindings import driver\nimport torch\n")
    assert [one.partition(" ")[0] for one in names_in(tmp_path)] == [
        "host/cuda.py:2:",
        "host/lanes.py:1:",
        "host/lanes.py:2:",
    ]


@pytest.mark.parametrize(
    "code",
    [
        '"""As torch does."""\n',
        "def f():\n    'On CUDA an event.'\n",
        "class A:\n    'JAX: a future.'\n",
        "x = 1  # as XLA does\n",
        "from jaxtyping import Int32\n",
        "axes.set_xlabel('ms')\n",
    ],
)
def test_docstrings_comments_and_other_words_are_left_alone(code: str, tmp_path: Path) -> None:
    (tmp_path / "fine.py").write_text(code)
    assert names_in(tmp_path) == []
