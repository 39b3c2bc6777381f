"""What a run looks like while it goes on: on a terminal a bar below the texts as they come, elsewhere plain lines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from warfence.cli.output import say
from warfence.cli.text import printable, tail
from warfence.serve.jobs.job import Job
from warfence.serve.jobs.session import Watcher
from warfence.serve.requests import Phase, Request

BAR_WIDTH = 30


class PlainView(Watcher):
    """One line for each finished request, in the order in which they finish, with no control characters."""

    def __init__(self, job: Job, console: Console, label: str, show_texts: bool = True) -> None:
        self._job, self._console, self._label, self._show_texts = job, console, label, show_texts
        self._total = self._finished = 0

    def warmed_up(self, program: str, done: int, total: int) -> None:
        if done == total:
            say(self._console, f"{self._label}: {total} forwards compiled")

    def running(self, requests: Sequence[Request], what: str) -> None:
        self._total, self._finished = len(requests), 0

    def token(self, request: Request, last: bool) -> None:
        if last:
            self._finished += 1
            if self._show_texts:
                say(
                    self._console,
                    f"[{self._finished}/{self._total}] {_label(request)} {'|'.join(_texts(self._job, request, ended=True))}",
                )


class LiveView(Watcher):
    """Finished requests above, the newest text of one running request and a bar below. A context manager."""

    def __init__(self, job: Job, console: Console, label: str, show_texts: bool = True) -> None:
        self._job, self._label, self._show_texts = job, label, show_texts
        self._console = console
        self._now = f"{label}: starting"
        self._done, self._of, self._unit = 0, 0, ""
        self._finished = self._requests = 0
        self._newest: Request | None = None
        self._began = 0.0
        # Last, because it renders once right here.
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=8, transient=True)

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def starting(self, backend: str, device: str) -> None:
        self._now = f"{self._label}: starting {backend} on {device}"

    def warmed_up(self, program: str, done: int, total: int) -> None:
        self._now, self._done, self._of, self._unit = f"{self._label}: compiling", done, total, f"forwards ({program})"

    def running(self, requests: Sequence[Request], what: str) -> None:
        self._now, self._unit, self._requests = f"{self._label}: {what}", "tokens", len(requests)
        self._done, self._finished, self._of = 0, 0, sum(request.max_new_tokens for request in requests)
        self._began = time.perf_counter()

    def token(self, request: Request, last: bool) -> None:
        self._done += 1
        if last:
            self._of -= request.max_new_tokens - len(request.output)  # an end-of-text token may come early
            self._finished += 1
            if self._show_texts:
                prompt, text = _texts(self._job, request, ended=True)
                self._console.print(Text.assemble((f"{_label(request)} ", "cyan"), (prompt, "dim"), text))
        stays = self._newest is not None and self._newest.phase is not Phase.WAITING  # a retracted one stands still
        if last and request is self._newest:
            self._newest = None
        elif not stays and not last:
            self._newest = request

    def _render(self) -> RenderableType:
        """Called by the refreshing thread, a few times a second, so that a token itself costs next to nothing."""
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            Text(self._now), ProgressBar(total=self._of or None, completed=self._done, width=BAR_WIDTH), self._counts()
        )
        newest = self._newest
        if newest is None or not self._show_texts:
            return bar
        prompt, text = _texts(self._job, newest, ended=False)
        label = f"{_label(newest)} … "
        room = max(self._console.width - len(label) - 1, 1)
        return Group(Text.assemble((label, "cyan"), (prompt + text)[-room:], no_wrap=True), bar)

    def _counts(self) -> Text:
        if not self._of:
            return Text("")
        counts = f"{self._done}/{self._of} {self._unit}"
        if self._requests:
            rate = self._done / max(time.perf_counter() - self._began, 1e-9)
            counts += f", {rate:.0f} tokens/s, {self._finished}/{self._requests} requests"
        return Text(counts, no_wrap=True)


def watch(job: Job, console: Console, label: str, show_texts: bool = True) -> AbstractContextManager[Watcher]:
    """The view that fits the console."""
    if console.is_terminal and not console.quiet:
        return LiveView(job, console, label, show_texts)
    return nullcontext(PlainView(job, console, label, show_texts))


def _label(request: Request) -> str:
    return f"request {request.id}:"


def _texts(job: Job, request: Request, ended: bool) -> tuple[str, str]:
    """(prompt, generated so far). Bytes that the next token may make a character are left out; in an ended one they stay."""
    text = job.model.tokenizer.decode(tuple(request.output))
    text = text if ended else text.rstrip("\ufffd")
    return tail(printable(job.workload.entries[request.id].text)), printable(text)
