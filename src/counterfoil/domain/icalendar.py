"""iCalendar texts, as far as two of them are compared: named properties of their events."""

from __future__ import annotations

import re

COMPONENTS = frozenset({"VEVENT", "VTODO", "VJOURNAL"})
"""What a calendar resource holds one kind of (RFC 4791 4.1); time zones and alarms are not compared."""
LINES_MAX = 20_000
"""A text with more lines is not compared."""

_LINE = re.compile(r'([A-Za-z0-9-]+)((?:;[A-Za-z0-9-]+=(?:"[^"]*"|[^";:]*))*):(.*)', re.DOTALL)
_PARAMETER = re.compile(r';([A-Za-z0-9-]+)=("[^"]*"|[^";:]*)')
_TELLING = frozenset({"TZID", "VALUE"})
"""Parameters that change what a value means; servers may add or drop the others."""

Property = tuple[str, tuple[tuple[str, str], ...]]
"""A value with its telling parameters."""


def properties(text: str, names: tuple[str, ...]) -> dict[str, tuple[Property, ...]] | None:
    """The named properties of a calendar's components, or None when the text is not one whole calendar.

    Content lines are unfolded and text is unescaped (RFC 5545 3.1, 3.3.11), so that the same event in
    another spelling compares equal.
    """
    lines = re.sub(r"\r?\n[ \t]", "", text).strip().splitlines()
    if len(lines) > LINES_MAX:
        return None
    found: dict[str, list[Property]] = {name: [] for name in names}
    stack: list[str] = []
    for number, line in enumerate(lines):
        parts = _LINE.fullmatch(line)
        if parts is None:
            return None
        name, value = parts[1].upper(), parts[3]
        if not _nests(stack, name, value.upper(), first=number == 0):
            return None
        if len(stack) == 2 and stack[1] in COMPONENTS and name in found:  # noqa: PLR2004 - calendar, component
            found[name].append((_unescape(value), _telling(parts[2])))
    return None if stack or not lines else {name: tuple(sorted(values)) for name, values in found.items()}


def _nests(stack: list[str], name: str, value: str, *, first: bool) -> bool:
    """Follow BEGIN and END; False when the text is not one VCALENDAR from its first line to its last."""
    if name == "BEGIN":
        if not stack and not (first and value == "VCALENDAR"):
            return False
        stack.append(value)
        return True
    if name == "END":
        return bool(stack) and stack.pop() == value
    return bool(stack)


def _telling(parameters: str) -> tuple[tuple[str, str], ...]:
    pairs = ((name.upper(), value.strip('"')) for name, value in _PARAMETER.findall(parameters))
    return tuple(sorted(pair for pair in pairs if pair[0] in _TELLING))


def _unescape(value: str) -> str:
    return re.sub(r"\\([\\;,nN])", lambda found: "\n" if found[1] in "nN" else found[1], value)
