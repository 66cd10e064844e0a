"""Cases in which something is changed after the approval: another question, or none at all; not one byte goes."""

from __future__ import annotations

import enum
import http.client
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any

import msgspec

import counterfoil
from counterfoil import contracts
from counterfoil.domain.contract import Contract
from counterfoil.domain.policy import Escalation, Otherwise, Override, Policy, Retention, When
from counterfoil.domain.template import RequestTemplate
from counterfoil.domain.terms import Breaker, OneShot
from counterfoil.domain.words import AttemptClass
from counterfoil.lab.approvals_scene import ASKS, EXACT, KEY, PAYLOAD, Case, Desk, Scene, asking, ruling
from counterfoil.lab.credential import ENVIRONMENT
from counterfoil.lab.provider import ACCOUNT
from counterfoil.lab.run_folder import STORE

AGAIN, REFUSED, ALLOWED = "asked again", "refused", "sent as approved"

# -- the intent --------------------------------------------------------------------------------------------------------


def _call_differs(scene: Scene, opened: dict[str, Any], declared: dict[str, Any], call: dict[str, Any]) -> None:
    """Approved at one desk, called at another one; that one's worker sweeps as well."""
    scene.approved(scene.desk())
    other = scene.desk(opened=opened, **declared)
    scene.tries(other.call, **call)


def _intent() -> Iterator[Case]:
    """Each field of an intent by the way it can differ: how the ledger is opened, what is declared, what is called."""
    base = "http://localhost:{port}"
    differing: tuple[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], bool], ...] = (
        ("tenant", {"tenant": "other"}, {}, {}, True),
        ("actor", {"actor": "agent:other"}, {}, {}, True),
        ("action", {}, {"name": "payout"}, {}, True),
        ("key", {}, {}, {"key": "order-1043"}, True),
        ("account", {}, {"account": "acct_other"}, {}, False),
        ("destination", {}, {"destination": "https://elsewhere.example"}, {}, False),
        ("base_url", {}, {"base_url": base}, {}, False),
        ("fingerprint_key", {"fingerprint_key": b"deployment"}, {}, {}, False),
        ("immaterial", {}, {"immaterial": {}}, {}, False),
        ("payload.order", {}, {}, {"order": "order-1043"}, False),
        ("payload.amount", {}, {}, {"amount": 1501}, False),
        ("payload.amount's type", {}, {}, {"amount": "1500"}, False),
        ("payload.currency", {}, {}, {"currency": "USD"}, False),
        ("payload.publish_at", {}, {}, {"publish_at": "2026-12-02"}, False),
        ("payload, a field more", {}, {}, {"note": "please"}, False),
        ("payload, a field less", {}, {}, {"currency": None}, False),
    )
    for name, opened, declared, call, again in differing:

        def play(
            scene: Scene, o: dict[str, Any] = opened, d: dict[str, Any] = declared, c: dict[str, Any] = call
        ) -> None:
            declares = {k: v.format(port=scene.where.port) if k == "base_url" else v for k, v in d.items()}
            _call_differs(scene, o, declares, c)

        permission = "pending" if again else "authorized"
        yield Case(f"intent: {name}", play, AGAIN if again else REFUSED, permission=permission, mutates=True)


def _worker_elsewhere(scene: Scene, name: str, value: str) -> None:
    """Approved at one desk, and sent by the worker of a deployment that declares the action differently."""
    scene.approved(scene.desk())
    declared: dict[str, Any] = {name: value.format(port=scene.where.port)}
    other = scene.desk(**declared)
    scene.tries(other.sweep)


# -- contract, policy, code --------------------------------------------------------------------------------------------


def flipped(value: Any) -> Any:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case enum.Enum():
            return next(other for other in type(value) if other is not value)
        case str():
            return {"allowed": "forbidden", "forbidden": "allowed"}.get(value, value + "x")
        case int() | float():
            return value + 1
        case tuple():
            return value[:-1]
        case dict():
            return dict(list(value.items())[:-1])
        case msgspec.Struct():
            name = next(n for n in reversed(value.__struct_fields__) if _flips(getattr(value, n)))
            return msgspec.structs.replace(value, **{name: flipped(getattr(value, name))})
        case _:
            raise TypeError(f"{value!r} has no other value")


def _flips(value: Any) -> bool:
    return isinstance(value, bool | str | int | float | enum.Enum) or bool(value)


