"""Soundness: what a well-formed contract may still not claim."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from counterfoil.domain import barrier, body, pointer
from counterfoil.domain.carrier import carries
from counterfoil.domain.contract import KEYED, AnswerRule, By, Clause, Confidence, Contract, Look, Scalar
from counterfoil.domain.sure import is_sure
from counterfoil.domain.template import LookTemplate, RequestTemplate, problems, texts, uses

NEVER_ABSENT = frozenset({"401", "403", "407", "408", "409", "421", "423", "425", "429", "451"})
"""4xx answers that say something about the asking, never about the thing asked for (R74)."""
OWN_CHARS = {"provider_key": 35, "provider_uuid": 36}
"""How long the ledger's own key is: an operation's id, and the same as a UUID."""
OURS = frozenset({"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive"}) | frozenset(
    {"te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that frame the exchange: the wire sets them, no template does."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong, and where: `$.looks[0].source`."""

    path: str
    problem: str


def check(contract: Contract) -> tuple[Problem, ...]:
    """Name everything that a contract claims and cannot hold; an empty answer lets it be used."""
    return tuple(
        Problem(path=path, problem=problem)
        for found in (
            _sources,
            _requests,
            _posts,
            _own,
            _headers,
            _answers,
            _looks,
            _webhooks,
            _followed,
            _ends,
            barrier.flaws,
            _automatic,
            _retention,
            _unsure,
        )
        for path, problem in found(contract)
    )


def _clauses(contract: Contract) -> Iterator[tuple[str, Clause]]:
    yield "$.protection", contract.protection
    yield "$.repeat", contract.repeat
    for name, clauses in _lists(contract):
        for index, clause in enumerate(clauses):
            yield f"$.{name}[{index}]", clause


def _lists(contract: Contract) -> Iterator[tuple[str, tuple[Clause, ...]]]:
    yield "answers", contract.answers
    yield "looks", contract.looks
    yield "webhooks", contract.webhooks
    yield "fences", contract.fences
    yield "terminal", contract.terminal


def _sources(contract: Contract) -> Iterator[tuple[str, str]]:
    for path, clause in _clauses(contract):
        if clause.source not in contract.sources:
            yield f"{path}.source", f"{clause.source!r} names no entry of sources"
    for name, citation in contract.sources.items():
        if not citation.url and not citation.document:
            yield f"$.sources.{name}", "needs a url or a document"


def _templates(contract: Contract) -> Iterator[tuple[str, RequestTemplate | LookTemplate]]:
    if contract.request is not None:
        yield "$.request", contract.request
    for index, fence in enumerate(contract.fences):
        yield f"$.fences[{index}].request", fence.request
    for index, look in enumerate(contract.looks):
        yield f"$.looks[{index}].request", look.request
        for role in ("positive", "negative"):
            way = getattr(look.controls, role)
            if isinstance(way, LookTemplate):
                yield f"$.looks[{index}].controls.{role}", way


def _requests(contract: Contract) -> Iterator[tuple[str, str]]:
    for path, template in _templates(contract):
        for problem in problems(template):
            yield path, problem
        if isinstance(template, RequestTemplate) and any(
            "{" + word + "}" in text
            for text in texts(template)
            for word in ("control", "negative", "external_id", "cursor")
        ):
            yield path, "a send knows no control, no negative, no external_id and no cursor"
    if contract.request is None:
        return
    if contract.request.put and contract.request.body not in {"json", "form"}:
        yield "$.request.put", "only a json or form body has places for texts"
    for where in contract.request.without:
        if not pointer.parse(where):
            yield "$.request.without", "the whole payload cannot be left out"
    if not carries(contract, contract.request):
        yield "$.protection.carrier", f"the request does not carry the key at {contract.protection.carrier!r}"


def _posts(contract: Contract) -> Iterator[tuple[str, str]]:
    """A look that is no GET changes nothing, by the provider's own word."""
    for path, template in _templates(contract):
        if isinstance(template, RequestTemplate):
            continue
        if template.method == "GET":
            if template.body is not None:
                yield f"{path}.body", "a GET has none"
            continue
        said = contract.sources.get(template.read_only)
        if said is None or said.confidence is not Confidence.DOCUMENTED:
            yield f"{path}.read_only", "must name a documented source by which this POST only reads"


def _own(contract: Contract) -> Iterator[tuple[str, str]]:
    """The ledger's own key fits where it is put."""
    protected, put = contract.protection, "".join(texts(contract.request)) if contract.request else ""
    for word, chars in OWN_CHARS.items():
        if f"{{{word}}}" in put and isinstance(protected.length_max, int) and protected.length_max < chars:
            yield "$.protection.length_max", f"{{{word}}} has {chars} characters"
    if protected.format == "uuid" and "{provider_key}" in put and "{provider_uuid}" not in put:
        yield "$.protection.format", "the ledger's own key is a UUID only as {provider_uuid}"


