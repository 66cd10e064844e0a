"""Who somebody is, however the name is spelled: the one form in which names are compared, counted and recorded.

`dana`, `Dana`, ` user:dana` and `user:dana (uid 1000)` are one person, and `AGENT :bot` is an agent.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

USER = "user"
HOUSE = "house"
"""What decides by a rule on record, where no person does."""
NO_AGENT = "a person or a service: an agent decides nothing"
AGENT = "agent:"
"""An agent's name begins with it: none of them decides anything."""

_UID = " (uid "
"""A terminal adds the user's number to a name; it makes nobody somebody else."""
_PHONETIC = (range(0x0250, 0x02B0), range(0x1D00, 0x1DC0), range(0xA720, 0xA800), range(0xAB30, 0xAB70))
"""Latin letters of phonetic alphabets, many of them drawn like plain ones."""


def person(name: str) -> str:
    """Return the normal form of a name, `KIND:NAME`; a name without a kind is a user's. Nothing is refused here."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _bare(name)).casefold())
    parts = [" ".join(part.split()) for part in text.split(":")]
    while len(parts) > 1 and parts[0] in {"", USER}:  # `user:agent:bot` is no user
        parts = parts[1:]
    return ":".join(parts if len(parts) > 1 else [USER, *parts])


def is_agent(name: str) -> bool:
    """Whether a name is an agent's, however it is spelled."""
    return person(name).startswith(AGENT)


def same(one: str, other: str) -> bool:
    """Whether two names are one person's."""
    return person(one) == person(other)


def is_one_of(name: str, others: Iterable[str]) -> bool:
    """Whether a name is one of these people's."""
    return person(name) in map(person, others)


def distinct(names: Iterable[str], *, besides: str = "") -> tuple[str, ...]:
    """Each person once, by the spelling that came first.

    Args:
        names: as they stand on record.
        besides: whoever asked, and so does not count; agents never do.
    """
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(person(name), name)
    return tuple(name for who, name in found.items() if not is_agent(name) and not (besides and who == person(besides)))


def deceptive(name: str) -> str:
    """Say why a name could pass for another's, or is none at all; empty where it may stand."""
    bare = _bare(name)
    if not person(name).partition(":")[2]:
        return "it names nobody"
    if bare.isascii() and bare.isprintable():
        return ""
    from counterfoil.domain.suspicious import oddities  # the ordinary name pays nothing for it

    odd = next(iter(oddities(bare)), None)
    if odd is not None:
        return f"{odd.code} {odd.name}".strip() + f" is {odd.kind.value}"
    found = next((char for char in bare if _passes(char)), "")
    return f"U+{ord(found):04X} {unicodedata.name(found, '')} passes for another character" if found else ""


def _bare(name: str) -> str:
    return name.partition(_UID)[0]


def _passes(char: str) -> bool:
    """Signs other than plain ones, and letters that nobody's name is written with."""
    if char.isascii():
        return False
    return unicodedata.category(char)[0] in "PS" or any(ord(char) in block for block in _PHONETIC)
