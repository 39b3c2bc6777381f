"""Runs the catalogue as torch programs under `warfence_torch.watch` and under torch's own sanitizer; prints a Markdown table.

    python docs/results/sanitizer_pairs.py --device cuda > docs/results/NAME.md

Exits 1 when the watch's verdict on any program is wrong. torch's sanitizer sees CUDA only; it knows races, and no waits that
are too strong.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import io
import platform
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import torch

from warfence.races.replay.judged import Judged, judge_all, played_of
from warfence.races.scenarios.explore import explore
from warfence.races.scenarios.library import catalogue, find
from warfence_torch.tools.replay.watched import Prepared, WatchPlayer

RACE, NONE = "race", "no race"


def sanitizer(one: Judged) -> str:
    """torch's verdict on the same calls; it is on before the streams are made, and each program has fresh ones."""
    from torch.cuda._sanitizer import CUDASanitizerDispatchMode, CUDASanitizerErrors

    with contextlib.redirect_stderr(io.StringIO()):  # it prints each race before it raises
        try:
            for trace, memories in played_of(explore(find(one.id))):
                with CUDASanitizerDispatchMode():
                    Prepared("cuda", trace, memories).play()
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
    results = judge_all(catalogue(), WatchPlayer(device))
    print("| scenario | right | watch | torch's sanitizer |\n| --- | --- | --- | --- |")
    watched, sanitized = [], []
    for one in results:
        if one.verdict:
            theirs = sanitizer(one) if device == "cuda" and one.verdict != "error" else "-"
            print(f"| {one.id} | {one.expect} | {one.verdict if one.right else f'**{one.verdict}**'} | {theirs} |")
            if one.verdict != "error":  # refused aloud: nothing is left to find
                expected = RACE if one.expect == "bad" else NONE
                watched.append((expected, RACE if one.verdict == "bad" else NONE))
                sanitized.append((expected, theirs))
    print(f"\n- watch: {rates(watched)}, of {len(watched)} programs")
    print(f"- torch's sanitizer: {rates(sanitized) if device == 'cuda' else 'sees no program of the CPU'}")
    print(f"- support: {sum(1 for one in results if one.verdict)} of {len(results)} programs; the others:")
    for reason, many in Counter(one.lacks for one in results if one.lacks).items():
        print(f"  - {many}: {reason}")
    return 0 if all(one.right for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
