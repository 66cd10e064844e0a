"""The judge: a contract and an answer make evidence; nothing else is asked.

An answer that no rule names is unknown. So is every silence, unless provably not one byte left.
"""

from __future__ import annotations

from typing import assert_never

from counterfoil.domain import body, reply
from counterfoil.domain.answer import Answer, Refused, Replied, Returned, Silent
from counterfoil.domain.contract import AnswerRule, Contract
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.pointer import MISSING
from counterfoil.domain.reading import compare
from counterfoil.domain.words import Finding, Source

REFUSAL_CHARS_MAX = 200
"""A function's own sentence for a person; longer ones are cut."""


def judge(contract: Contract, answer: Answer, attempt: int, effect: str, payload: bytes = b"") -> Evidence:
    """Say what one answer to a send proves: the attempt's worker has reported back, so it is quiesced.

    Args:
        contract: whose rules judge; the first that matches wins, and none is unknown.
        answer: what the wire, or the guarded function, said.
        attempt: the attempt that was answered (1-based).
        effect: the action's name for what it does.
        payload: the canonical JSON that was sent; without it no rule that compares it holds.
    """
    if isinstance(answer, Returned):  # the ordinary answer of a function, before the long way round
        return Evidence(
            source=Source.ANSWER,
            finding=Finding.SUCCEEDED,
            attempt=attempt,
            quiesced=True,
            rule="function.returned",
            effect=effect,
            result=reply.result_of(contract.result, answer.value) if contract.result else answer.value,
            facts={} if answer.kept else {"result": "not_kept"},
        )
    match answer:
        case Silent():
            finding = Finding.UNKNOWN if answer.may_have_left else Finding.NOT_SENT
            return Evidence(
                source=Source.TRANSPORT, finding=finding, attempt=attempt, quiesced=True, reason=answer.reason
            )
        case Replied():
            return _of_reply(contract, answer, attempt, effect, payload)
        case Refused():
            return Evidence(
                source=Source.ANSWER,
                finding=Finding.REJECTED,
                attempt=attempt,
                quiesced=True,
                rule="function.refused",
                reason="refused",
                facts={"refusal": answer.reason[:REFUSAL_CHARS_MAX]},
            )
        case _ as never:
            assert_never(never)


def _of_reply(contract: Contract, answer: Replied, attempt: int, effect: str, payload: bytes) -> Evidence:
    if not answer.complete:
        return _of_cut(contract, answer, attempt, effect)
    parsed = body.parse(answer.body)
    for index, rule in enumerate(contract.answers):
        if _holds(rule, answer, parsed):
            compared = compare(rule.match, payload, parsed.value if parsed.ok else MISSING) if rule.match else {}
            if set(compared.values()) - {"equal"}:
                return _other(answer, index, compared, attempt)
            return _by_rule(contract, index, answer, parsed, attempt=attempt, effect=effect)
    return _unknown(answer, attempt, reason="no_rule")


def _holds(rule: AnswerRule, answer: Replied, parsed: body.Parsed) -> bool:
    if not reply.matches(answer.status, rule.status):
        return False
    if (rule.content == "json" or rule.where) and not parsed.ok:
        return False
    carried = {name: reply.header(answer, name) for name in rule.headers}
    if any(not carried[name] or value not in ("*", carried[name]) for name, value in rule.headers.items()):
        return False
    return all(body.same(body.at(parsed.value, where), value) for where, value in rule.where.items())


def _other(answer: Replied, index: int, compared: dict[str, str], attempt: int) -> Evidence:
    """It speaks of an effect that is not the one asked for: somebody else's, or a cached one, under this key."""
    different = "different" in compared.values()
    return Evidence(
        source=Source.ANSWER,
        finding=Finding.UNKNOWN,
        attempt=attempt,
        quiesced=True,
        rule=f"answers[{index}]",
        reason="other_content" if different else "field_missing",
        contradicts=different,
        facts={**_facts(answer, retry_after=False), "compared": compared},
    )


def _by_rule(
    contract: Contract, index: int, answer: Replied, parsed: body.Parsed, *, attempt: int, effect: str
) -> Evidence:
    rule = contract.answers[index]
    finding = proven_by(contract, rule)
    happened = finding in (Finding.SUCCEEDED, Finding.ACCEPTED)
    return Evidence(
        source=Source.ANSWER,
        finding=finding,
        attempt=attempt,
        coverage=rule.coverage,
        quiesced=True,
        rule=f"answers[{index}]",
        reason=rule.means or "",
        effect=effect_of(contract, rule, effect) if happened else "",
        external_id=reply.name_at(answer, parsed.value, rule.external_id),
        result=reply.result_of(contract.result, parsed.value) if happened and parsed.ok else None,
        facts=_facts(answer, retry_after=rule.retry_after),
    )


def _of_cut(contract: Contract, answer: Replied, attempt: int, effect: str) -> Evidence:
    """A status line whose body is lost is accepted at most, and only where no look could tell more."""
    rules = [r for r in contract.answers if reply.matches(answer.status, r.status)]
    positive = [r for r in rules if r.finding in {"succeeded", "accepted"} and not r.where and not r.match]
    if not rules or positive != rules or not reply.matches(answer.status, ("2xx",)) or contract.looks:
        return _unknown(answer, attempt, reason="answer_cut")
    return Evidence(
        source=Source.ANSWER,
        finding=Finding.ACCEPTED,
        attempt=attempt,
        quiesced=True,
        rule=f"answers[{contract.answers.index(rules[0])}]",
        reason="answer_cut",
        effect=effect_of(contract, rules[0], effect),
        facts=_facts(answer, retry_after=False),
    )


def proven_by(contract: Contract, rule: AnswerRule) -> Finding:
    """What an answer of that class proves: where nothing later is named, being taken in is all that was promised."""
    accepted = rule.finding == "accepted" and not contract.follows
    return Finding.SUCCEEDED if accepted else Finding(rule.finding)


def effect_of(contract: Contract, rule: AnswerRule, effect: str) -> str:
    """Which effect it proves: of what was only taken in that it was, and never what may become of it."""
    return rule.effect or (f"accepted by {contract.provider}" if rule.finding == "accepted" else effect)


def _unknown(answer: Replied, attempt: int, *, reason: str) -> Evidence:
    return Evidence(
        source=Source.ANSWER,
        finding=Finding.UNKNOWN,
        attempt=attempt,
        quiesced=True,
        reason=reason,
        facts=_facts(answer, retry_after=True),
    )


def _facts(answer: Replied, *, retry_after: bool) -> dict[str, object]:
    facts: dict[str, object] = {"status": answer.status}
    if not answer.complete:
        facts["cut"] = answer.reason
    wait = reply.retry_after_seconds(answer) if retry_after else None
    if wait is not None:
        facts["retry_after_seconds"] = wait
    return facts
