"""Real child processes for the laboratory: started by argument list, known by pid, ready when they say so.

A child lives in a session of its own, so that Ctrl+C reaches only its parent, and on a pipe from its parent, so that
it ends when the parent does, however that ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

READY_SECONDS = 20.0
"""How long a child may take to start; hundreds of times what it needs on an idle machine."""

STOP_SECONDS = 10.0
"""How long a child may take to end by itself before it is killed."""

READY_WORD = "ready"

ERRORS = ".err"
"""How the file ends that takes a child's error stream."""

_READY_LINE_BYTES_MAX = 4096
_ERROR_TAIL_BYTES = 2000  # enough for the last lines of a traceback
_ANSWER_POLL_SECONDS = 0.02
_CONNECT_SECONDS = 1.0


class NotReady(RuntimeError):
    """A child ended, or the time was over, before it was ready; it is not running any more."""

    def __init__(self, argv: Sequence[str], reason: str, said: str) -> None:
        super().__init__(f"{' '.join(argv[:4])} {reason}" + (f": {said}" if said else ""))
        self.reason, self.said = reason, said


class Child:
    """One running process that this one started; use it as a context manager, or `stop` it.

    Args:
        argv: program and arguments; no shell takes part.
        env: variables added to this process's own.
        ready_seconds: how long to wait for its ready line; None waits for nothing, and takes nothing of what it writes.
        output: a new file for what it writes, beside one for its errors; such a child is a program that nobody here
            wrote: it is never ready, and there is nothing for it to read.

    Raises:
        NotReady: with what the child wrote on its error stream.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        ready_seconds: float | None = READY_SECONDS,
        output: Path | None = None,
    ) -> None:
        self._argv = list(argv)
        # Streams live as long as the child.
        self._errors: IO[bytes] = tempfile.TemporaryFile() if output is None else output.with_suffix(ERRORS).open("w+b")  # noqa: SIM115
        self._output = None if output is None else output.open("wb")
        self._process = subprocess.Popen(
            self._argv,
            stdin=subprocess.PIPE if output is None else subprocess.DEVNULL,
            stdout=self._output or (subprocess.DEVNULL if ready_seconds is None else subprocess.PIPE),
            stderr=self._errors,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
        self.ready = ""
        """What followed the word `ready`: a port, a URL."""
        if ready_seconds is not None:
            self.ready = self._await_ready(time.monotonic() + ready_seconds)

    @property
    def pid(self) -> int:
        """The number by which, and only by which, this child is signalled."""
        return self._process.pid

    @property
    def port(self) -> int:
        """The port the child said it is ready on."""
        return int(self.ready)

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Send one signal to this child alone; nothing happens when it has ended."""
        self._process.send_signal(number)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Wait until it ends and return its exit code, negative for the signal that ended it."""
        return self._process.wait(seconds)

    def stop(self, seconds: float = STOP_SECONDS) -> int:
        """End the child by SIGTERM, by SIGKILL when it does not listen, and return its exit code."""
        self.signal(signal.SIGTERM)
        try:
            code = self.wait(seconds)
        except subprocess.TimeoutExpired:
            code = self.kill()
        self._release()
        return code

    def kill(self) -> int:
        """End the child at once, as a power cut would, and return its exit code."""
        self.signal(signal.SIGKILL)
        code = self.wait()
        self._release()
        return code

    def kill_all(self) -> None:
        """End the child and whatever it has started in its session, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # it leads a session of its own: the group has its number
        self.kill()

    def let_go(self) -> None:
        """Close the pipe to the child, as the end of this process would."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def errors(self) -> str:
        """Return the end of what the child wrote on its error stream."""
        if self._errors.closed:
            return ""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _ERROR_TAIL_BYTES))
        return self._errors.read().decode("utf-8", "replace").strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _await_ready(self, deadline: float) -> str:
        line = self._first_line(deadline)
        word, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
        if word == READY_WORD:
            return rest
        whole = line.endswith(b"\n") or len(line) == _READY_LINE_BYTES_MAX
        ended = not whole and time.monotonic() < deadline
        said = self.errors()
        self.kill()
        raise NotReady(self._argv, "ended before it was ready" if ended else "did not say that it is ready", said)

    def _first_line(self, deadline: float) -> bytes:
        line, stdout = b"", self._process.stdout
        if stdout is None:
            raise ValueError("a child whose output nobody holds cannot say that it is ready")
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n") and len(line) < _READY_LINE_BYTES_MAX:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    break
                read = os.read(stdout.fileno(), 1)  # one at a time: what follows the line is not ours
                if not read:
                    break
                line += read
        return line

    def _release(self) -> None:
        for stream in (self._process.stdin, self._process.stdout, self._errors, self._output):
            if stream is not None and not stream.closed:
                stream.close()


def module(name: str, *arguments: str) -> list[str]:
    """Return the argument list that runs a module with this interpreter."""
    return [sys.executable, "-m", name, *arguments]


def start_provider(folder: Path, *arguments: str, rules: Iterable[Mapping[str, Any]] = (), port: int = 0) -> Child:
    """Start the laboratory's provider with its truth in `folder`; `.port` says where it listens."""
    argv = module("counterfoil.lab.provider", "--folder", str(folder), "--port", str(port), "--parent-pipe")
    return Child([*argv, *_as_options(rules), *arguments])


def start_proxy(target: int, *arguments: str, rules: Iterable[Mapping[str, Any]] = (), port: int = 0) -> Child:
    """Start the fault proxy before a port of this host; `.port` says where it listens."""
    argv = module("counterfoil.lab.proxy", "--target", f"127.0.0.1:{target}", "--port", str(port), "--parent-pipe")
    return Child([*argv, *_as_options(rules), *arguments])


def free_port() -> int:
    """Return a loopback port that nobody listens on now; somebody else may take it before you do."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_listening(child: Child, port: int, *, seconds: float = READY_SECONDS) -> None:
    """Wait for a child that says nothing until it accepts connections.

    Raises:
        NotReady: it ended, or the time was over; it is not running any more.
    """
    deadline = time.monotonic() + seconds
    while child.running and time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=_CONNECT_SECONDS):
                return
        except OSError:
            time.sleep(_ANSWER_POLL_SECONDS)
    reason, said = ("does not listen" if child.running else "ended before it listened"), child.errors()
    child.kill()
    raise NotReady([f"the child on port {port}"], reason, said)


def _as_options(rules: Iterable[Mapping[str, Any]]) -> list[str]:
    return [word for rule in rules for word in ("--rule", json.dumps(rule))]
