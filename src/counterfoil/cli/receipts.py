"""One receipt as a command prints it: a JSON object, or a line."""

from __future__ import annotations

from collections.abc import Sequence

from counterfoil.cli.terminal import clipped, print_json, safe
from counterfoil.domain.errors import CounterfoilError
from counterfoil.domain.schedule import APPROVE, CALL, DISPATCH, REST, REVIEW, WAITING
from counterfoil.domain.words import Permission
from counterfoil.runtime.receipt import Receipt

KEY_COLUMNS = 40
"""Of a key on a line; the JSON has all of it."""


def show(receipt: Receipt, *, json: bool, happened: Sequence[str] = ()) -> None:
    """Print one receipt on standard output, as an object or a line.

    Args:
        receipt: as it stands.
        json: as an object.
        happened: what was just decided about it, for whoever watches.
    """
    if json:
        print_json(as_json(receipt) | ({"happened": list(happened)} if happened else {}))
    else:
        print("; ".join([as_line(receipt), *happened]), flush=True)


def show_error(operation: str, error: Exception, *, json: bool) -> None:
    """Print a step that could not be taken, where its receipt would have stood."""
    if json:
        print_json(error_as_json(operation, error))
    else:
        print(error_as_line(operation, error), flush=True)


def as_json(receipt: Receipt) -> dict[str, object]:
    """Everything a script asks of one receipt, in the words of its columns."""
    operation = receipt.operation
    return {
        "id": receipt.id,
        "action": operation.action,
        "account": operation.account,
        "key": operation.key,
        "standing": receipt.standing.value,
        "permission": receipt.permission.value,
        "dispatch": receipt.dispatch.value,
        "outcome": receipt.outcome.value,
        "lifecycle": receipt.lifecycle.value,
        "discrepancy": receipt.discrepancy.value,
        "unresolved": bool(operation.unresolved),
        "exposure": operation.exposure,
        "attempts": operation.attempts,
        "looks": operation.looks,
        "settled_by": operation.settled_by,
        "held_by": operation.held_by,
        "next": operation.step,
        "due_at": operation.due_at or None,
        "because": list(receipt.because),
        "result": receipt.result if receipt.kept else None,
    }


def as_line(receipt: Receipt) -> str:
    """The same on one line: which operation, where it stands, why, and what is next."""
    operation = receipt.operation
    said = [f"{receipt.id}  {safe(operation.action)} {clipped(operation.key, KEY_COLUMNS)}  {receipt.lifecycle.value}"]
    if receipt.permission is not Permission.AUTHORIZED:
        said.append(f"permission {receipt.permission.value}")
    if operation.settled_by:
        said.append(f"by {operation.settled_by.partition(':')[2]}")
    if operation.held_by:
        said.append(f"held by {operation.held_by}")
    after = _next(receipt)
    if after:
        said.append(f"next: {after}")
    if receipt.because:
        said.append("; ".join(receipt.because))
    return ", ".join(said)


_NEXT = {
    REVIEW: "a person",
    APPROVE: "people approve or deny it",
    DISPATCH: "the worker sends it once",
    CALL: "whoever asked for it sends it",
    REST: "nothing, it was abandoned",
}
"""What a step is called where its stored word alone would say too little."""


def _next(receipt: Receipt) -> str:
    step = receipt.operation.step
    over = step in WAITING and receipt.permission is Permission.EXPIRED
    return "" if over else _NEXT.get(step, step)


def error_as_json(operation: str, error: Exception) -> dict[str, object]:
    """A step that could not be taken."""
    code = error.code if isinstance(error, CounterfoilError) else CounterfoilError.code
    return {"id": operation or None, "error": {"code": code, "message": str(error)}}


def error_as_line(operation: str, error: Exception) -> str:
    """The same on one line."""
    code = error.code if isinstance(error, CounterfoilError) else CounterfoilError.code
    text = safe(error)
    return f"{text} ({code})" if not operation or operation in text else f"{operation}  {text} ({code})"
