"""What a caller hands over, checked at the door: texts, people and numbers, each in one place for every entry."""

from __future__ import annotations

from counterfoil.domain.errors import BadValue
from counterfoil.domain.person import HOUSE, NO_AGENT, deceptive, is_agent, person, same

TEXT_CHARS_MAX = 2_000
"""A name, a reason or a URL; more is a document."""
NAME_CHARS_MAX = 200
"""A person's name; more is a sentence."""
REASON_CHARS_MAX = 4_000
"""Of a reason; what is longer belongs in the evidence."""
EVENTS_MAX = 2**53
"""A number of an event beyond it was never one."""


def checked_text(name: str, value: object, *, empty: bool = False) -> str:
    """Refuse what could not be stored, compared or shown as a name.

    Args:
        name: what it is, for the error.
        value: what was given.
        empty: nothing at all may be given; blanks alone never are.

    Raises:
        BadValue: it is no text, is blank where it must say something, or holds characters that do not print.
    """
    if not isinstance(value, str) or not (value.strip() or (empty and not value)) or len(value) > TEXT_CHARS_MAX:
        raise BadValue(name, value, wanted=f"text of {0 if empty else 1} to {TEXT_CHARS_MAX} characters, not blank")
    if not value.isprintable():
        raise BadValue(name, value, wanted="text that prints: no control characters, no lone surrogates")
    return value


def checked_name(name: str, value: object, *, empty: bool = False) -> str:
    """The name of somebody, as it is written: it passes for nobody else's.

    Raises:
        BadValue: it is none, or holds characters that look like others or like nothing.
    """
    said = checked_text(name, value, empty=empty).strip()
    problem = deceptive(said) if said else ""
    if problem:
        raise BadValue(name, said, wanted=f"a name that passes for no other: {problem}")
    return said


def checked_decider(name: str, value: object, *, house: bool = False) -> str:
    """Who decides something, in the normal form that goes on record.

    Args:
        name: what it is, for the error.
        value: who was named.
        house: the house may do it by a rule on record.

    Raises:
        BadValue: it is no name, passes for another, or is an agent's: an agent decides nothing.
    """
    said = checked_name(name, value)
    if house and said == HOUSE:
        return HOUSE
    if is_agent(said):
        raise BadValue(name, said, wanted=NO_AGENT)
    if len(said) > NAME_CHARS_MAX:
        raise BadValue(name, said[:40], wanted=f"a name of at most {NAME_CHARS_MAX} characters")
    if same(said, HOUSE):
        raise BadValue(name, said, wanted="a person or a service: the house decides nothing of this kind")
    return person(said)


def checked_reason(name: str, value: object, *, empty: bool = False) -> str:
    """One line that says why.

    Raises:
        BadValue: it is no text, is blank, too long, or does not print.
    """
    plain = value.strip() if isinstance(value, str) else None
    if plain is None or not (plain or empty) or len(plain) > REASON_CHARS_MAX or not plain.isprintable():
        shown = value[:40] if isinstance(value, str) else value
        raise BadValue(name, shown, wanted=f"one line of {0 if empty else 1} to {REASON_CHARS_MAX} characters")
    return plain


def checked_number(name: str, value: object, *, least: float, most: float) -> float:
    """A finite number within bounds, both of them allowed; `True` is none.

    Raises:
        BadValue: it is no number, is not finite, or lies outside.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:  # NaN fails it too
        raise BadValue(name, value, wanted=f"a number from {least:g} to {most:g}")
    return float(value)


def checked_count(name: str, value: object, *, least: int, most: int) -> int:
    """A whole number within bounds, both of them allowed.

    Raises:
        BadValue: it is no whole number, or lies outside.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadValue(name, value, wanted=f"a whole number from {least} to {most}")
    return value


def checked_seen(value: object) -> int | None:
    """The number of the last event somebody saw; None for what stands there now."""
    return None if value is None else checked_count("seen", value, least=0, most=EVENTS_MAX)
