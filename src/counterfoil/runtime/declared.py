"""What may be declared of an action, and the data that comes of it; whatever is wrong is named where it is declared."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import msgspec

from counterfoil.domain.action import Action, Consequence
from counterfoil.domain.contract import Contract, digest
from counterfoil.domain.errors import BadValue, NotDeclared
from counterfoil.domain.event import ORDINARY
from counterfoil.domain.intent import Occurrence, Siblings
from counterfoil.runtime.given import checked_name, checked_text


class Declared(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be declared of an action, beside what it is."""

    name: str = ""
    """Default: the function's own name."""
    effect: str = ""
    """The name shared by all routes to the same effect; default: the action's name."""
    account: str = "default"
    destination: str = ""
    tenant: str = ""
    owner: str = ""
    """Who acts on an unresolved operation."""
    authoriser: str = ""
    """Who may decide that it happens at all."""
    consequence: str = "some"
    key: Any = None
    """A callable of the payload's fields, or text: names one occurrence, in trusted code."""
    occurrence: str | None = None
    """`run`, `conversation`, `day` or `once`: within what equal intents are the same occurrence."""
    siblings: str = "held"
    """`independent`: equal effects under other keys may run beside each other."""
    effect_by: tuple[str, ...] = ()
    """Pointers that make two intents the same effect, as a set; default: the fingerprint, which holds the destination
    too: routes to different destinations hold each other only where they name pointers."""
    material: tuple[str, ...] = ()
    immaterial: dict[str, str] = {}
    """Pointers that cannot alter the effect, each with its reason."""
    check: Any = None
    """The semantic check, made before every attempt; returns None or True to allow, a reason or False to refuse."""
    confirm: bool = False
    """Look once after a success, as the contract says; what the look says is recorded beside the answer."""
    value: Any = None
    """A callable of the payload's fields: the value at risk."""
    floats: str = "keep"
    """`refuse` where money stands."""
    result: tuple[str, ...] = ()
    """Pointers into the result that a replay returns; default: all of it."""
    contract: Any = None
    look: Any = None
    """A function's own look, read by the contract's clauses."""
    control: str = ""
    """A reference in this account that a look always finds: its positive control; default: the contract's own."""
    sensitivity: str = ORDINARY
    """The class by which the policy says how long what is resolved is kept."""
    longest_delivery: float | None = None
    """Seconds within which the provider applies or drops what it was sent: an assumption, printed on receipts."""
    longest_delivery_by: str = ""
    longest_delivery_why: str = ""


def declared(given: Mapping[str, Any], action: str) -> Declared:
    """Read what was declared; an unknown or wrong name is an error that names it."""
    unknown = sorted(set(given) - set(Declared.__struct_fields__))
    if unknown:
        known = ", ".join(Declared.__struct_fields__)
        raise BadValue("declaration", unknown[0], wanted=f"{action!r} may declare: {known}")
    for name, value in given.items():
        _fits(name, value)
    return Declared(**{name: _pointers(name, value) if name in _POINTERS else value for name, value in given.items()})


_TEXTS = frozenset({
    *("name", "effect", "account", "destination", "tenant", "consequence", "siblings"),
    *("floats", "control", "sensitivity", "longest_delivery_why"),
})  # fmt: skip
_PEOPLE = frozenset({"owner", "authoriser", "longest_delivery_by"})
_CALLABLES = frozenset({"check", "value", "look"})


def _fits(name: str, value: Any) -> None:
    """Refuse a declaration of the wrong type where it is made, not at the first call."""
    if name in _PEOPLE:
        checked_name(name, value, empty=True)
    elif name in _TEXTS:
        checked_text(name, value, empty=name not in ("account", "sensitivity"))
    elif name in _CALLABLES and value is not None and not callable(value):
        raise BadValue(name, value, wanted="a callable")
    elif name == "confirm" and not isinstance(value, bool):
        raise BadValue(name, value, wanted="True or False")
    elif name == "key" and not (value is None or callable(value) or isinstance(value, str | int)):
        raise BadValue(name, value, wanted="a callable of the payload's fields, or text")
    elif name == "longest_delivery" and value is not None and type(value) not in (int, float):
        raise BadValue(name, value, wanted="seconds, as a number")


