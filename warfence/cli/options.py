"""The options of the commands, each with its line of help: those that several commands share, then those of `warfence serve`.

An option that one command has alone stands with that command. A panel is the group in which --help shows an option.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from warfence.cli import words

WHAT, HOW, SPEC = "What is served", "How it runs", "Speculative decoding"  # the panels of `serve`


def several_backends(default: str = words.INSTALLED, panel: str | None = None) -> Any:
    """Those that are registered, the reference, or a dotted path. default: what is taken where none is given."""
    return typer.Option(help=words.BACKENDS, show_default=default, rich_help_panel=panel)


def every_device(panel: str | None = None) -> Any:
    """One device for all backends."""
    return typer.Option(help=words.DEVICE_OF_ALL, rich_help_panel=panel)


def several_modes(panel: str | None = None) -> Any:
    """Modes of the matrix."""
    return typer.Option(
        help="decode, mixed, target_verify+eagle, ...; may be repeated.", show_default="all", rich_help_panel=panel
    )


def several_attentions(panel: str | None = None) -> Any:
    """Attention kinds."""
    return typer.Option(help=words.ATTENTIONS, show_default="all", rich_help_panel=panel)


WAYS = {
    "tables": "donated (the runtime guards them too), aliased or device (only the fence does), where there are several.",
    "marker": "cut, word or node: what stands at the read boundary, where there are several.",
    "ticket": "event or value: what in-graph tickets are.",
}


def way(name: str, panel: str | None = None) -> Any:
    """One of the ways to let a write go at the read boundary, of which backends have different ones."""
    return typer.Option(help=WAYS[name], show_default="the backend's own", rich_help_panel=panel)


Backends = Annotated[list[str] | None, several_backends()]
Devices = Annotated[str, every_device()]
Modes = Annotated[list[str] | None, several_modes()]
Attentions = Annotated[list[str] | None, several_attentions()]
OneAttention = Annotated[str, typer.Option(help=words.ATTENTION)]
Algorithm = Annotated[str, typer.Option(help=words.SPEC)]
ScenarioFile = Annotated[str, typer.Argument(help="A .scenario file, or the name of a scenario of the catalogue.")]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=NUMBER", help="Another value of a parameter; repeatable.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]

Prompts = Annotated[
    Path | None,
    typer.Option(
        help="Text, one prompt a line; ShareGPT; MT-bench.", show_default="40 shipped prompts", rich_help_panel=WHAT
    ),
]
Trace = Annotated[
    Path | None,
    typer.Option(help="Real arrivals: Azure, BurstGPT, Mooncake or Bailian.", rich_help_panel=WHAT),
]
Speed = Annotated[
    float | None,
    typer.Option(help="Let the trace's requests arrive this much faster.", show_default="1.0", rich_help_panel=WHAT),
]
SharePrefixes = Annotated[
    bool, typer.Option("--share-prefixes", help="Prompts begin alike where the trace says so.", rich_help_panel=WHAT)
]
Chat = Annotated[bool, typer.Option("--chat", help="Put prompts into the model's chat template.", rich_help_panel=WHAT)]
Limit = Annotated[
    int | None, typer.Option(help="Serve the first N requests.", show_default="all", rich_help_panel=WHAT)
]
MaxNewTokens = Annotated[
    int | None,
    typer.Option(
        help="Most tokens to generate a request.", show_default="48; of a trace, its own", rich_help_panel=WHAT
    ),
]
Temperature = Annotated[float, typer.Option(help="0 is greedy.", rich_help_panel=WHAT)]
TopP = Annotated[float, typer.Option(help="Draw among the likeliest tokens.", rich_help_panel=WHAT)]
Seed = Annotated[int, typer.Option(help="Of the draws; the same seed, the same text.", rich_help_panel=WHAT)]
ModelDirectory = Annotated[
    Path | None, typer.Option(help="Hugging Face directory.", show_default="the shipped model", rich_help_panel=WHAT)
]

BackendName = Annotated[str | None, typer.Option(help=words.BACKEND, show_default=words.FIRST, rich_help_panel=HOW)]
Device = Annotated[str, typer.Option(help=words.DEVICE, rich_help_panel=HOW)]

Tables = Annotated[str | None, way("tables", HOW)]
Marker = Annotated[str | None, way("marker", HOW)]
Ticket = Annotated[str | None, way("ticket", HOW)]
Fence = Annotated[
    str,
    typer.Option(
        help="fine (wait for the last read), coarse (for the whole forward), self (the host waits for it) or off.",
        rich_help_panel=HOW,
    ),
]
AllowHazard = Annotated[
    bool, typer.Option("--allow-hazard", help="Needed by --fence off: texts come out wrong.", rich_help_panel=HOW)
]
Attention = Annotated[str, typer.Option(help=words.ATTENTION, rich_help_panel=HOW)]
Serial = Annotated[bool, typer.Option("--serial", help="Overlap nothing: the twin.", rich_help_panel=HOW)]
Rows = Annotated[int, typer.Option(help="Requests in flight at once; others queue.", rich_help_panel=HOW)]
Slots = Annotated[
    int | None,
    typer.Option(help="KV slots, one a token.", show_default="by the model and the rows", rich_help_panel=HOW),
]
Mixed = Annotated[
    bool, typer.Option("--mixed", help="Decoding requests ride along in prefill batches.", rich_help_panel=HOW)
]
Idle = Annotated[
    bool, typer.Option("--idle", help="Launch an idle batch while results are awaited.", rich_help_panel=HOW)
]

Spec = Annotated[
    str,
    typer.Option(help=f"{words.SPEC} The text is the same.", rich_help_panel=SPEC),
]
DraftDirectory = Annotated[
    Path | None,
    typer.Option(
        help="The draft of dflash or eagle, trained for the model.", show_default="the shipped model's",
        rich_help_panel=SPEC,
    ),
]  # fmt: skip
Block = Annotated[
    int | None,
    typer.Option(
        help="Tokens of a verify: the known one and the proposals.", show_default="the algorithm's or the draft's own",
        rich_help_panel=SPEC,
    ),
]  # fmt: skip

Out = Annotated[Path | None, typer.Option(help="Write one JSON line a finished request to this file.")]
