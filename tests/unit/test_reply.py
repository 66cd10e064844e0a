"""What is read off a reply before anybody judges it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from counterfoil.domain import reply
from counterfoil.domain.answer import Replied
from counterfoil.domain.payload import RESULT_BYTES_MAX

DATE = "Mon, 30 Nov 2026 01:00:00 GMT"


def replied(**headers):
    """A 503 with these headers."""
    return Replied(status=503, headers=tuple((name.replace("_", "-"), value) for name, value in headers.items()))


def test_a_header_that_stands_twice_says_nothing():
    """Two values are no value."""
    assert reply.header(Replied(status=200, headers=(("a", "1"), ("a", "2"), ("b", "3"))), "a") == ""
    assert reply.header(Replied(status=200, headers=(("a", "1"),)), "a") == "1"


def test_a_status_matches_itself_or_its_class():
    """`404` and `4xx` hold 404; nothing else does."""
    assert reply.matches(404, ("404",))
    assert reply.matches(404, ("200", "4xx"))
    assert not reply.matches(404, ("40", "5xx", "400"))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": " 7 "}, 7.0),
        ({"retry_after": "9" * 400}, reply.RETRY_AFTER_SECONDS_MAX),
        ({"retry_after": "-1"}, None),
        ({"retry_after": "1.5"}, None),
        ({"retry_after": "soon", "date": DATE}, None),
        ({"retry_after": "²"}, None),
        ({"retry_after": "Mon, 30 Nov 2026 01:01:30 GMT", "date": DATE}, 90.0),
        ({"retry_after": "Mon, 30 Nov 2026 00:01:30 GMT", "date": DATE}, 0.0),
        ({"retry_after": "Mon, 30 Nov 2099 00:01:30 GMT", "date": DATE}, reply.RETRY_AFTER_SECONDS_MAX),
        ({"retry_after": "Mon, 30 Nov 2026 01:01:30 GMT"}, None),
        ({"retry_after": "Mon, 30 Nov 2026 01:01:30 -0000", "date": DATE}, None),
    ],
)
def test_the_providers_word_on_when_to_ask_again(headers, seconds):
    """Seconds, or a date counted from the reply's own date, within a day (RFC 9110 10.2.3)."""
    assert reply.retry_after_seconds(replied(**headers)) == seconds


def test_a_name_is_found_in_body_or_header():
    """Text or whole number at a pointer, or one header; cut where it is absurdly long."""
    answer = Replied(status=201, headers=(("location", "/e/1"),))
    assert reply.name_at(answer, {"id": "e1"}, "/id") == "e1"
    assert reply.name_at(answer, {"id": 7}, "/id") == "7"
    assert reply.name_at(answer, {"id": True}, "/id") == ""
    assert reply.name_at(answer, {}, "/id") == ""
    assert reply.name_at(answer, {}, "header:location") == "/e/1"
    assert reply.name_at(answer, {"id": "e1"}, "") == ""
    assert len(reply.name_at(answer, {"id": "x" * 9999}, "/id")) == reply.EXTERNAL_ID_CHARS_MAX


def test_a_result_is_what_the_pointers_name():
    """Missing is null; no pointers is the document; too large is nothing."""
    assert reply.result_of({"a": "/x", "b": "/y"}, {"x": [1]}) == {"a": [1], "b": None}
    assert reply.result_of({}, {"x": 1}) == {"x": 1}
    assert reply.result_of({}, "x" * RESULT_BYTES_MAX) is None
    assert reply.result_of({}, "x" * (RESULT_BYTES_MAX - 2)) is not None
    assert reply.result_of({"a": "/x"}, {"x": object()}) is None
    assert reply.result_of({"a": "/x"}, {"x": Decimal("1.50")}) == {"a": Decimal("1.50")}
