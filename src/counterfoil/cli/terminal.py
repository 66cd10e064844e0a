"""What reaches the terminal: stored text with its control characters made visible, colour only where it is wanted."""

from __future__ import annotations

import errno
import json
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console

PIPE_COLUMNS = 120
"""How wide a page may be where no terminal says: what people read side by side; scripts take the JSON."""


def safe(text: object) -> str:
    r"""Return text as one line that no terminal acts upon: what does not print is shown as `\x1b`, `\u202e`, `\n`.

    Escape sequences, line breaks, bidirectional overrides, zero-width and private-use characters alike.
    """
    plain = str(text)
    if plain.isprintable():
        return plain
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in plain)


def clipped(text: object, width: int) -> str:
    """Return safe text of at most `width` characters, with an ellipsis where some was cut."""
    shown = safe(text)
    return shown if len(shown) <= width else shown[: width - 1] + "…"


_ONE = {"switches": "switch", "lives": "life", "boundaries": "boundary"}
"""Words of which one is not the same without its last letter."""


def counted(count: int, what: str) -> str:
    """A number and what there is so often of, in the plural: `1 cell`, `1,200 cells`."""
    return f"{count:,} {what}" if count != 1 else f"1 {_ONE.get(what) or what.removesuffix('s')}"


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal that may be coloured; NO_COLOR (no-color.org) and TERM=dumb forbid it."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def console(stream: TextIO | None = None) -> Console:
    """Return a rich console on a stream; it interprets nothing in the text it is given.

    Args:
        stream: default: standard output.
    """
    from rich.console import Console

    class Page(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(
                errno.EPIPE, os.strerror(errno.EPIPE)
            )  # rich would exit by a code that means something else here

    out = sys.stdout if stream is None else stream
    terminal = out.isatty()
    return Page(
        file=out,
        force_terminal=terminal,
        color_system="auto" if wants_colour(out) else None,
        no_color=not wants_colour(out),
        width=None if terminal else _piped_columns(),
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )


def _piped_columns() -> int:
    """What COLUMNS says, where it says a width (POSIX, environment variables); else what people read side by side."""
    said = os.environ.get("COLUMNS", "")
    return int(said) if said.isascii() and said.isdecimal() and int(said) > 0 else PIPE_COLUMNS


def print_json(value: object) -> None:
    """Print one JSON value on one line of standard output, in ASCII: no byte of it can be an escape sequence."""
    print(json.dumps(value, ensure_ascii=True, separators=(", ", ": "), default=_spelled), flush=True)


def _spelled(value: object) -> object:
    """What JSON lacks (exact decimals, bytes, times) in the house's own tagged form."""
    from counterfoil.domain import canonical

    spelled: object = json.loads(canonical.canonical(value))
    return spelled


def note(text: object) -> None:
    """Print one line on standard error."""
    print(safe(text), file=sys.stderr, flush=True)
