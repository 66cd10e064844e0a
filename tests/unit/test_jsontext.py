"""JSON text from outside: read exactly, or refused with the place."""

from __future__ import annotations

import traceback

import pytest

from counterfoil.domain.canonical import PAYLOAD_BYTES_MAX, NotCanonical, loads
from counterfoil.domain.spelling import DEPTH_MAX


def refusal_of(text):
    """Return why the text is refused."""
    with pytest.raises(NotCanonical) as refusal:
        loads(text)
    return refusal.value


@pytest.mark.parametrize("text", ['{"a":[1,1.0,"1",true,null,{}]}', ' [ -0 , 1E2, "\\ud83d\\ude00" ] '])
def test_bytes_and_text_read_alike(text):
    """UTF-8 and the text decoded from it have one value, with the types that were written."""
    assert repr(loads(text)) == repr(loads(text.encode()))


def test_r27_integers_are_exact():
    """No integer passes through a double on its way in."""
    assert loads(b"[9007199254740992,9007199254740993,1152921504606846977]") == [2**53, 2**53 + 1, 2**60 + 1]
    assert loads(str(2**2048 - 1)) == 2**2048 - 1


@pytest.mark.parametrize(
    "digits", [str(2**2048), str(-(2**2048)), "9" * 641, "9" * 5000], ids=["bits", "negative", "641", "5000"]
)
def test_an_integer_too_long_for_some_interpreter_is_refused(digits):
    """An integer over the limit is refused by its place, before an interpreter's own limit can say otherwise."""
    flaw = refusal_of(f'{{"n":[{digits}]}}')
    assert (flaw.pointer, "integer of more than" in flaw.problem) == ("/n/0", True)


def test_a_key_that_stands_twice_is_named_where_it_stands():
    """A duplicate is found at any depth, and of several the outermost, which hides the others, is named."""
    assert refusal_of('{"a":{"b":1,"b":1}}').pointer == "/a/b"
    assert refusal_of('[0,{"a/b":1,"c":{"d":1,"d":2},"a/b":1}]').pointer == "/1/a~1b"
    assert "more than once" in refusal_of('{"a":1,"a":1}').problem


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400"])
def test_r32_what_is_no_finite_number_is_refused(text):
    """NaN, the infinities and a number that would become one are refused by their place."""
    assert refusal_of(f'{{"x":[{text}]}}').pointer == "/x/0"


@pytest.mark.parametrize(
    ("text", "pointer"), [('["\\ud800"]', "/0"), ('{"a\\udfff":1}', "/a\\udfff"), ('"\\ud800"', "")]
)
def test_r32_a_lone_surrogate_is_refused_and_never_replaced(text, pointer):
    """An escape that is half a character is refused, in a value and in a key, in words that can be printed."""
    flaw = refusal_of(text)
    assert flaw.pointer == pointer
    str(flaw).encode("utf-8")


def test_nesting_has_a_limit():
    """The deepest text that is read has 64 containers; the next is refused by its place, and so is any other."""
    assert loads("[" * DEPTH_MAX + "]" * DEPTH_MAX)
    assert refusal_of("[" * (DEPTH_MAX + 1) + "]" * (DEPTH_MAX + 1)).pointer == "/0" * DEPTH_MAX
    assert refusal_of('{"a":' * (DEPTH_MAX + 1) + "1" + "}" * (DEPTH_MAX + 1)).pointer == "/a" * DEPTH_MAX
    assert "nested deeper" in refusal_of("[" * 500_000 + "]" * 500_000).problem


def test_length_has_a_limit():
    """A text of exactly the limit is read, one byte more is not even decoded."""
    assert loads(b'"' + b"a" * (PAYLOAD_BYTES_MAX - 2) + b'"')
    assert "longer than 1048576 bytes" in refusal_of(b'"' + b"\xff" * (PAYLOAD_BYTES_MAX - 1) + b'"').problem


@pytest.mark.parametrize("text", [b"\xff", b'"\xed\xa0\x80"', b'"\xc0\xaf"', "[1]".encode("utf-16")], ids=range(4))
def test_bytes_that_are_not_utf8_are_refused(text):
    """No other encoding is guessed."""
    assert refusal_of(text).pointer == ""


@pytest.mark.parametrize(
    "text", ["", " ", "{", "[1,]", "{} {}", "01", "1.", "'a'", "{a:1}", '"\t"', "\ufeff1", "/**/1", "1,"]
)
def test_what_is_not_json_is_refused(text):
    """Nothing beyond RFC 8259 is read, and the place in the text is said."""
    assert "line 1, column" in refusal_of(text).problem


@pytest.mark.parametrize(
    "text", ['{"pin":"hunter2"} x', b'"hunter2\xff"', '{"p":["hunter2","\\ud800"]}', '{"a":"hunter2","a":1}']
)
def test_a_refusal_carries_no_value(text):
    """Neither the error nor what is chained to it holds the text that was refused."""
    flaw = refusal_of(text)
    assert (flaw.__cause__, flaw.__context__) == (None, None)
    assert "hunter2" not in "".join(traceback.format_exception(flaw))
