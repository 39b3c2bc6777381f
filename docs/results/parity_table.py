"""The parity matrix in short, as Markdown: where a write lands behind the fine fence, one row a mode, one column an attention.

    warfence parity --no-laws --quick --json parity.json && python docs/results/parity_table.py parity.json

A stage in bold is the read boundary itself; `end` means that the whole forward was waited for. Exits 1 where backends differ.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def landed(cell: dict[str, Any]) -> str:
    """The stage behind which the write landed, on all backends alike."""
    stages = {release["landed"] for release in cell["release"].values() if release is not None}
    if len(stages) != 1:
        raise SystemExit(f"backends differ in {cell['mode']} / {cell['attention']}: {sorted(stages)}")
    (stage,) = stages
    return f"**{stage}**" if stage == cell["boundary"] else stage


def main() -> None:
    document = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    fine = [c for c in document["cells"] if c["fence"] == "fine" and c["marker"] and c["batch"] == 1]
    attentions = list(dict.fromkeys(c["attention"] for c in fine))
    cells = {(c["mode"], c["attention"]): landed(c) for c in fine}
    print(f"| mode | {' | '.join(attentions)} |\n| --- |{' --- |' * len(attentions)}")
    for mode in dict.fromkeys(mode for mode, _ in cells):
        print(f"| {mode} | {' | '.join(cells.get((mode, a), '') for a in attentions)} |")


if __name__ == "__main__":
    main()
