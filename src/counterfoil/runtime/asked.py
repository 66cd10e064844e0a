"""What people are asked about one operation, as a document says it: all that an approval binds, but the payload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from counterfoil.domain.approval import Proposed, binding
from counterfoil.domain.decision import authority
from counterfoil.domain.event import History
from counterfoil.domain.payload import frozen_payload
from counterfoil.domain.suspicious import oddities


def asked_of(history: History, *, moment: Callable[[float], str]) -> dict[str, Any] | None:
    """The question as an object, with who has approved it and until when; None where nobody was ever asked.

    Args:
        history: the operation with its events.
        moment: writes a time.
    """
    standing = authority(history)
    proposed = standing.proposed
    if proposed is None:
        return None
    required = proposed.required
    return {
        "binding": binding(proposed),
        "bound": msgspec.to_builtins(proposed.bound),
        "rule": proposed.rule or None,
        "people": required.people,
        "approvers": list(required.approvers),
        "approved_by": list(standing.approved_by),
        "ends_at": moment(standing.ends_at),
        "attempts": [allowed.value for allowed in required.attempts],
        "uses": required.uses,
        "used": standing.uses,
        "left_out": dict(proposed.immaterial),
        "assumptions": proposed.assumptions,
        "because": list(proposed.because),
        "suspicious": suspicious(history, proposed),
    }


def suspicious(history: History, proposed: Proposed) -> list[dict[str, Any]]:
    """Each deceptive character of what is approved, and where it stands; the texts themselves are left out."""
    bound = proposed.bound
    texts = {name: getattr(bound, name) for name in ("tenant", "actor", "action", "account", "destination")}
    texts["key"] = history.operation.key
    texts["payload"] = (frozen_payload(history) or b"").decode("utf-8", "backslashreplace")
    return [
        {"in": name, "at": odd.at, "character": odd.char, "code": odd.code, "name": odd.name, "kind": odd.kind.value}
        for name, text in texts.items()
        for odd in oddities(text)
    ]
