"""Registered actions: how one call becomes a frozen order with a key, a fingerprint and an effect identity."""

from __future__ import annotations

import itertools

import pytest
from tests.crash.stepping import action

from counterfoil import contracts
from counterfoil.domain.errors import BadValue, NotDeclared, PayloadRefused
from counterfoil.domain.identifier import NONCE_BYTES, operation_id
from counterfoil.domain.intent import Occurrence, Siblings
from counterfoil.runtime.declared import declared
from counterfoil.runtime.registered import KEY_CHARS_MAX, Registered, code_digest


class Nowhere:
    """A provider nothing is sent to."""


def registered(key=None, value=None, fingerprint_key=None, **changes):
    return Registered(action(**changes), Nowhere(), key=key, value=value, fingerprint_key=fingerprint_key)


def order(of, payload=None, **named):
    given = {"actor": "agent:pay", "scopes": {}, **named}
    return of.order({"order": "o-1", "amount": 10} if payload is None else payload, **given)


def test_what_is_checked_before_the_claim_has_a_key_of_the_real_length():
    """A request whose limits only the real key would break is refused before anything is claimed."""
    seen = []

    class Checks(Nowhere):
        check = staticmethod(seen.append)

    of = Registered(action(), Checks())
    of.check_sendable(order(of, key="k"))
    assert len(seen[0].provider_key) == len(operation_id(1, bytes(range(NONCE_BYTES))))


# -- keys ------------------------------------------------------------------------------------------------------------


def test_the_callers_key_goes_first():
    """A key given here, then the action's own: both are trusted code's word."""
    of = registered(key=lambda order, amount: f"pay-{order}")
    assert order(of).intent.key == "pay-o-1"
    assert order(of, key="given").intent.key == "given"
    assert order(registered(key="always")).intent.key == "always"


@pytest.mark.parametrize(
    ("key", "text"), [(0, "0"), (7, "7"), (-1, "-1"), ("x", "x"), ("ä" * KEY_CHARS_MAX, "ä" * KEY_CHARS_MAX)]
)
def test_r19_a_key_of_zero_is_a_key(key, text):
    """Zero is a value, not an absence; a key is text or an integer."""
    assert order(registered(), key=key).intent.key == text
    assert order(registered(key=lambda **_: key)).intent.key == text


@pytest.mark.parametrize("key", ["", " \n", "a\nb", "x" * (KEY_CHARS_MAX + 1), 1.5, True, b"k", None, ("a",), "\ud800"])
def test_what_is_no_key_is_refused(key):
    """Nothing falls back to another occurrence because the declared key came out empty."""
    of = registered(key=lambda **_: key, occurrence=Occurrence.ONCE)
    with pytest.raises(BadValue, match="key"):
        order(of)


def test_without_a_key_an_occurrence_must_be_declared():
    """Otherwise a repeated call could not be told from a second, intended one; the error says what to declare."""
    with pytest.raises(NotDeclared, match=r"no key and no occurrence.*key=lambda.*occurrence='run'"):
        order(registered())
    with pytest.raises(NotDeclared, match="no key and no occurrence"):
        order(registered(siblings=Siblings.INDEPENDENT, occurrence=Occurrence.ONCE))


@pytest.mark.parametrize("occurrence", Occurrence)
def test_a_derived_key_is_the_fingerprint_within_its_scope(occurrence):
    """Equal calls in one scope are one occurrence; another scope, or another payload, is another one."""
    of = registered(occurrence=occurrence)
    scopes = {"run": "r1", "conversation": "c1", "day": "2027-01-15"}
    other = {name: value + "x" for name, value in scopes.items()}
    made = order(of, scopes=scopes).intent
    assert order(of, scopes=scopes).intent.key == made.key
    assert order(of, {"order": "o-2", "amount": 10}, scopes=scopes).intent.key != made.key
    assert (order(of, scopes=other).intent.key == made.key) is (occurrence is Occurrence.ONCE)


@pytest.mark.parametrize("occurrence", [o for o in Occurrence if o is not Occurrence.ONCE])
@pytest.mark.parametrize("scopes", [{}, {"run": "", "conversation": "", "day": ""}])
def test_a_scope_nobody_named_is_asked_for(occurrence, scopes):
    """The error says which scope is missing and how to name it."""
    with pytest.raises(NotDeclared, match=rf"{occurrence.value} to derive its key within.*{occurrence.value}=\.\.\."):
        order(registered(occurrence=occurrence), scopes=scopes)


# -- fingerprints and effects ----------------------------------------------------------------------------------------


def test_account_and_destination_are_part_of_what_was_asked():
    """The same payload to another account or place is another intent."""
    prints = {
        order(registered(account=a, destination=d), key="k").intent.fingerprint
        for a, d in itertools.product(["a", "b", ""], ["x", "y", ""])
    }
    assert len(prints) == 9


def test_what_is_immaterial_does_not_enter():
    """Declared pointers are left out of the fingerprint and stay in the frozen payload."""
    of = registered(immaterial=("/trace",))
    one, two = (order(of, {"amount": 10, "trace": t}, key="k").intent for t in ("a", "b"))
    assert one.fingerprint == two.fingerprint
    assert (one.payload, two.payload) == (b'{"amount":10,"trace":"a"}', b'{"amount":10,"trace":"b"}')
    only = registered(material=("/amount",))
    assert (
        order(only, {"amount": 10, "x": 1}, key="k").intent.fingerprint
        == order(only, {"amount": 10}, key="k").intent.fingerprint
    )


