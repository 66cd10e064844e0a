"""One peer: a process in its own environment, which measures its own calls when it is asked to."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

from counterfoil.lab.bench.environment import Missing

END_SECONDS = 60
_SAID_BYTES = 2_000


class Peer:
    """A peer that runs; `bench/peers/driven.py` says how it is asked.

    Args:
        arguments: its program and what that takes.

    Raises:
        Missing: it does not start.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the peer
        # Nothing of ours may be imported there, and nothing of this environment's.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self._process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=environment
        )
        try:
            told = self._answer()
        except BaseException:
            self.close()
            raise
        self.version: str = told["version"]
        self.way: str = told["way"]
        """How it is driven by many callers: `tasks` of one event loop, or `threads`."""

    def block(self, n: int) -> list[float]:
        """Perform n calls from one caller; return their durations in seconds."""
        found: list[float] = self._ask(do="block", calls=n)["durations"]
        return found

    def load(self, callers: int, seconds: float) -> float:
        """Perform calls from that many callers for that long; return calls per second."""
        return float(self._ask(do="load", callers=callers, seconds=seconds)["per_second"])

    def close(self) -> None:
        """Let it end, and end it where it does not."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()  # type: ignore[union-attr]
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()  # type: ignore[union-attr]
        self._errors.close()

    def _ask(self, **question: Any) -> dict[str, Any]:
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(question) + "\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            raise Missing(f"it ended by itself: {self._said()}")
        told: dict[str, Any] = json.loads(line)
        return told

    def _said(self) -> str:
        """The last line of what it wrote on its error stream."""
        self._process.wait(END_SECONDS)
        self._errors.seek(max(self._errors.seek(0, os.SEEK_END) - _SAID_BYTES, 0))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self._process.returncode}"
