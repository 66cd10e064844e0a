"""Events that a provider sends by itself: what they name, and what the contract says that they prove."""

from __future__ import annotations

import msgspec

from counterfoil.domain import body, reply
from counterfoil.domain.answer import Replied
from counterfoil.domain.contract import Contract
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.matching import Named
from counterfoil.domain.reading import compare
from counterfoil.domain.words import Finding, Source

_NO_HEADERS = Replied(status=0)


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """One event under the first clause that speaks of it."""

    rule: int
    document: object
    named: Named


def hear(contract: Contract, content: bytes, account: str) -> Heard | None:
    """Find the clause that speaks of an event and read whose it is; None where the contract has none for it.

    Args:
        contract: whose webhook clauses are asked, in order.
        content: the event's body as it was received.
        account: whose endpoint heard it, for clauses that take that for the event's own.
    """
    parsed = body.parse(content)
    for index, rule in enumerate(contract.webhooks if parsed.ok else ()):
        if all(body.same(body.at(parsed.value, where), value) for where, value in rule.where.items()):
            named = Named(
                account=account if rule.account == "scope" else _text(parsed.value, rule.account),
                reference=_text(parsed.value, rule.reference),
                external_id=_text(parsed.value, rule.external_id),
            )
            return Heard(rule=index, document=parsed.value, named=named)
    return None


def _text(document: object, place: str) -> str:
    return reply.name_at(_NO_HEADERS, document, place) if place.startswith("/") else ""


def judge(contract: Contract, heard: Heard, *, effect: str, payload: bytes) -> Evidence:
    """Say what an event proves of the operation it names; an effect that is not the one asked for contradicts.

    Args:
        contract: whose clause it is.
        heard: the event.
        effect: the action's name for what it does.
        payload: the canonical JSON that was frozen; without it no clause that compares it holds.
    """
    rule, clause = contract.webhooks[heard.rule], f"webhooks[{heard.rule}]"
    compared = compare(rule.match, payload, heard.document)
    if set(compared.values()) - {"equal"}:
        different = "different" in compared.values()
        return Evidence(
            source=Source.WEBHOOK, finding=Finding.UNKNOWN, attempt=1, rule=clause, contradicts=different,
            reason="other_content" if different else "field_missing", facts={"compared": compared},
        )  # fmt: skip
    finding = Finding(rule.finding)
    happened = finding in (Finding.SUCCEEDED, Finding.ACCEPTED)
    return Evidence(
        source=Source.WEBHOOK, finding=finding, attempt=1, coverage=rule.coverage, rule=clause,
        effect=(rule.effect or effect) if happened else "", external_id=heard.named.external_id,
        result=reply.result_of(rule.result, heard.document) if happened else None,
        facts={"compared": compared},
    )  # fmt: skip