def _headers(contract: Contract) -> Iterator[tuple[str, str]]:
    secret = {where.removeprefix("/headers/") for where in contract.secrets}
    for path, template in _templates(contract):
        for name in template.headers:
            if name in OURS:
                yield f"{path}.headers.{name}", "frames the exchange and is not a contract's to set"
            if name in secret:
                yield f"{path}.headers.{name}", "is a secret's place and holds no text"


def _answers(contract: Contract) -> Iterator[tuple[str, str]]:
    for index, rule in enumerate(contract.answers):
        for key, problem in _answer(contract, rule):
            yield f"$.answers[{index}].{key}", problem


def _answer(contract: Contract, rule: AnswerRule) -> Iterator[tuple[str, str]]:
    classes = [status for status in rule.status if status.endswith("xx")]
    denies = rule.finding in {"rejected", "not_sent"}
    if classes and denies:
        yield "status", f"a whole class ({classes[0]}) never proves that nothing happened"
    if any(status.startswith("2") for status in rule.status) and denies and not rule.where:
        yield "where", "a 2xx that denies the effect needs values in its body that say so"
    if any(status[0] not in "23" for status in rule.status) and rule.finding in {"succeeded", "accepted"}:
        yield (
            "finding",
            "only a 2xx or 3xx succeeds by itself; what proves that a first one landed `means: first_landed`",
        )
    if rule.means is not None and rule.finding != "unknown":
        yield "means", f"{rule.means} leaves the outcome unknown until a look has compared"
    if rule.match and rule.finding not in {"succeeded", "accepted"}:
        yield "match", "only what an answer says of an effect can be compared with what was asked for"
    if rule.coverage == "provider_key" and contract.protection.kind not in KEYED:
        yield "coverage", "no key protects this action, so no answer speaks for all attempts with it"
    if rule.coverage == "provider_key" and denies and contract.repeat.errors_replayed is not True:
        yield (
            "coverage",
            "a denial that is not a repeated one says nothing of an earlier attempt, which may have landed",
        )
    if rule.coverage == "operation":
        yield "coverage", "one answer never speaks for the whole operation"


def _looks(contract: Contract) -> Iterator[tuple[str, str]]:
    for index, look in enumerate(contract.looks):
        for key, problem in _look(contract, look):
            yield f"$.looks[{index}].{key}", problem
    if contract.looks and contract.reconcile == "allowed" and contract.read_budget.looks_max == 0:
        yield "$.read_budget", "looks are allowed and none is budgeted"
    if contract.read_budget.provider and not (contract.looks and contract.reconcile == "allowed"):
        yield "$.read_budget.provider", "bounds looks, and no look is allowed"


def _look(contract: Contract, look: Look) -> Iterator[tuple[str, str]]:
    for status in look.absent_status:
        if not status.startswith("4") or status in NEVER_ABSENT:
            yield "absent_status", f"{status} is never proof of absence"
        if status in look.found_status:
            yield "absent_status", f"{status} cannot mean both found and absent"
        if status == "400" and not look.absent_where:
            yield "absent_where", "a 400 says many things: name the values by which it says that nothing is there"
    if look.by is By.KEY and contract.protection.kind not in KEYED:
        yield "by", "no key protects this action"
    named = ("provider_key", "reference", "provider_uuid", contract.reference, f"/{contract.reference}")
    needed = {By.KEY: named, By.CLIENT_REFERENCE: named}
    words = needed.get(look.by, ("external_id",) if look.by is By.ID else ())
    if words and not any(uses(look.request, word) for word in words):
        yield "request", f"asks for none of {', '.join(words[:2])}"
    if set(look.result) != set(contract.result):
        yield "result", "must have the names of the contract's result, so that a replay returns one type"
    if look.match.reference == "path" and look.items:
        yield "match.reference", "`path` names one item, not one of a list"
    if look.match.text is not None and (look.items or look.match.material or look.match.reference != "path"):
        yield "match.text", "a text is one item, referred to by its path"
    yield from _pages(look)
    yield from _controls(look)
    yield from _by_name(look)


def _by_name(look: Look) -> Iterator[tuple[str, str]]:
    if look.match.noted and look.by is not By.ID:
        yield "by", "only what is asked by its own id is ours by that name alone"
    if look.match.reference == "unknown" and not (look.match.material or look.match.text or look.match.noted):
        yield (
            "match",
            "compares nothing, so it can find nothing: name where an item shows the reference and the content",
        )


def _pages(look: Look) -> Iterator[tuple[str, str]]:
    if uses(look.request, "cursor") != (look.next_page is not None):
        yield "next_page", "`{cursor}` of the request is what it reads: one needs the other"
    if look.next_page is not None and not look.items:
        yield "next_page", "one item has no pages"
    if look.next_page is not None and look.complete is True:
        yield "complete", f"`true` has no next page: say by which value there is none, `{{{look.next_page}: [null]}}`"


