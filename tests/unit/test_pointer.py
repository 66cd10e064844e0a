"""RFC 6901: what a pointer is, what stands at it, and the value without it."""

from __future__ import annotations

import copy

import pytest

from counterfoil.domain import canonical, pointer
from counterfoil.domain.pointer import MISSING, BadPointer

RFC_DOCUMENT = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", RFC_DOCUMENT),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/e^f", 3),
        ("/g|h", 4),
        ("/i\\j", 5),
        ('/k"l', 6),
        ("/ ", 7),
        ("/m~0n", 8),
    ],
)
def test_the_examples_of_the_rfc(text, expected):
    """Every example of RFC 6901, section 5, names what the RFC says it names."""
    assert pointer.get(RFC_DOCUMENT, pointer.parse(text)) == expected


@pytest.mark.parametrize("text", ["", "/", "//", "/a~1b/m~0n", "/~01", "/~00", "/é/\U0001f600", "/0/-"])
def test_writing_undoes_parsing(text):
    """A pointer written from its tokens is the pointer that was parsed."""
    assert pointer.write(pointer.parse(text)) == text


def test_a_tilde_is_unescaped_once():
    """`~01` is the key `~1` and not `/`."""
    assert pointer.parse("/~01") == ("~1",)


@pytest.mark.parametrize("text", ["a", "a/b", "#/a", " /a", "/a~", "/~2", "/a~/b", "/\ud800"])
def test_what_is_no_pointer_is_refused(text):
    """Text that RFC 6901 does not allow is refused, in words that any terminal can print."""
    with pytest.raises(BadPointer) as refusal:
        pointer.parse(text)
    str(refusal.value).encode("utf-8")


def test_a_pointer_reaches_every_canonical_value_and_no_deeper():
    """A pointer may be as long as a value may be deep, and no longer."""
    assert pointer.TOKENS_MAX == canonical.DEPTH_MAX
    assert len(pointer.parse("/a" * pointer.TOKENS_MAX)) == pointer.TOKENS_MAX
    with pytest.raises(BadPointer, match="more than 64"):
        pointer.parse("/a" * (pointer.TOKENS_MAX + 1))


def test_a_lone_surrogate_in_a_written_pointer_is_spelled_out():
    """A pointer to a key that no text can carry can be shown all the same."""
    assert pointer.write(("a", "\ud800")) == "/a/\\ud800"


@pytest.mark.parametrize(
    "text",
    ["/b", "/a/b", "/list/3", "/list/-", "/list/01", "/list/x", "/list/-1", "/list/+1", "/list/\u0660", "/n/0", "/s/0"],
)
def test_nothing_is_missing_and_not_null(text):
    """Where nothing stands the answer is MISSING; an index is written without sign, leading zero or foreign digit."""
    value = {"a": None, "list": (1, None, 3), "n": 1, "s": "text"}
    assert pointer.get(value, pointer.parse(text)) is MISSING


@pytest.mark.parametrize("text", ["/a", "/list/1"])
def test_a_null_that_stands_there_is_none(text):
    """A null is found."""
    assert pointer.get({"a": None, "list": (1, None, 3)}, pointer.parse(text)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a", {"list": [{"x": 1, "y": 2}, 5]}),
        ("/list/0", {"a": None, "list": [5]}),
        ("/list/1", {"a": None, "list": [{"x": 1, "y": 2}]}),
        ("/list/0/x", {"a": None, "list": [{"y": 2}, 5]}),
        ("/list/2", {"a": None, "list": [{"x": 1, "y": 2}, 5]}),
        ("/b", {"a": None, "list": [{"x": 1, "y": 2}, 5]}),
        ("/a/b", {"a": None, "list": [{"x": 1, "y": 2}, 5]}),
    ],
)
def test_without_removes_that_and_nothing_else(text, expected):
    """What stands at the pointer is left out, a null too, and the value that was given is not touched."""
    value = {"a": None, "list": [{"x": 1, "y": 2}, 5]}
    before = copy.deepcopy(value)
    assert pointer.without(value, pointer.parse(text)) == expected
    assert value == before


def test_without_the_whole_value_is_refused():
    """A value cannot be left out of itself."""
    with pytest.raises(BadPointer, match="whole value"):
        pointer.without({"a": 1}, ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "new"),
        ("/a", {"a": "new", "list": [{"x": 1}, 5]}),
        ("/b", {"a": None, "list": [{"x": 1}, 5], "b": "new"}),
        ("/list/1", {"a": None, "list": [{"x": 1}, "new"]}),
        ("/list/0/x", {"a": None, "list": [{"x": "new"}, 5]}),
        ("/list/0/y", {"a": None, "list": [{"x": 1, "y": "new"}, 5]}),
    ],
)
def test_put_changes_that_and_nothing_else(text, expected):
    """The new value stands at the pointer, everything else as before, and the value that was given is not touched."""
    value = {"a": None, "list": [{"x": 1}, 5]}
    before = copy.deepcopy(value)
    assert pointer.put(value, pointer.parse(text), "new") == expected
    assert value == before


@pytest.mark.parametrize("text", ["/a/b", "/c/d", "/list/2", "/list/-", "/list/0/x/y"])
def test_put_where_there_is_no_place_is_refused(text):
    """Nothing is invented on the way to a pointer, and a list does not grow."""
    with pytest.raises(BadPointer) as refusal:
        pointer.put({"a": None, "list": [{"x": 1}, 5]}, pointer.parse(text), "new")
    assert refusal.value.pointer == text
