"""The briefing: what must not be repeated, in a few lines for a model's prompt. Safety never rests on it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from counterfoil.domain.operation import Operation

TOP = 5
"""Operations named; the rest are counted exactly."""
WORD_CHARS_MAX = 60
"""Free text is quoted and cut: a key or an account may hold anything."""


def briefing(unresolved: Sequence[Operation], *, tenant: str, accounts: tuple[str, ...] | None, now: float) -> str:
    """Name the unresolved operations a caller may touch, most exposed and oldest first.

    Args:
        unresolved: every unresolved operation of the store.
        tenant: whose.
        accounts: those the caller may touch; None for all of the tenant's.
        now: seconds since the epoch.
    """
    mine = [o for o in unresolved if o.tenant == tenant and (accounts is None or o.account in accounts)]
    if not mine:
        return ""
    mine.sort(key=lambda o: o.value * max(o.exposure, 1) * (now - o.created_at), reverse=True)
    lines = [_line(o, now) for o in mine[:TOP]]
    rest = len(mine) - len(lines)
    head = f"Unresolved effects: {len(mine)}. Each may already have happened; do not repeat any of them."
    return "\n".join([head, *lines, *([f"- and {rest} more"] if rest else [])]) + "\n"


def _line(operation: Operation, now: float) -> str:
    return (
        f"- {operation.id}: {_quoted(operation.action)} key {_quoted(operation.key)} "
        f"on account {_quoted(operation.account)}, {age(now - operation.created_at)} old; retry blocked"
    )


def _quoted(text: str) -> str:
    cut = text if len(text) <= WORD_CHARS_MAX else text[: WORD_CHARS_MAX - 1] + "…"
    return json.dumps(cut, ensure_ascii=True).replace("\\u2026", "…")


def age(seconds: float) -> str:
    """A duration for people, in its two largest units."""
    left = max(int(seconds), 0)
    parts = [(left // 86_400, "d"), (left // 3_600 % 24, "h"), (left // 60 % 60, "m"), (left % 60, "s")]
    first = next((i for i, (n, _) in enumerate(parts) if n), 3)
    return " ".join(f"{n}{unit}" for n, unit in parts[first : first + 2])