def _contract_differs(scene: Scene, field: str) -> None:
    """Approved under one contract, called under the same with one field changed."""
    scene.approved(scene.desk())
    found = contracts.load(EXACT)
    changed = msgspec.structs.replace(found, **{field: OTHERS.get(field) or flipped(getattr(found, field))})
    other = scene.tries(scene.desk, changed)
    if other is not None:
        scene.tries(other.sweep)
        scene.tries(other.call)


OTHERS: Mapping[str, Any] = {
    "request": RequestTemplate(
        method="PUT", path="/lookup/effects", headers={"x-client-reference": "{provider_key}"}, body="json"
    ),
    "reference": "payload/order",
}
"""Fields that take only what can be filled in."""


def _contracts() -> Iterator[Case]:
    found = contracts.load(EXACT)
    for field in Contract.__struct_fields__:
        # Its id names it: a contract without one of these fields has nothing there that could change.
        if _flips(getattr(found, field)) or isinstance(getattr(found, field), msgspec.Struct):
            refused = field in _UNUSABLE
            permission = "authorized" if refused else "pending"
            yield Case(
                f"contract: {field}", partial(_contract_differs, field=field), REFUSED if refused else AGAIN,
                permission=permission, mutates=True,
            )  # fmt: skip


_UNUSABLE = frozenset({"secrets"})
"""Fields whose change makes the contract one that the action's credentials do not fit: nothing is even registered."""


def _policy_differs(scene: Scene, policy: Policy) -> None:
    """Approved under one policy, called under the next."""
    desk = scene.desk()
    scene.approved(desk)
    scene.adopt(desk.ledger, policy)
    scene.tries(desk.sweep)
    scene.tries(desk.call)


FIRST = When(actions=("ref*",))
"""Of a rule that leaves something to the one after it: what is never reached cannot be adopted."""


def _policies() -> Iterator[Case]:
    replace = msgspec.structs.replace
    rule, override = ASKS.rules[0], Override(approvers=("cfo",))
    retention = Retention(sensitivity="ordinary", bodies_seconds=1e9)
    for name, policy in {
        "name": replace(ASKS, name="another name"),
        "rule.name": ruling(name="all of it"),
        "rule.when": ruling(when=When(actions=("ref*", "*"))),
        "rule.approval.people": asking(people=2),
        "rule.approval.approvers": asking(approvers=("lead",)),
        "rule.approval.seconds": asking(seconds=7200.0),
        "rule.approval.attempts": asking(attempts=(AttemptClass.FIRST,)),
        "rule.approval.uses": asking(uses=2),
        "rule.approval none": ruling(approval=None),
        "rule.one_shot": ruling(one_shot=OneShot.YES),
        "a rule before": replace(ASKS, rules=(replace(rule, name="first", when=FIRST), rule)),
        "otherwise": replace(ASKS, otherwise=Otherwise.ALLOW),
        "override": replace(ASKS, override=override),
        "breakers": replace(ASKS, breakers=(Breaker(name="all", unknown_exposure_max=100.0),)),
        "escalation": replace(ASKS, escalation=(Escalation(to="duty"),)),
        "retention": replace(ASKS, retention=(retention,)),
    }.items():
        yield Case(f"policy: {name}", partial(_policy_differs, policy=policy), AGAIN, mutates=True)
    refusing = ruling(refuse="not this month", approval=None)
    yield Case(
        "policy: rule.refuse", partial(_policy_differs, policy=refusing), REFUSED, permission="authorized", mutates=True
    )  # fmt: skip


def _post(port: int, order: str, amount: int, currency: str) -> dict[str, Any]:
    """Write to the provider as a tool's own code does; the bytes are the call's arguments."""
    body = json.dumps({"amount": amount, "currency": currency, "order": order}, separators=(",", ":"))
    headers = {"Authorization": next(iter(ENVIRONMENT.values())), "X-Client-Reference": counterfoil.provider_key()}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10.0)) as connection:
        connection.request("POST", "/lookup/effects", body, headers)
        return {"status": connection.getresponse().status}


Code = Callable[[int], Callable[..., Any]]
"""Makes a tool for the provider at a port."""


def _as_approved(port: int) -> Callable[..., Any]:
    def refund(order: str, amount: int, currency: str) -> Any:
        return _post(port, order, amount, currency)

    return refund


def _other_constant(port: int) -> Callable[..., Any]:
    def refund(order: str, amount: int, currency: str) -> Any:
        return _post(port, order, amount * 100, currency)

    return refund


def _other_name(port: int) -> Callable[..., Any]:
    def refund(order: str, amount: int, currency: str) -> Any:
        return _post(port, order, abs(amount), currency)

    return refund


