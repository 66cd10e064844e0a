"""JSON bodies are read strictly and compared by value and type."""

from __future__ import annotations

import pytest

from counterfoil.domain import body
from counterfoil.domain.pointer import MISSING


@pytest.mark.parametrize("content", [b"", b"  \r\n"])
def test_an_empty_body_is_no_document(content):
    """Nothing is not null."""
    assert body.parse(content) == body.Parsed(ok=False, reason="empty_body")


@pytest.mark.parametrize(
    "content",
    [
        b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":1}{"b":2}', b'{"a":', b"<html>", b"\xff", b'"\\ud800"', b"[" * 100_000,
        b"1e999",
    ],
)  # fmt: skip
def test_what_can_be_read_two_ways_is_no_document(content):
    """Duplicate keys, NaN, trailing or missing bytes, bad UTF-8, lone surrogates and bottomless nesting."""
    assert body.parse(content) == body.Parsed(ok=False, reason="not_json")


def test_a_document_is_read():
    """One complete JSON text, null included."""
    assert body.parse(b" null ") == body.Parsed(ok=True, value=None)
    assert body.parse(b'{"a":[1,2.0]}').value == {"a": [1, 2.0]}


VALUES = [None, True, False, 0, 1, 0.0, 1.0, "", "1", [], [1], [1.0], [1, 1], {}, {"a": 1}, {"a": True}, {"b": 1}]


@pytest.mark.parametrize("left", VALUES, ids=repr)
def test_values_equal_themselves_only(left):
    """`1`, `1.0`, `true` and `"1"` are four values, inside containers too."""
    assert [right for right in VALUES if body.same(left, right)] == [left]
    assert sum(body.same(left, right) for right in VALUES) == 1


def test_a_pointer_finds_or_does_not():
    """What is no pointer finds nothing and breaks nothing."""
    assert body.at({"a": {"b": None}}, "/a/b") is None
    assert body.at({"a": 1}, "/b") is MISSING
    assert body.at({"a": 1}, "no pointer") is MISSING


def test_documents_are_written_one_way():
    """Sorted, without spaces, in UTF-8."""
    assert body.encode({"b": "é", "a": [1.0]}) == '{"a":[1.0],"b":"é"}'.encode()
    with pytest.raises(TypeError):
        body.encode({"a": b"x"})
