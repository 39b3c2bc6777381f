"""The one-file story: it runs, stands alone, and its fences are measured; without one its text goes wrong."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "mini_fence.py"


@pytest.fixture(scope="module")
def mini() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mini_fence", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_tells_its_story_with_numpy_alone() -> None:
    watch = (
        "import sys, runpy; runpy.run_path({!r}, run_name='__main__'); print(*{{m.split('.')[0] for m in sys.modules}})"
    )
    done = subprocess.run([sys.executable, "-c", watch.format(str(SCRIPT))], capture_output=True, text=True, check=True)
    *story, modules = done.stdout.splitlines()
    assert "BEFORE the read   -> ' barked.'" in "\n".join(story)
    assert "numpy" in modules.split()
    assert not {"warfence", "torch", "jax"} & set(modules.split())


@pytest.mark.parametrize(("fence", "text"), [("off", " barked."), ("none", " slept."), ("in_graph", " slept.")])
def test_only_a_fence_keeps_the_text(mini: ModuleType, fence: str, text: str) -> None:
    landed, seen = mini.step("page_table", "page_table", fence, hold="load_batch")
    assert (landed, seen) == (fence == "off", text)


@pytest.mark.parametrize(
    ("declared", "reads_in", "marker", "answer", "at"),
    [
        ("pre_replay", "load_batch", None, "pre_replay", "load_batch"),
        ("in_graph", "page_table", "page_table", "in_graph", "page_table"),
        ("in_graph", "page_table", None, "post_replay", "sample"),
        ("unknown", "layer.1", None, "none", "end"),
    ],
)
def test_a_write_lands_where_the_policy_says(
    mini: ModuleType, declared: str, reads_in: str, marker: str | None, answer: str, at: str
) -> None:
    assert mini.policy(declared, marker is not None)[0] == answer
    assert mini.release_point(reads_in, marker, answer) == at


def test_a_marker_in_front_of_the_read_is_caught_by_the_text(mini: ModuleType) -> None:
    landed, text = mini.step("page_table", "load_batch", "in_graph", hold="load_batch")
    assert landed, "the marker is reached before the read"
    assert text == " barked."


def run(name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(ROOT / name)], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_twin_on_jax() -> None:
    pytest.importorskip("jax")
    whole, cut, aliased = run("mini_fence_jax.py").stdout.splitlines()
    assert whole.endswith("the cat slept")
    assert cut.endswith("the cat slept")
    assert aliased.endswith("the cat barks"), "nothing holds a write to aliased memory"


@pytest.mark.slow
def test_the_twin_on_cuda_says_what_it_needs() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device: the test below runs it")
    assert "needs a CUDA device" in run("mini_fence_cuda.py").stderr


@pytest.mark.gpu
def test_the_twin_on_cuda() -> None:
    none, whole, ticket = run("mini_fence_cuda.py").stdout.splitlines()
    assert none.endswith("the cat barks")
    assert whole.endswith("the cat slept")
    assert ticket.endswith("the cat slept")