def _other_inside(port: int) -> Callable[..., Any]:
    def refund(order: str, amount: int, currency: str) -> Any:
        def sent() -> Any:
            return _post(port, order, amount, currency)

        return sent()

    return refund


def _running(scene: Scene, made: Code) -> Desk:
    """A process whose action is code of its own."""
    ledger = scene.ledger()
    code = made(scene.where.port)
    return Desk(ledger, ledger.action(code, key=KEY, account=ACCOUNT, owner="payments", authoriser="payments-lead"))


def _code_differs(scene: Scene, made: Code) -> None:
    """Approved with one code, and called in a process that runs another."""
    desk, other = _running(scene, _as_approved), _running(scene, made)
    scene.adopt(desk.ledger)
    refund = {"order": KEY, "amount": 1500, "currency": "EUR"}
    desk.approve(desk.guarded(**refund).id)
    scene.tries(other.sweep)
    scene.tries(other.guarded, **refund)


# -- the payload -------------------------------------------------------------------------------------------------------


def change(scene: Scene, statement: str, *values: object) -> None:
    """Write to the receipts file behind the product's back."""
    with closing(sqlite3.connect(scene.where.folder / STORE)) as store, store:
        store.execute(statement, values)


def _tampered(scene: Scene, *, sweeps: bool) -> None:
    """The stored payload asks for another amount than was approved."""
    desk = scene.desk()
    operation = scene.approved(desk)
    body = desk.ledger.history(operation).events[0].body or b""
    change(scene, "UPDATE event SET body = ? WHERE body IS NOT NULL", body.replace(b"1500", b"9900"))
    scene.tries(desk.sweep if sweeps else desk.call)


def _immaterial(scene: Scene) -> None:
    """The same call with another log line's name: what was approved is sent, not what came now."""
    desk = scene.desk()
    scene.approved(desk)
    desk.call(trace="t-2")


def _mentioned(scene: Scene) -> None:
    """The model's framework gives the same call another id."""
    desk = scene.desk()
    scene.approved(desk, mentioned={"tool_call_id": "call_1"})
    desk.call(mentioned={"tool_call_id": "call_2"})


def _published(scene: Scene) -> None:
    """The key is the content's own, and the time of publication is content."""
    desk = scene.desk(occurrence="once")
    scene.approved(desk, key=None)
    desk.call(None, publish_at="2027-01-01")


def _as_it_was(scene: Scene) -> None:
    desk = scene.desk()
    scene.approved(desk)
    desk.call()


def _reordered(scene: Scene) -> None:
    """The same fields in another order are the same payload."""
    desk = scene.desk()
    scene.approved(desk)
    desk.ledger.call(desk.guarded.order(dict(reversed(PAYLOAD.items())), key=KEY))


SENT: dict[str, Any] = {"sent": 1, "permission": "authorized", "outcome": "succeeded"}

CASES: tuple[Case, ...] = (
    Case("payload: nothing differs", _as_it_was, ALLOWED, **SENT),
    *_intent(),
    *(
        Case(f"worker: {name}", partial(_worker_elsewhere, name=name, value=value), AGAIN, mutates=True)
        for name, value in (
            ("destination", "https://elsewhere.example"),
            ("base_url", "http://localhost:{port}"),
        )
    ),
    Case(
        "worker: account",
        partial(_worker_elsewhere, name="account", value="acct_other"),
        REFUSED,
        permission="authorized",
        mutates=True,
    ),
    *_contracts(),
    *_policies(),
    Case("code: nothing differs", partial(_code_differs, made=_as_approved), ALLOWED, **SENT),
    Case("code: a constant", partial(_code_differs, made=_other_constant), AGAIN, mutates=True),
    Case("code: a name", partial(_code_differs, made=_other_name), AGAIN, mutates=True),
    Case("code: a function inside", partial(_code_differs, made=_other_inside), AGAIN, mutates=True),
    Case(
        "payload: tampered in the store, called",
        partial(_tampered, sweeps=False),
        REFUSED,
        permission="authorized",
        mutates=True,
    ),
    Case(
        "payload: tampered in the store, worker",
        partial(_tampered, sweeps=True),
        REFUSED,
        permission="authorized",
        mutates=True,
    ),
    Case("payload: log line differs", _immaterial, "the frozen bytes are sent", **SENT),
    Case("payload: tool-call id differs", _mentioned, ALLOWED, **SENT),
    Case("payload: fields in another order", _reordered, ALLOWED, **SENT),
    Case("payload: publication time differs", _published, AGAIN, mutates=True),
)
