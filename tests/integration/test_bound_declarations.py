"""What an approval is bound to beside the payload: the credential's reference, and all of a callable's code."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import pytest
from tests.cases.people import MARA, WHO, asks

import counterfoil
from counterfoil.domain.errors import BadValue
from counterfoil.domain.words import Permission
from counterfoil.runtime.registered import code_digest

WHERE = "/headers/authorization"


def vault():
    """A credential by code."""
    return "Bearer x"


@pytest.mark.parametrize("other", ["env:OTHER", "auth", vault], ids=str)
def test_another_credential_is_another_question(tmp_path, monkeypatch, other):
    """Also where both open the same account: its value is in neither digest."""
    for name in ("AUTH", "OTHER", "COUNTERFOIL_SECRET_AUTH"):
        monkeypatch.setenv(name, "Bearer x")

    def ask(reference):
        with counterfoil.open(tmp_path / "r.db", actor="agent:q") as ledger:
            if not ledger.governance.number:
                asks(ledger)
            guarded = ledger.http(
                "pay", contract="lab.nothing", base_url="http://127.0.0.1:9", secrets={WHERE: reference},
                key="K", **WHO,
            )  # fmt: skip
            if reference == "env:AUTH":
                asked = guarded({"o": 1})
                return ledger.decisions.approve(asked.id, **MARA).id
            order = guarded.order({"o": 1})
            return ledger.call(order)

    ask("env:AUTH")
    again = ask(other)
    assert (again.permission, again.operation.attempts) == (Permission.PENDING, 0)


def base(order):
    return order


def wrapped(function, *, more=False):
    """Two wrappers of one function that differ in their own code."""
    if more:

        @functools.wraps(function)
        def wrapper(order):
            return function(order + "!")

    else:

        @functools.wraps(function)
        def wrapper(order):
            return function(order)

    return wrapper


class Tool:
    """Called as an instance, and by its method."""

    def __call__(self, order):
        return order

    def other(self, order):
        return order + "!"


def test_every_wrapper_is_in_the_digest():
    """A changed wrapper asks anew, and so does a changed function in it; the same ones do not."""
    assert code_digest(wrapped(base)) == code_digest(wrapped(base)) != code_digest(wrapped(base, more=True))
    assert code_digest(wrapped(base)) != code_digest(base)
    assert code_digest(wrapped(wrapped(base))) != code_digest(wrapped(base))
    assert code_digest(functools.partial(base)) == code_digest(base)
    assert code_digest(Tool()) != code_digest(Tool().other)
    assert code_digest(Tool())
    assert not code_digest(str)


def test_wrappers_in_a_ring_end():
    """Whatever somebody hangs there."""
    one, two = SimpleNamespace(), SimpleNamespace()
    one.__wrapped__, two.__wrapped__ = two, one
    assert not code_digest(one)


def test_routes_of_one_effect_agree_about_it(tmp_path):
    """As a set, whatever the order; otherwise neither would hold the other."""
    with counterfoil.open(tmp_path / "r.db") as ledger:

        def route(name, *by):
            def tool(a, b):
                raise TimeoutError

            return ledger.action(tool, name=name, effect="e", effect_by=by, key=lambda a, b: name, **WHO)

        first = route("api", "/a", "/b")("1", "2")
        assert route("browser", "/b", "/a", "/b")("1", "2").operation.held_by == first.id
        for wrong in ((), ("/a",)):
            with pytest.raises(BadValue, match="'api' declares the same effect with effect_by="):
                route("mail", *wrong)
