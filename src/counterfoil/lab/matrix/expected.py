"""What the table requires, in the words of the product, stated here and nowhere derived."""

from __future__ import annotations

from typing import Any

CODES = {"K": "key", "N": "natural", "LS": "lookup", "LE": "eventual", "0": "nothing", "B": "one_shot"}
"""The six kinds of the table, and the laboratory's provider of each."""
KEYED = ("K", "N")
"""Those whose repeat is no second effect."""
LOOKED = ("K", "N", "LS", "LE")
"""Those that can be looked at."""
STRONG = ("K", "N", "LS")
"""Those whose look shows what stands, at once."""
BLIND = ("error",) * 5
"""All looks that a contract grants say nothing."""
REPEATS = {"K": 2, "N": 1}
"""How many repeats the contracts grant."""
DEADLINE = 10.5
"""Just past the deadline of a send that nobody answers."""

WAITS = frozenset({"get_outcome", "wait", "ask_operator"})
MAY_CALL = frozenset({"call_again", "get_outcome"})
HAS_RESULT = frozenset({"use_result", "get_outcome"})
OVER = frozenset({"get_outcome", "ask_operator"})

NO_ROW: dict[str, Any] = {"operations": 0, "all_sends": 0, "all_effects": 0}
READY: dict[str, Any] = {
    "permission": "authorized", "dispatch": "not_started", "outcome": "unobserved", "reads": "unobserved",
    "unresolved": 0, "exposure": 0, "permitted": MAY_CALL,
}  # fmt: skip
"""Nothing of it can have left, and it may go."""
_STARTED: dict[str, Any] = {
    "dispatch": "started", "outcome": "unobserved", "unresolved": 1, "exposure": 1, "step": "recover",
    "permitted": WAITS,
}  # fmt: skip
FLYING = _STARTED | {"reads": "unobserved", "lifecycle": "submitted"}
"""Claimed, and its worker provably has it in hand."""
LEFT = _STARTED | {"reads": "unknown", "lifecycle": "outcome_unknown"}
"""Claimed, and nobody will report: it reads as unknown before anybody records that."""


def looks_of(code: str) -> list[tuple[str, ...]]:
    """Every look shows what stands; and where there is a key, none does."""
    return [(), BLIND] if code in KEYED else [()]


def unknown(code: str, **more: Any) -> dict[str, Any]:
    """U: unknown, and the next step is a look where there is one, and a person otherwise."""
    return {
        "outcome": "unknown", "reads": "unknown", "unresolved": 1, "discrepancy": "none", "permitted": WAITS,
        "step": "look" if code in LOOKED else "review", **more,
    }  # fmt: skip


def review(sends: int, effects: int, **more: Any) -> dict[str, Any]:
    """Nobody knows, and a named person must find out."""
    return {
        "outcome": "unknown", "reads": "unknown", "unresolved": 1, "step": "review", "lifecycle": "manual_review",
        "owned": True, "permitted": WAITS, "sends": sends, "effects": effects, "told": "unresolved, unknown", **more,
    }  # fmt: skip


def succeeded(source: str, sends: int = 1, effects: int = 1, **more: Any) -> dict[str, Any]:
    """It happened, and this is who said so."""
    return {
        "outcome": "succeeded", "reads": "succeeded", "unresolved": 0, "discrepancy": "none",
        "settled_by": f"succeeded:{source}", "lifecycle": "succeeded", "permitted": HAS_RESULT, "step": "",
        "sends": sends, "effects": effects, "told": "existing, succeeded", **more,
    }  # fmt: skip


def fresh(sends: int = 1, **more: Any) -> dict[str, Any]:
    """Nothing had left before: whoever called again sent it, once."""
    return succeeded("answer", sends, 1, told="new, succeeded") | more


def absent(sends: int = 1, **more: Any) -> dict[str, Any]:
    """Proven not to have happened, by a look that may say so: whether it goes again is nobody's guess."""
    return {
        "outcome": "rejected", "reads": "rejected", "unresolved": 0, "discrepancy": "none",
        "settled_by": "absent:look", "lifecycle": "safe_to_retry", "permitted": OVER, "step": "", "sends": sends,
        "effects": 0, "told": "existing, rejected", **more,
    }  # fmt: skip


def rejected(sends: int = 1, **more: Any) -> dict[str, Any]:
    """The provider says that it did not do it."""
    return {
        "outcome": "rejected", "reads": "rejected", "unresolved": 0, "settled_by": "rejected:answer",
        "lifecycle": "rejected", "permitted": OVER, "step": "", "sends": sends, "effects": 0,
        "told": "existing, rejected", **more,
    }  # fmt: skip


def conflict(outcome: str, sends: int, effects: int, **more: Any) -> dict[str, Any]:
    """Evidence contradicts evidence: both kept, and a named person's."""
    return {
        "outcome": outcome, "discrepancy": "open", "unresolved": 1, "step": "review", "owned": True,
        "lifecycle": "manual_review", "permitted": WAITS, "sends": sends, "effects": effects, **more,
    }  # fmt: skip


def end_of(code: str, *, happened: bool, blind: bool = False, left: bool = True, **more: Any) -> dict[str, Any]:
    """What follows U until nothing automatic is left (U-K ... U-B).

    Args:
        code: which kind.
        happened: its one send took effect.
        blind: no look says anything, so that a key is what is left.
        left: its first attempt's bytes did leave.
        more: what else must be so.
    """
    sends, effects = int(left), int(happened)
    if code in KEYED and blind:
        if code == "N" and happened:  # refused because it stands there already: what stands there, a person says
            return review(sends + 1, 1, attempts=2) | more
        return succeeded("answer", sends + 1, 1, attempts=2) | more
    if code in LOOKED and happened and not blind:
        return succeeded("look", sends, 1, attempts=1) | more
    if code in STRONG and not blind:
        return absent(sends, attempts=1) | more
    return review(sends, effects, attempts=1) | more
