"""The execution boundary for tool calls that must not happen twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterfoil.bootstrap import open_ledger as open  # noqa: A004 - `counterfoil.open` reads as it is
    from counterfoil.domain.errors import (
        CallerError,
        CounterfoilError,
        Held,
        NotAuthorized,
        NotRecorded,
        NotSent,
        OperatorError,
        OutcomeUnknown,
        Rejected,
        ResultGone,
        Unavailable,
    )
    from counterfoil.providers.function import Question, provider_key
    from counterfoil.runtime.ledger import Ledger
    from counterfoil.runtime.receipt import Receipt

_WHERE = {
    "open": ("counterfoil.bootstrap", "open_ledger"),
    "Ledger": ("counterfoil.runtime.ledger", "Ledger"),
    "Receipt": ("counterfoil.runtime.receipt", "Receipt"),
    "Question": ("counterfoil.providers.function", "Question"),
    "provider_key": ("counterfoil.providers.function", "provider_key"),
    "CounterfoilError": ("counterfoil.domain.errors", "CounterfoilError"),
    "CallerError": ("counterfoil.domain.errors", "CallerError"),
    "OperatorError": ("counterfoil.domain.errors", "OperatorError"),
    "Unavailable": ("counterfoil.domain.errors", "Unavailable"),
    "OutcomeUnknown": ("counterfoil.domain.errors", "OutcomeUnknown"),
    "Rejected": ("counterfoil.domain.errors", "Rejected"),
    "NotRecorded": ("counterfoil.domain.errors", "NotRecorded"),
    "NotSent": ("counterfoil.domain.errors", "NotSent"),
    "Held": ("counterfoil.domain.errors", "Held"),
    "NotAuthorized": ("counterfoil.domain.errors", "NotAuthorized"),
    "ResultGone": ("counterfoil.domain.errors", "ResultGone"),
}

__all__ = [
    "CallerError",
    "CounterfoilError",
    "Held",
    "Ledger",
    "NotAuthorized",
    "NotRecorded",
    "NotSent",
    "OperatorError",
    "OutcomeUnknown",
    "Question",
    "Receipt",
    "Rejected",
    "ResultGone",
    "Unavailable",
    "open",
    "provider_key",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: importing the package does no work."""
    if name not in _WHERE:
        raise AttributeError(f"module 'counterfoil' has no attribute {name!r}")
    import importlib

    module, attribute = _WHERE[name]
    value = getattr(importlib.import_module(module), attribute)
    globals()[name] = value
    return value
