"""A Python call and its payload: bound before it is compared, and passed on as it was frozen."""

from __future__ import annotations

import inspect
import itertools
import re

import pytest

from counterfoil.domain.binding import Binder, bind, unbind
from counterfoil.domain.canonical import canonical, parse

FUNCTIONS = (
    ordinary := lambda a, b=2, *, c, d=None: (a, b, c, d),
    positional := lambda a, b=0, /, c=False, *, d="": (a, b, c, d),
    starred := lambda a, /, b=1, *rest, c=3, **more: (a, b, rest, c, more),
    lambda *rest: rest,
    lambda **more: more,
    lambda: None,
)


def keep(*args, **kwargs):
    """Return what it was called with."""
    return args, kwargs


def calls():
    """Every call with up to three arguments by position and any of six by keyword."""
    words = [word for size in range(4) for word in itertools.combinations("abcdxy", size)]
    return [(args, dict.fromkeys(word, True)) for args in ((), (1,), (1, 2), (1, 2, 3)) for word in words]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: str(inspect.signature(function)))
def test_binding_is_pythons_own(function):
    """Every call is bound as Python binds it, defaults applied, or refused as Python refuses it."""
    signature = inspect.signature(function)
    binder = Binder(signature)
    for args, kwargs in calls():
        try:
            expected = signature.bind(*args, **kwargs)
        except TypeError as error:
            with pytest.raises(TypeError, match=f"^{re.escape(str(error))}$"):
                binder.bind(args, kwargs)
            continue
        expected.apply_defaults()
        if expected.arguments.keys() != signature.parameters.keys():  # Python 3.13.0 binds what it cannot call
            with pytest.raises(TypeError, match="missing a required argument"):
                binder.bind(args, kwargs)
            continue
        stars = {"rest": list(expected.arguments["rest"])} if "rest" in expected.arguments else {}
        assert binder.bind(args, kwargs) == dict(expected.arguments) | stars


def test_what_an_interpreter_leaves_unbound_is_refused():
    """A call for which Python finds no argument and says nothing is refused all the same."""

    class Forgetful(inspect.Signature):
        def bind(self, /, *args, **kwargs):
            return inspect.BoundArguments(self, {"more": kwargs})

    signature = Forgetful(inspect.signature(starred).parameters.values())
    with pytest.raises(TypeError, match="missing a required argument: 'a'"):
        bind(signature, (), {"a": 1})


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: str(inspect.signature(function)))
def test_a_frozen_call_binds_to_itself(function):
    """The call made from a payload that was frozen and read again has that very payload."""
    signature = inspect.signature(function)
    for args, kwargs in calls():
        try:
            payload = bind(signature, args, kwargs)
        except TypeError:
            continue
        frozen = parse(canonical(payload))
        again_args, again_kwargs = unbind(signature, frozen)
        assert bind(signature, again_args, again_kwargs) == payload == frozen


@pytest.mark.parametrize(
    ("omitted", "passed"),
    [
        (((1,), {"c": 3}), ((1, 2), {"c": 3})),
        (((1,), {"c": 3}), ((1,), {"c": 3, "d": None})),
        (((1,), {"c": 3}), ((), {"d": None, "c": 3, "b": 2, "a": 1})),
    ],
)
def test_r29_an_omitted_default_and_the_same_default_passed_are_one_payload(omitted, passed):
    """Whether a default is written out, and whether by position or keyword, does not change the payload."""
    signature = inspect.signature(ordinary)
    assert canonical(bind(signature, *omitted)) == canonical(bind(signature, *passed))


def test_r29_a_falsy_default_is_a_value():
    """The defaults 0, False and "" are bound as they are, and are not taken for a missing argument."""
    payload = bind(inspect.signature(positional), (None,), {})
    assert canonical(payload) == b'{"a":null,"b":0,"c":false,"d":""}'


def test_variable_arguments_stand_under_their_own_names():
    """`*args` is a list and `**kwargs` a dict of its own, so that no keyword can pose as a parameter."""
    payload = bind(inspect.signature(starred), (1, 2, 3), {"a": 4, "rest": 5})
    assert payload == {"a": 1, "b": 2, "rest": [3], "c": 3, "more": {"a": 4, "rest": 5}}
    args, kwargs = unbind(inspect.signature(starred), payload)
    assert keep(*args, **kwargs) == ((1, 2, 3), {"c": 3, "a": 4, "rest": 5})


def test_an_ordinary_call_asks_python_nothing():
    """A call without variable arguments takes the short way, with defaults that are false, too."""
    binder = Binder(inspect.signature(ordinary))
    falsy = Binder(inspect.signature(positional))
    binder._signature = falsy._signature = None
    assert binder.bind((1,), {"c": 3}) == {"a": 1, "b": 2, "c": 3, "d": None}
    assert binder.bind([], {"a": 1, "c": 3}) == {"a": 1, "b": 2, "c": 3, "d": None}
    assert falsy.bind((1,), {}) == {"a": 1, "b": 0, "c": False, "d": ""}


@pytest.mark.parametrize(
    ("payload", "named"),
    [
        ({"a": 1, "b": 2, "c": 3}, "d"),
        ({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}, "e"),
        ({"a": 1, "b": 2, "c": 3, "D": 4}, "D, d"),
    ],
)
def test_a_payload_of_another_signature_is_refused(payload, named):
    """A parameter that came or went since the payload was frozen is named, and no default of today takes its place."""
    with pytest.raises(TypeError, match=f"differ in {named}$"):
        unbind(inspect.signature(ordinary), payload)


@pytest.mark.parametrize(("broken", "kind"), [({"rest": 1}, "list"), ({"more": [1]}, "dict")])
def test_variable_arguments_of_another_type_are_refused(broken, kind):
    """What stands for `*args` is a list and what stands for `**kwargs` a dict, or nothing is called."""
    payload = {"a": 1, "b": 2, "rest": [], "c": 3, "more": {}} | broken
    with pytest.raises(TypeError, match=f"no {kind} under"):
        unbind(inspect.signature(starred), payload)
