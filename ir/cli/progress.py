"""Bars for what takes over a second: on a terminal alone, nothing of them where it is piped."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from ...schemas.printing import printable_name

#: Seconds after which a bar appears.
PATIENCE = 1.0

T = TypeVar("T")


class Progress:
    """A bar on standard error, once it has taken over a second."""

    def __init__(self, total: int | None, text: str = "") -> None:
        self.total, self.text = total, text
        self.done = 0
        self.began = time.monotonic()
        self.bar: Any = None

    def __enter__(self) -> Self:
        return self

    def advance(self, text: str = "") -> None:
        """One more step is done; ``text`` says which."""
        self.done += 1
        self.text = text or self.text
        if self.bar is None and time.monotonic() - self.began > PATIENCE:
            self.show()
        if self.bar is not None:
            self.bar.update(self.task, completed=self.done, description=self._said())

    def show(self) -> None:
        """Let the bar appear, where somebody looks."""
        if self.bar is not None or not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import Progress as Bar

        self.bar = Bar(console=Console(stderr=True), transient=True)
        self.bar.start()
        self.task = self.bar.add_task(self._said(), total=self.total, completed=self.done)

    def _said(self) -> str:
        from rich.markup import escape

        return escape(printable_name(self.text))

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """A bar for one long step, of which nobody knows how far it is."""
    if not sys.stderr.isatty():
        yield
        return
    with Progress(None, text) as progress:
        timer = threading.Timer(PATIENCE, progress.show)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


def each(rows: Sequence[T], text: str) -> Iterator[T]:
    """The rows one by one, with a bar where they take long."""
    with Progress(len(rows), text) as progress:
        for row in rows:
            yield row
            progress.advance()
