"""Two calendar texts compare by their events' properties, however they are spelled."""

from __future__ import annotations

import pytest

from counterfoil.domain import icalendar
from counterfoil.domain.icalendar import properties

NAMES = ("UID", "DTSTART", "SUMMARY")


def calendar(*lines, end="\r\n"):
    """A calendar object with one event of these lines."""
    return end.join(["BEGIN:VCALENDAR", "BEGIN:VEVENT", *lines, "END:VEVENT", "END:VCALENDAR", ""])


def test_spelling_does_not_matter():
    """Order, folding, line ends, case of names and escapes are no difference (RFC 5545 3.1, 3.3.11)."""
    ours = calendar("UID:u1", "SUMMARY:Tea\\, then cake\\nand more", "DTSTART;TZID=Europe/Berlin:20260102T100000")
    theirs = calendar(
        'dtstart;x-a="b:;c";tzid="Europe/Berlin":20260102T100000', "Summary:Tea\\, then\r\n  cake\\Nand more", "uid:u1"
    )
    assert properties(ours, NAMES) == properties(theirs, NAMES)
    assert properties(ours, NAMES) == properties(ours.replace("\r\n", "\n"), NAMES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("DTSTART:20260102T100000", "DTSTART:20260102T100000Z"),
        ("DTSTART;TZID=A:20260102T100000", "DTSTART;TZID=B:20260102T100000"),
        ("DTSTART;VALUE=DATE:20260102", "DTSTART:20260102"),
        ("SUMMARY:Tea", "SUMMARY:tea"),
    ],
)
def test_meaning_does(one, other):
    """Another zone, kind of value or text is another event."""
    assert properties(calendar(one), NAMES) != properties(calendar(other), NAMES)


def test_only_the_events_own_properties_are_read():
    """Time zones and alarms have a DTSTART and a SUMMARY of their own."""
    text = calendar("UID:u1", "BEGIN:VALARM", "SUMMARY:ring", "END:VALARM").replace(
        "BEGIN:VEVENT", "BEGIN:VTIMEZONE\r\nDTSTART:1970\r\nEND:VTIMEZONE\r\nBEGIN:VEVENT"
    )
    assert properties(text, NAMES) == {"UID": (("u1", ()),), "DTSTART": (), "SUMMARY": ()}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "<html>no: calendar</html>",
        calendar("UID:u1").removesuffix("END:VCALENDAR\r\n"),
        calendar("UID:u1") + calendar("UID:u1"),
        calendar("UID:u1").replace("END:VEVENT", "END:VTODO"),
        "END:VCALENDAR",
        "UID:u1\r\n" + calendar(),
        "BEGIN:VEVENT\r\nEND:VEVENT",
        calendar("UID:u1") + "X:y",
        calendar("no colon"),
    ],
)
def test_what_is_not_one_whole_calendar_compares_with_nothing(text):
    """Cut, doubled or foreign texts yield nothing to compare."""
    assert properties(text, NAMES) is None


def test_a_text_without_end_is_not_searched():
    """More lines than the limit are not compared."""
    assert properties(calendar(*["X:y"] * icalendar.LINES_MAX), NAMES) is None
