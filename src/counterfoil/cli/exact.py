"""Texts as they are, for whoever decides on them: laid out, and with each deceptive character spelled and named."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from counterfoil.cli.marks import AMBER
from counterfoil.domain.suspicious import Kind, Oddity, oddities, spelled

INDENT = 2
_OPEN, _CLOSE = ("{", "["), ("}", "]")
_PART = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^{}\[\],:"]+', re.DOTALL)
_SAID = {
    Kind.BIDIRECTIONAL: "changes the order of what is shown",
    Kind.INVISIBLE: "cannot be seen",
    Kind.UNASSIGNED: "has no meaning of its own",
    Kind.LOOK_ALIKE: "looks like another letter",
}


def laid_out(plain: str) -> list[str]:
    """The lines of a JSON text: white space is all that is added, so that nothing is read and written anew."""
    parts = _PART.findall(plain)
    lines, line, depth = [], "", 0
    for part, after in zip(parts, [*parts[1:], ""], strict=True):
        if part in _CLOSE:
            depth -= 1
            if not line.endswith(_OPEN):
                lines.append(line)
                line = " " * INDENT * depth
        line += f"{part} " if part == ":" else part
        depth += part in _OPEN
        if (part in _OPEN and after not in _CLOSE) or part == ",":
            lines.append(line)
            line = " " * INDENT * depth
    return [*lines, line]


def flagged(text: str) -> RenderableType:
    """A text with its deceptive characters as codes, and below it what each of them is."""
    found = oddities(text)
    shown = Text(spelled(text))
    if not found:
        return shown
    return Group(shown, *(Text(f"  ! {said}", style=AMBER) for said in _told(found)))


def _told(found: tuple[Oddity, ...]) -> Iterator[str]:
    """Each character once, however often it stands there."""
    for char, kind in dict.fromkeys((oddity.char, oddity.kind) for oddity in found):
        times = sum(oddity.char == char and oddity.kind is kind for oddity in found)
        one = next(oddity for oddity in found if oddity.char == char)
        named = f"{one.code} {one.name}".strip()
        yield f"{named} {_SAID[kind]}{f', {times} times' if times > 1 else ''} ({kind.value})"
