"""What a user asks of `warfence serve`, checked as far as it can be without a model or a framework."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from warfence import backends
from warfence.core.attention import make_attention
from warfence.core.errors import InputError
from warfence.core.modes import FenceMode
from warfence.host.files import check_output
from warfence.serve.engine import EngineConfig
from warfence.serve.jobs.workload import at_least
from warfence.serve.sampling import SamplingParams
from warfence.serve.spec import NO_SPEC, get

FENCES = tuple(mode.value for mode in FenceMode)
NO_FENCE = (
    "--fence off lets the scheduler overwrite table entries that the running forward has yet to read, so requests"
    " continue from each other's memory and the text is wrong; add --allow-hazard to see it happen, or use --fence fine"
)


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of `warfence serve`; None where the user gave none and something else decides."""

    backend: str = field(default_factory=lambda: backends.installed()[0])
    device: str = "cpu"
    tables: str | None = None
    marker: str | None = None
    ticket: str | None = None
    fence: str = FenceMode.FINE.value
    allow_hazard: bool = False
    attention: str = "captured"
    serial: bool = False
    rows: int = 8
    slots: int | None = None
    mixed: bool = False
    idle: bool = False

    spec: str = NO_SPEC.name
    draft: Path | None = None
    block: int | None = None

    model: Path | None = None
    prompts: Path | None = None
    trace: Path | None = None
    speed: float | None = None
    share_prefixes: bool = False
    chat: bool = False
    limit: int | None = None
    max_new_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    out: Path | None = None

    @property
    def hazard(self) -> bool:
        """Whether this is the demonstration without a fence."""
        return self.fence == FenceMode.OFF.value

    def check(self) -> None:
        """InputError, with the remedy, for the first thing that cannot be meant. Reads no file, but looks for --out."""
        _choice("--fence", self.fence, FENCES)
        make_attention(self.attention, ())
        named = backends.available().get(self.backend)
        if named is not None and named.devices:  # a backend may leave it to its factory to say what there is
            _choice("--device", self.device, named.devices)
        for way, value in self.backend_options().items():
            if named is not None and way in named.options:
                _choice(f"--{way}", value, named.options[way])
        counts = {
            "--rows": self.rows, "--slots": self.slots, "--max-new-tokens": self.max_new_tokens, "--limit": self.limit,
        }  # fmt: skip
        for name, count in counts.items():
            at_least(name, count, 1)
        self.sampling()
        self._check_spec()
        if self.hazard and not self.allow_hazard:
            raise InputError(NO_FENCE)
        if self.hazard and self.serial:
            raise InputError(
                "--serial overlaps nothing, so there is no fence to switch off; drop --serial or --fence off"
            )
        if self.speed is not None and self.trace is None:
            raise InputError("--speed scales the arrivals of a trace; add --trace FILE.csv, or drop it")
        if self.speed is not None and not 0 < self.speed < math.inf:
            raise InputError(f"--speed is {self.speed}; give a positive number, such as 2.0 for twice as fast")
        if self.share_prefixes and self.trace is None:
            raise InputError("--share-prefixes is about the prompts of a trace; add --trace FILE.jsonl, or drop it")
        if self.chat and self.trace is not None:
            raise InputError(
                "--chat is about prompts, and the prompts of a trace are of its lengths; drop one of the two"
            )
        if self.out is not None:
            check_output("--out", self.out)

    def _check_spec(self) -> None:
        """An algorithm that there is, and nothing beside it that it rules out."""
        speculative = get(self.spec).speculative
        for name, value in (("--draft", self.draft), ("--block", self.block)):
            if value is not None and not speculative:
                raise InputError(f"{name} is of speculation, and --spec is '{self.spec}'; add --spec, or drop {name}")

    def sampling(self) -> SamplingParams:
        """How every request chooses its tokens."""
        return SamplingParams(self.temperature, self.top_p, self.seed)

    def engine(self) -> EngineConfig:
        """The engine's settings. Without a fence the order that this permits is forced, so that it fails every time."""
        return EngineConfig(
            fence=FenceMode(self.fence),
            attention=self.attention,
            serial=self.serial,
            sampled=self.temperature > 0,
            forced_order="first" if self.hazard else None,
            rows=self.rows,
            slots=self.slots or 0,
            mixed=self.mixed,
            idle=self.idle,
        )

    def backend_options(self) -> dict[str, str]:
        """Constructor arguments beside the device: only what was given, for a backend need not know the others."""
        ways = {"tables": self.tables, "marker": self.marker, "ticket": self.ticket}
        return {way: value for way, value in ways.items() if value is not None}


def _choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{name} is '{value}'; choose one of: {', '.join(choices)}")