def _controls(look: Look) -> Iterator[tuple[str, str]]:
    for role, word in (("positive", "control"), ("negative", "negative")):
        way = getattr(look.controls, role)
        asks = uses(look.request if way == "inline" else way, word) if way != "none" else True
        if not asks and look.by is not By.LIST:
            yield f"controls.{role}", f"its request does not ask for {{{word}}}"
        if way == "inline" and not look.items:
            yield f"controls.{role}", "one item cannot hold its own control"


def _webhooks(contract: Contract) -> Iterator[tuple[str, str]]:
    for index, rule in enumerate(contract.webhooks):
        path, happened = f"$.webhooks[{index}]", rule.finding in {"succeeded", "accepted"}
        if not rule.reference and not rule.external_id:
            yield path, "names neither reference nor external_id: nothing says which operation an event speaks of"
        if rule.account.startswith("header:"):
            yield f"{path}.account", "an event has no headers that are judged"
        if rule.match and not happened:
            yield f"{path}.match", "only what an event says of an effect can be compared with what was asked for"
        if rule.coverage == "provider_key" and contract.protection.kind not in KEYED:
            yield f"{path}.coverage", "no key protects this action, so no event speaks for all attempts with it"
        if rule.coverage == "operation":
            yield f"{path}.coverage", "one event never speaks for the whole operation"
        if happened and set(rule.result) != set(contract.result):
            yield f"{path}.result", "must have the names of the contract's result, so that a replay returns one type"


def _followed(contract: Contract) -> Iterator[tuple[str, str]]:
    """What ends `accepted` is seen by a look, in time."""
    if contract.terminal and (contract.reconcile != "allowed" or all(look.match.text for look in contract.looks)):
        yield "$.terminal", "no look shows in which state it is, or looks are forbidden"
    if contract.follow_seconds == "unknown":
        return
    if not contract.terminal:
        yield "$.follow_seconds", "nothing is followed: no end is named"
    if contract.follow_seconds <= contract.read_budget.first_after_seconds:
        yield "$.follow_seconds", "is over before the first look"


def _ends(contract: Contract) -> Iterator[tuple[str, str]]:
    """One state has one end: by whichever clause it is read, the others must not say the opposite."""
    for index, end in enumerate(contract.terminal):
        path = f"$.terminal[{index}].state"
        for before, other in enumerate(contract.terminal[:index]):
            if (
                other.finding != end.finding
                and other.state.keys() <= end.state.keys()
                and _meet(other.state, end.state)
            ):
                yield path, f"terminal[{before}] says of this state that it is {other.finding}"
        for place, rule in enumerate(contract.answers):
            opposite = {rule.finding, end.finding} == {"succeeded", "rejected"}
            if opposite and _meet({where: (value,) for where, value in rule.where.items()}, end.state):
                yield path, f"answers[{place}] says of this state that it is {rule.finding}"


def _meet(one: dict[str, tuple[Scalar, ...]], other: dict[str, tuple[Scalar, ...]]) -> bool:
    """Both speak of a same place, and wherever they do a same value is meant by both."""
    both = one.keys() & other.keys()
    return bool(both) and all(any(body.same(a, b) for a in one[where] for b in other[where]) for where in both)


def _automatic(contract: Contract) -> Iterator[tuple[str, str]]:
    granted = contract.automatic_attempts
    if contract.one_shot and (granted.same_key_replay or granted.absence_proven):
        yield "$.automatic_attempts", "a one-shot action has no automatic attempts"
    if not granted.same_key_replay:
        return
    where = "$.automatic_attempts.same_key_replay"
    if contract.protection.kind not in KEYED:
        yield where, "needs a key that the provider documents"
    if not contract.repeat.safe:
        yield where, "needs a repeat that the provider documents as safe, beside a first request in flight too"
    if contract.protection.retention_seconds in {"unknown", "while_it_stands"}:
        yield where, "needs a documented retention"


def _retention(contract: Contract) -> Iterator[tuple[str, str]]:
    retention = contract.protection.retention_seconds
    if not isinstance(retention, str) and retention <= contract.send_deadline_seconds:
        yield "$.protection.retention_seconds", "is over before one send must have ended"


def _unsure(contract: Contract) -> Iterator[tuple[str, str]]:
    """What was only inferred, or nobody knows, proves no absence, wins no fence and lets nothing go again by itself."""
    proves: list[tuple[str, Clause]] = [
        (f"$.looks[{index}]", look)
        for index, look in enumerate(contract.looks)
        if look.authoritative is True or look.absence_means == "never_happened"
    ]
    proves += [(f"$.fences[{index}]", fence) for index, fence in enumerate(contract.fences)]
    if contract.automatic_attempts.same_key_replay:
        proves += [("$.protection", contract.protection), ("$.repeat", contract.repeat)]
    for path, clause in proves:
        said = contract.sources.get(clause.source)
        if said is not None and not is_sure(contract, clause):
            yield f"{path}.source", f"is {said.confidence.value}: no absence, fence or automatic repeat may rest on it"
