"""What a behaviour file may say: one provider action as its facts have it; what they leave out is `unknown`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from counterfoil.contracts.document import Document, read_text
from counterfoil.lab.failure import RunFailed

FOLDER = Path(__file__).parent.parent / "behaviours"

Reference = str
"""`$sent/POINTER`, `$key`, ...: see `references`."""
Unknown = Literal["unknown"]


class Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer; references in it are filled in."""

    status: int
    headers: dict[str, str] = {}
    body: Any = None
    """None: no body at all."""


class Key(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What two requests must have in common to be one to the provider, for how long, and what it then does."""

    at: str = "none"
    """`header:NAME`, `body:/POINTER`, `query:NAME`, `path`, or `none`: every request is another effect."""
    only_with: dict[str, str] = {}
    """Headers without which there is no such protection."""
    scope: tuple[Reference, ...] = ()
    """What else belongs to the key, beside the account: with another value it is another key."""
    retention: float | Literal["never_ends", "while_it_stands", "unknown"] = "unknown"
    counted_from: Literal["first_receipt", "completion", "unknown"] = "unknown"
    same: Literal["replay", "current", "refuse", "overwrite", "second", "unknown"] = "unknown"
    other: Literal["replay", "current", "refuse", "overwrite", "second", "unknown"] = "unknown"
    """The same key with another request."""
    in_flight: Literal["refuse", "wait", "second", "unknown"] = "unknown"
    after_error: Literal["replay", "keep", "forget", "unknown"] = "unknown"
    """The first ended in an error that may have left an effect: it is repeated, or the key holds on, or is free."""


class Answers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every answer to a write, by what it goes with."""

    done: Told
    replayed: Told | None = None
    """What a replay answers, where it is not the saved `done`, byte for byte."""
    again: Told | None = None
    """The refusal of a key that stands already, of the same request."""
    mismatch: Told | None = None
    """The refusal of a key that stands with another request; default: the same as `again`."""
    busy: Told | None = None
    """The refusal of a key whose first request is in flight; default: the same as `again`."""
    refusals: tuple[Told, ...] = ()
    """Answers that prove that this request did nothing."""
    errors: tuple[Told, ...] = ()
    """Answers after which it may have happened or not."""


class Shown(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way of reading that the provider offers."""

    path: str
    """`{NAME}` is one segment."""
    method: Literal["GET", "POST"] = "GET"
    by: dict[str, Reference] = {}
    """`path:NAME`, `query:NAME` or `body:/POINTER`, and what of a thing must equal it; not given, it asks nothing."""
    next: str = ""
    """`query:NAME` or `body:/POINTER`: what asks for the page that a cursor names; empty: there is no way to."""
    one: bool = False
    """It shows one thing, or `absent`."""
    item: Any = None
    """What one thing looks like in a list."""
    found: Told
    """`$items` stands for the list; `$more`, `$whole` and `$cursor` say whether there is another page."""
    absent: Told | None = None
    outsider: Told | None = None
    """What somebody sees who may not read it; default: what is seen where nothing is."""
    consistency: Literal["strong", "eventual", "unknown"] = "unknown"
    pages: Literal["whole", "short", "unknown"] = "unknown"
    """`short`: one answer may leave out what another page would show."""


class Played(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """With what it is played: a request of ours, and what else there is in the account."""

    account: str = "acct_ours"
    payload: Any
    """What the caller asks for; the contract says what becomes of it on the wire."""
    differs: dict[str, Any]
    """By pointer into the body that is sent, or `@query/NAME`, what somebody else's request holds: each is played by
    itself; `POINTER#WORD` is another value there."""
    known: dict[str, Any] = {}
    """By pointer into the body, what the item holds that every account has; with `control` it can be asked for."""
    control: str = ""
    known_path: str = ""
    """Where names stand in the path: that item's own."""


class Behaviour(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One provider action."""

    id: str
    facts: tuple[str, ...]
    """The entries of the fact sheet that it was written from."""
    says: str = ""
    method: str
    path: str
    body: Literal["json", "form", "text", "none"] = "json"
    key: Key = Key()
    answers: Answers
    states: dict[str, Literal["done", "open", "nothing"]] = msgspec.field(default_factory=lambda: {"done": "done"})
    """Every state it may leave a thing in: whether that is the effect, may become it, or is not it. The first is what
    usually comes of it."""
    ends: Literal["never", "gone", "closed", "unknown"] = "unknown"
    """Things may be deleted (`gone`), or end and be shown still (`closed`); a name is free after both."""
    late_bound: float | Unknown = "unknown"
    """Seconds after which the provider itself refuses what was on its way."""
    too_late: Told | None = None
    looks: tuple[Shown, ...] = ()
    played: Played


def names() -> list[str]:
    """Every behaviour there is."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def load(name: str) -> Behaviour:
    """Read one behaviour file.

    Raises:
        RunFailed: there is none, or it is wrong.
    """
    path = FOLDER / f"{name}.yaml"
    try:
        read = Document(read_text(path, _refuse(path)), _refuse(path))
        behaviour = msgspec.convert(read.values, Behaviour)
    except msgspec.ValidationError as error:
        raise RunFailed(f"{path.name}: {error}") from error
    if behaviour.id != name:
        raise RunFailed(f"{path.name}: is named otherwise than it says ({behaviour.id})")
    return behaviour


def _refuse(path: Path) -> Any:
    return lambda line, problem: RunFailed(f"{path.name}:{line}: {problem}")