_POINTERS = frozenset({"effect_by", "material", "immaterial", "result"})


def _pointers(name: str, value: Any) -> Any:
    """A list of pointers, or for `immaterial` pointers with their reasons; one bare text is a slip of the pen."""
    if name == "immaterial":
        if not isinstance(value, Mapping) or not all(isinstance(why, str) and why for why in value.values()):
            raise BadValue(name, value, wanted='pointers with a reason each, e.g. {"/trace_id": "names the run only"}')
        return dict(value)
    if isinstance(value, str):
        raise BadValue(name, value, wanted="a tuple of JSON pointers")
    return tuple(value)


def action_of(
    said: Declared, name: str, *, contract: Contract, tenant: str, code: str = "", production: bool = False
) -> Action:
    """Build an action's data from what was declared; what is missing is named with why it matters."""
    if not said.owner or not said.authoriser:
        missing = " and no ".join(w for w, v in (("owner", said.owner), ("authoriser", said.authoriser)) if not v)
        if production:
            raise NotDeclared(name, missing=missing, why="an unresolved effect would have nobody to decide on it")
        warnings.warn(
            f"action {name!r} declares no {missing}: an unresolved effect will have nobody to decide on it",
            stacklevel=4,  # whoever called `ledger.action` or `ledger.http`
        )
    if said.confirm and (contract.reconcile != "allowed" or not contract.looks):
        raise NotDeclared(
            name, missing="contract whose looks are allowed",
            why="confirm=True looks after each success, and its contract names no look that may be made",
        )  # fmt: skip
    if said.longest_delivery is not None and not (said.longest_delivery_by and said.longest_delivery_why):
        raise NotDeclared(
            name, missing="longest_delivery_by and longest_delivery_why",
            why="an assumption is printed on every receipt that rests on it, with whose it is and why",
        )  # fmt: skip
    if said.longest_delivery is not None and not 0 <= said.longest_delivery < float("inf"):
        raise BadValue("longest_delivery", said.longest_delivery, wanted="seconds, finite and not negative")
    return Action(
        name=name,
        effect=said.effect or name,
        account=said.account,
        contract=contract,
        contract_digest=digest(contract),
        tenant=said.tenant or tenant,
        destination=said.destination,
        owner=said.owner,
        authoriser=said.authoriser,
        consequence=_word(Consequence, "consequence", said.consequence),
        checked=said.check is not None,
        confirmed=said.confirm,
        material=said.material,
        immaterial=said.immaterial,
        effect_pointers=tuple(sorted(set(said.effect_by))),
        siblings=_word(Siblings, "siblings", said.siblings),
        occurrence=None if said.occurrence is None else _word(Occurrence, "occurrence", said.occurrence),
        result=said.result,
        floats_refused=_floats(said.floats),
        code=code,
        control=said.control,
        sensitivity=said.sensitivity,
        longest_delivery=said.longest_delivery,
        longest_delivery_by=said.longest_delivery_by,
        longest_delivery_why=said.longest_delivery_why,
    )


def _floats(said: str) -> bool:
    if said not in ("keep", "refuse"):
        raise BadValue("floats", said, wanted="one of keep, refuse")
    return said == "refuse"


def _word(words: Any, name: str, value: str) -> Any:
    try:
        return words(value)
    except ValueError:
        raise BadValue(name, value, wanted=f"one of {', '.join(w.value for w in words)}") from None


def contract_of(named: Any, default: str) -> Contract:
    """Load a contract by catalogue name or file path, or take one as it is."""
    from counterfoil import contracts

    if isinstance(named, Contract):
        return named
    return contracts.load(default if named is None else named)
