"""Runs racy and fixed torch programs under `warfence_torch.watch` and under torch's own sanitizer; prints a Markdown table.

    python docs/results/sanitizer_pairs.py --device cuda > docs/results/NAME.md

Exits 1 when the watch's verdict on any program is wrong. torch's sanitizer sees CUDA only.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import io
import platform
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from tests.torch_backend.watch.pairs import NOT_EXPRESSED, PAIRS, Pair
from tests.torch_backend.watch.stands import make_stand
from warfence_torch.tools.watching import watch

RACE, NONE = "race", "no race"


def ours(pair: Pair, racy: bool, device: str) -> str:
    stand = make_stand(device)
    try:
        with watch(shared=stand.shared, host={"pin": stand.pin}, names=stand.names, blocks=pair.blocks) as log:
            pair.program(stand, racy)
    finally:
        stand.close()
    return RACE if "race" in log.check().kinds() else NONE


def sanitizer(pair: Pair, racy: bool, device: str) -> str:
    """torch's verdict on the same calls; it is on before the streams are made, and each program has a fresh one."""
    if device == "cpu":
        return "-"
    from torch.cuda._sanitizer import CUDASanitizerDispatchMode, CUDASanitizerErrors

    with contextlib.redirect_stderr(io.StringIO()):  # it prints each race before it raises
        try:
            with CUDASanitizerDispatchMode():
                pair.program(make_stand(device), racy)
        except CUDASanitizerErrors:
            return RACE
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
        finally:
            torch.cuda.synchronize()
    return NONE


def rates(rows: list[tuple[str, str]]) -> str:
    """Recall and precision of (expected, found)."""
    races = [e for e, f in rows if f == RACE]
    recall = races.count(RACE) / max(sum(e == RACE for e, _ in rows), 1)
    precision = f"{races.count(RACE) / len(races):.3f}" if races else "- (nothing reported)"
    return f"recall {recall:.3f}, precision {precision}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    device = parser.parse_args().device
    where = torch.cuda.get_device_name(0) if device == "cuda" else "cpu, host lanes"
    print("# Races in small torch programs: warfence_torch.watch and torch's own sanitizer\n")
    print(
        f"{datetime.date.today()}; Python {platform.python_version()}, torch {torch.__version__}; {where}; command: "
        f"`python docs/results/sanitizer_pairs.py --device {device}`\n"
    )
    print("| program | variant | expected | watch | torch's sanitizer |\n| --- | --- | --- | --- | --- |")
    watched, sanitized = [], []
    pairs = {name: pair for name, pair in PAIRS.items() if device == "cuda" or not pair.blocks}
    for name, pair in pairs.items():
        for racy in (True, False):
            expected = RACE if racy else NONE
            found, theirs = ours(pair, racy, device), sanitizer(pair, racy, device)
            watched.append((expected, found))
            sanitized.append((expected, theirs))
            print(f"| {name} | {'racy' if racy else 'fixed'} | {expected} | {found} | {theirs} |", flush=True)
    expressed = {scenario for pair in pairs.values() for scenario in pair.expresses}
    blocks = {scenario: "its blocks are those of CUDA's allocator" for p in PAIRS.values() for scenario in p.expresses}
    others = {**{s: why for s, why in blocks.items() if s not in expressed}, **NOT_EXPRESSED}
    print(f"\n- watch: {rates(watched)}, of {len(watched)} programs")
    print(f"- torch's sanitizer: {rates(sanitized) if device == 'cuda' else 'sees no program of the CPU'}")
    print(f"- support: {len(expressed)} of {len(expressed) + len(others)} scenarios; the others:")
    for scenario, reason in others.items():
        print(f"  - {scenario}: {reason}")
    return 0 if all(expected == found for expected, found in watched) else 1


if __name__ == "__main__":
    sys.exit(main())
