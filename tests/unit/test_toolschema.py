"""A signature as a model sees it: every argument by name, with what its annotation says."""

from __future__ import annotations

import decimal
import inspect
import typing
from datetime import datetime

import msgspec
import pytest

from counterfoil.domain.errors import BadValue
from counterfoil.runtime.toolschema import schema_of


class Address(msgspec.Struct):
    street: str
    lines: list[str] = []


class Own:
    """A class no schema is known of."""


def schema(function):
    return schema_of(inspect.signature(function, eval_str=True))


def test_names_types_and_defaults():
    """What has a default is optional; nothing but the arguments is accepted."""

    def refund(order_id: str, amount: int, note: str | None = None):
        raise NotImplementedError

    assert schema(refund) == {
        "type": "object",
        "properties": {
            "order_id": {"type": "string"},
            "amount": {"type": "integer"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["order_id", "amount"],
        "additionalProperties": False,
    }


def test_structures_are_defined_once():
    """A structure stands under $defs and is referred to from wherever it is used."""

    def ship(to: Address, back: Address):
        raise NotImplementedError

    made = schema(ship)
    assert made["properties"] == {"to": {"$ref": "#/$defs/Address"}, "back": {"$ref": "#/$defs/Address"}}
    assert made["$defs"]["Address"]["required"] == ["street"]


def test_what_says_nothing_may_be_anything():
    """No annotation, Any and a class without a schema are described by nothing, not refused."""

    def odd(plain, anything: typing.Any, own: Own):
        raise NotImplementedError

    assert schema(odd)["properties"] == {"plain": {}, "anything": {}, "own": {}}


def test_dates_and_decimals_have_their_json_form():
    """What is canonical beyond JSON is described as the text it is given as."""

    def pay(at: datetime, amount: decimal.Decimal):
        raise NotImplementedError

    made = schema(pay)["properties"]
    assert (made["at"]["type"], made["amount"]["type"]) == ("string", "string")


def test_further_keywords_are_allowed_where_the_function_takes_them():
    """**kwargs is no argument of its own: it lets others in."""

    def log(event: str, **fields: str):
        raise NotImplementedError

    made = schema(log)
    assert list(made["properties"]) == ["event"]
    assert made["additionalProperties"] is True


@pytest.mark.parametrize("function", [lambda *rows: None, lambda a, /: None], ids=["rest", "position"])
def test_an_argument_without_a_name_is_refused(function):
    """A model gives every argument by name; what takes only a position cannot be offered."""
    with pytest.raises(BadValue, match="only a position"):
        schema(function)
