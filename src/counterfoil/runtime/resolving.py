"""An operator's finding: evidence by a named person, with the fields it rests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from counterfoil.domain import seen
from counterfoil.domain.attempt import is_kept, settle
from counterfoil.domain.contract import Contract
from counterfoil.domain.errors import BadValue
from counterfoil.domain.event import History, attempts_of
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.payload import frozen_payload
from counterfoil.domain.words import Coverage, Discrepancy, Finding, Source
from counterfoil.runtime.given import checked_count

_FINDINGS = {
    "succeeded": Finding.SUCCEEDED,
    "accepted": Finding.ACCEPTED,
    "rejected": Finding.REJECTED,
}


def _check_seen(evidence: object) -> None:
    """At least one field that was seen, and no text that shows one thing and is another."""
    wanted = "name at least one field that was seen, e.g. refund_id=re_123"
    if not isinstance(evidence, dict) or not evidence:
        raise BadValue("evidence", evidence, wanted=wanted)
    for name, value in evidence.items():
        if not str(name).strip() or value is None or value == "":
            raise BadValue("evidence", evidence, wanted=wanted)
        for text in (name, *_texts(value)):
            if not isinstance(text, str) or not text.isprintable():
                raise BadValue("evidence", text, wanted="text that prints: no control or invisible characters")


def _texts(value: object) -> Iterator[object]:
    """Every text of a value, names included, however deep; what has no canonical form is refused with its place."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, found in value.items():
            yield name
            yield from _texts(found)
    elif isinstance(value, list | tuple):
        for found in value:
            yield from _texts(found)


def finding_of(  # noqa: PLR0913 - a finding has this many parts
    history: History,
    outcome: str,
    *,
    evidence: dict[str, Any],
    by: str,
    reason: str,
    how: str,
    attempt: int | None,
    contract: Contract,
) -> Evidence:
    """Turn what a person found into evidence; of the whole operation, it settles an open discrepancy it agrees with.

    What the contract compares is compared with what was asked for: a success of another amount contradicts.

    Raises:
        BadValue: no evidence, no name, no attempt to speak of, or a word that is no finding.
    """
    attempts, _ = attempts_of(history.events)
    if outcome not in tuple(_FINDINGS):
        raise BadValue("outcome", outcome, wanted=f"a finding is one of {', '.join(sorted(_FINDINGS))}")
    _check_seen(evidence)
    if not attempts:
        raise BadValue("operation", history.operation.id, wanted="nothing of it was attempted, so nothing can be found")
    if attempt is not None:
        checked_count("attempt", attempt, least=1, most=len(attempts))
    facts: dict[str, Any] = {"by": by, "how": how, "reason": reason, "evidence": evidence}
    compared = seen.compared(contract, evidence, frozen_payload(history))
    if compared:
        facts["compared"] = compared
    happened = _FINDINGS[outcome] is not Finding.REJECTED
    found = Evidence(
        source=Source.OPERATOR,
        finding=_FINDINGS[outcome],
        attempt=attempt or attempts[-1].number,
        coverage=Coverage.OPERATION if attempt is None else Coverage.ATTEMPT,
        rule="operator.finding",
        by=by,
        how=how,
        why=reason,
        external_id=seen.external_id(contract, evidence),
        # What was seen is all that a replay can return: the function's own answer was lost.
        result=dict(evidence) if happened else None,
        facts=facts,
    )
    open_ = history.operation.discrepancy is Discrepancy.OPEN and attempt is None
    settles = open_ and is_kept(found, settle(attempts, found)[0])
    contradicts = happened and not settles and "different" in compared.values()
    return msgspec.structs.replace(found, settles=settles, contradicts=contradicts)
