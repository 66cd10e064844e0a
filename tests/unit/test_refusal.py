"""Whoever wrote a file is told what may stand there: keys, words and types, as people call them."""

from __future__ import annotations

import enum

import msgspec
import pytest

from counterfoil.contracts.refusal import in_words


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    colour: Colour = Colour.RED
    size: float | str = 1.0
    kept: float | Colour = 1.0
    sure: bool | Colour = True


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    named: dict[str, Inner] = {}


@pytest.mark.parametrize(
    ("raw", "at", "said"),
    [
        ({"iner": {}}, (), "unknown key; known are inner, many, named"),
        ({"inner": {"color": "red"}}, ("inner",), "unknown key; known are colour, size, kept, sure"),
        ({"inner": {"colour": "green"}}, ("inner", "colour"), "must be one of red, blue"),
        ({"many": [{"colour": "green"}]}, ("many", "0", "colour"), "must be one of red, blue"),
        ({"named": {"x": {"colour": 1}}}, ("named", "x", "colour"), "must be text, and is a whole number"),
        ({"inner": {"size": []}}, ("inner", "size"), "must be text or a number, and is a list"),
        ({"inner": {"kept": "green"}}, ("inner", "kept"), "must be a number or one of red, blue"),
        ({"inner": {"sure": "perhaps"}}, ("inner", "sure"), "must be one of true, false, red, blue"),
        ({"many": {}}, ("many",), "must be a list, and is a mapping of keys"),
    ],
)
def test_a_refusal_says_what_is_known(raw, at, said):
    """The keys of that place, the words of that value, and no type by a programmer's name."""
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.convert(raw, Outer)
    told = in_words(Outer, str(refused.value).partition(" - at `")[0], at)
    assert sorted(told.replace(", and", " and").split()) == sorted(said.replace(", and", " and").split())


def test_what_is_not_understood_is_said_as_it_is():
    """Another sentence of the model's is not turned into a wrong one."""
    assert in_words(Outer, "Expected something else", ("nowhere",)) == "expected something else"
