"""A run's last word and its exit code, which say the same, and what becomes of both where nobody can hear them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from counterfoil.cli import exits

HELD, BROKEN, NOT_RUN = 0, 1, 3
"""Every rule held; one is broken; the run says nothing about them."""


def judged(result: Mapping[str, Any], sabotage: str | None) -> dict[str, Any]:
    """Return a result that says which rule was off; where nothing noticed that, the run shows nothing and is not `ok`.

    Args:
        result: with `ok`, and with `error` where the run says nothing about the rules.
        sabotage: the rule; None: every rule was in force.
    """
    said = {**result, "sabotage": sabotage}
    if sabotage is not None and result["ok"]:
        said |= {"ok": False, "error": f"--sabotage {sabotage}: nothing noticed it; ask for more, or for other cases"}
    return said


def last_word(result: Mapping[str, Any], *, as_json: bool) -> int:
    """Say what a run came to and return its exit code.

    Raises:
        OSError: standard output takes nothing.
    """
    if as_json:
        print(json.dumps(result), flush=True)
    if "error" in result:
        _complain(result["error"])
        return NOT_RUN
    return HELD if result["ok"] else BROKEN


def failed(why: str, *, as_json: bool, code: int = NOT_RUN) -> int:
    """Say why a run says nothing about the rules and return its exit code; see `last_word`."""
    last_word({"error": why}, as_json=as_json)
    return code


def unheard(error: OSError) -> int:
    """Return the exit code where standard output took nothing: whatever came out, nobody was told."""
    _hush(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return exits.PIPE_CLOSED
    _complain(f"the report could not be written: {error.strerror}")
    return NOT_RUN


def _complain(why: str) -> None:
    try:
        print(f"counterfoil-lab: {why}", file=sys.stderr, flush=True)
    except OSError:
        _hush(sys.stderr)  # the exit code says it


def _hush(stream: TextIO) -> None:
    """Drop what a stream still holds: Python would try once more at its end, and exit by a code of its own."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, stream.fileno())
    os.close(devnull)
