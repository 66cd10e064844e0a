"""How a command ends: its exit code, and the one sentence it says when it could not do what was asked."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

from counterfoil.domain.errors import BadValue, CallerError, CounterfoilError

DONE = 0
UNSETTLED = 1
BAD_CALL = 2
DEFECT = 3
DEPLOYMENT = 4
UNAVAILABLE = 5
INTERRUPTED = 130
PIPE_CLOSED = 141
TERMINATED = 143

EXITS = (
    (DONE, "done; for verbs that act: nothing is unresolved (list, queue, show, brief and export only read: 0)"),
    (UNSETTLED, "an operation is unresolved, or its outcome is not what was asked for"),
    (BAD_CALL, "the call must be mended; nothing was sent for it"),
    (DEFECT, "a defect of Counterfoil's own; its traceback is on standard error"),
    (DEPLOYMENT, "the deployment must be mended (store, actions, contract, secret; queue: a receipt cannot be read)"),
    (UNAVAILABLE, "nothing was decided (store busy or full); the same call may be made again"),
    (INTERRUPTED, "stopped by Ctrl+C; what is known is recorded"),
    (PIPE_CLOSED, "whoever read the output went away"),
    (TERMINATED, "stopped by SIGTERM; what is known is recorded"),
)
"""Every exit code, with what may be concluded from it."""

BAD_CALL_CODE = "CF-109"
"""The error code of a command line that cannot be read: an argument is not what it must be."""

FULL_TRACEBACK = "COUNTERFOIL_TRACEBACK"
"""Set to `full`, this variable shows the text of unexpected exceptions, which may quote a secret."""


class Missing(BadValue):
    """An option that this command cannot do without; nothing was done."""

    def __init__(self, name: str, said: str) -> None:
        CallerError.__init__(self, said)
        self.name = name


class Terminated(BaseException):
    """SIGTERM arrived; like Ctrl+C it is no error, so that nothing but the plans' own records catches it."""


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Turn SIGTERM into `Terminated` in the main thread while a command acts, so that what is known is recorded."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may change handlers, and only it would hear
        return
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminated(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated


def leave(exit_code: int) -> NoReturn:
    """End the process at once, without waiting for threads that still send.

    What they began stands recorded as started and reads as unknown; the end of the process proves them dead.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


def most_urgent(codes: set[int]) -> int:
    """The one code for a command that met several: a deployment's fault first, then a busy store, then a bad call."""
    return next((code for code in (DEPLOYMENT, UNAVAILABLE, BAD_CALL, UNSETTLED) if code in codes), DONE)


def epilog() -> str:
    """The exit codes, for `--help`."""
    return "exit codes:\n" + "\n".join(f"  {code:<4} {meaning}" for code, meaning in EXITS)


def refuse(error: CounterfoilError, *, as_json: bool) -> int:
    """Say what an error says, in one sentence with its code, and return its exit code."""
    return say(error.code, str(error), as_json=as_json, exit_code=error.exit_code)


def say(code: str, message: str, *, as_json: bool, exit_code: int) -> int:
    """Say one sentence with its code: on standard error, or as one JSON object on standard output.

    Args:
        code: the stable code, `CF-...`.
        message: what is wrong, where and what to do.
        as_json: standard output holds JSON and nothing else.
        exit_code: handed back.
    """
    from counterfoil.cli.terminal import safe

    if as_json:
        print(json.dumps({"error": {"code": code, "message": message}}), flush=True)
    else:
        print(f"counterfoil: {safe(message)} ({code})", file=sys.stderr, flush=True)
    return exit_code


def defect(error: BaseException) -> int:
    """Show where an unexpected exception came from; its own text may quote a secret and stays out."""
    import traceback

    if os.environ.get(FULL_TRACEBACK) == "full":
        traceback.print_exception(error)
        return DEFECT
    print("Traceback (most recent call last):", file=sys.stderr)
    for line in traceback.format_tb(error.__traceback__):
        print(line, end="", file=sys.stderr)
    print(
        f"{type(error).__qualname__}: its text is not shown, it may quote a secret; {FULL_TRACEBACK}=full shows it",
        file=sys.stderr,
    )
    return DEFECT
