"""Makes docs/demo.svg: what `make demo` prints, as a terminal window.

python docs/demo_picture.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT, WIDTH = Path(__file__).parents[1], 100


def main() -> None:
    command = [sys.executable, "-m", "warfence", "demo"]
    environment = os.environ | {"COLUMNS": str(WIDTH), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    console = Console(record=True, width=WIDTH, file=StringIO())
    console.print(Text("$ make demo", style="bold green"))
    for line in done.stdout.rstrip().splitlines():
        console.print(Text(line), overflow="fold", highlight=False)
    svg = console.export_svg(title="make demo")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)  # nothing is fetched: any monospace font will do
    (ROOT / "docs" / "demo.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