def test_a_keyed_fingerprint_needs_the_key():
    """Where payloads can be guessed the deployment's key makes the digest useless to others."""
    plain, keyed, other = (order(registered(fingerprint_key=k), key="k").intent.fingerprint for k in (None, b"a", b"b"))
    assert len({plain, keyed, other}) == 3


def test_an_effect_ignores_who_asks_and_how():
    """Actor, action name and key do not enter the effect identity; account and effect name do."""
    base = order(registered(), key="a").intent.effect
    assert order(registered(), key="b", actor="agent:other").intent.effect == base
    assert order(registered(name="pay_by_browser"), key="a").intent.effect == base
    assert order(registered(effect="refund"), key="a").intent.effect != base
    assert order(registered(account="other"), key="a").intent.effect != base
    assert order(registered(tenant="other"), key="a").intent.effect != base


def test_declared_pointers_make_the_effect():
    """Two payloads that agree there are one effect, whatever else they say; a missing one is refused."""
    of = registered(effect_pointers=("/order",))
    one = order(of, {"order": "o-1", "amount": 10}, key="a").intent
    two = order(of, {"order": "o-1", "amount": 11}, key="b").intent
    assert one.effect == two.effect
    assert one.fingerprint != two.fingerprint
    assert order(of, {"order": "o-2", "amount": 10}, key="a").intent.effect != one.effect
    with pytest.raises(PayloadRefused, match="effect identity needs it"):
        order(of, {"amount": 10}, key="a")


def test_independent_siblings_are_told_apart_by_their_keys():
    """Paying 10 twice for two orders is two effects; the same order twice is one."""
    of = registered(siblings=Siblings.INDEPENDENT)
    assert order(of, key="o-1").intent.effect == order(of, key="o-1").intent.effect
    assert order(of, key="o-1").intent.effect != order(of, key="o-2").intent.effect


@pytest.mark.parametrize("payload", [{"amount": float("nan")}, {"amount": {1, 2}}, {"text": "\ud800"}, {1: 2}])
def test_what_has_no_canonical_form_is_refused_with_its_place(payload):
    """Before anything is claimed, with a JSON pointer."""
    with pytest.raises(PayloadRefused):
        order(registered(), payload, key="k")


def test_floats_are_refused_where_money_stands():
    """An action may refuse floats altogether; the pointer says where one stands."""
    of = registered(floats_refused=True)
    with pytest.raises(PayloadRefused) as caught:
        order(of, {"lines": [{"amount": 1.5}]}, key="k")
    assert caught.value.pointer == "/lines/0/amount"
    assert order(of, {"amount": 150}, key="k").intent.payload == b'{"amount":150}'


@pytest.mark.parametrize(("value", "found"), [(0, 0.0), (12.5, 12.5), (3, 3.0)])
def test_the_value_at_risk_is_a_number(value, found):
    """Zero is a value; without a declared one every operation counts 1."""
    assert order(registered(value=lambda **_: value), key="k").value == found
    assert order(registered(), key="k").value == 1.0


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "10", True, None])
def test_a_value_that_orders_nothing_is_refused(value):
    """Negative, endless, text or truth: no queue can be ordered by it."""
    with pytest.raises(BadValue, match="value"):
        order(registered(value=lambda **_: value), key="k")


# -- the code behind it ----------------------------------------------------------------------------------------------


def test_a_functions_code_has_a_name():
    """Another body, constant or called name is another digest; another place in the file is not."""
    texts = ["def f(a): return a + 1", "\n\ndef f(a): return a + 1", "def f(a): return a + 2", "def f(a): return g(a)"]
    texts += ["def f(a): return a in {'x', 'y', 'z'}", "def f(a):\n def g(): return 1\n return g"]
    digests = [code_digest(_made(text)) for text in texts]
    assert digests[0] == digests[1]
    assert len(set(digests)) == len(texts) - 1
    assert all(digest.startswith("fn1:") for digest in digests)


def test_what_has_no_code_has_no_digest():
    """A built-in or a callable object names no code of its own."""
    assert code_digest(len) == ""
    assert code_digest(Nowhere) == ""


def _made(text):
    space = {}
    exec(text, space)
    return space["f"]


# -- declarations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"onwer": "x"}, "may declare: name, effect"),
        ({"material": "/a"}, "a tuple of JSON pointers"),
        ({"result": "/id"}, "a tuple of JSON pointers"),
        ({"effect_by": "/id"}, "a tuple of JSON pointers"),
        ({"immaterial": ["/a"]}, "with a reason each"),
        ({"immaterial": {"/a": ""}}, "with a reason each"),
        ({"immaterial": "/a"}, "with a reason each"),
    ],
)
def test_a_slip_in_a_declaration_is_named(given, why):
    """An unknown name, a bare text for a list, an immaterial field without its reason: refused, with what is meant."""
    with pytest.raises(BadValue, match=why):
        declared(given, "pay")


def test_lists_are_taken_as_they_are_meant():
    """A list or a tuple of pointers is the same."""
    said = declared({"material": ["/a"], "result": ("/id",), "immaterial": {"/t": "names the run"}}, "pay")
    assert (said.material, said.result, said.immaterial) == (("/a",), ("/id",), {"/t": "names the run"})


def test_the_catalogue_is_what_these_tests_think_it_is():
    """The action these tests stand on is the laboratory's keyed one."""
    assert action().contract == contracts.load("lab.key")
