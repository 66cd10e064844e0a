"""JSON pointers (RFC 6901): where in a value something stands.

Everything here works on plain values (dicts and lists) and never changes the one it was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, cast

TOKENS_MAX: Final = 64
"""As deep as a canonical value may be: a longer pointer could never find anything."""

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")
"""RFC 6901, section 4: no leading zeros; nine digits are more than any payload has items."""

_STRAY_TILDE: Final = re.compile(r"~(?![01])")


class Missing(Enum):
    """What stands where nothing stands; never the same as null."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING


class BadPointer(ValueError):
    """The text is no JSON pointer, or it names no place that could be written; nothing was changed."""

    def __init__(self, pointer: str, problem: str) -> None:
        super().__init__(pointer, problem)
        self.pointer, self.problem = pointer, problem

    def __str__(self) -> str:
        return f"pointer {self.pointer!r} {self.problem}"


def parse(text: str) -> tuple[str, ...]:
    """Return the reference tokens of a JSON pointer; `""`, the whole value, has none.

    Raises:
        BadPointer: it does not start with "/", holds a "~" that escapes nothing or a lone surrogate, or is too long.
    """
    if not text:
        return ()
    if not text.startswith("/"):
        raise BadPointer(text, "does not start with '/'")
    if _STRAY_TILDE.search(text):
        raise BadPointer(text, "holds a '~' that is neither '~0' nor '~1'")
    if printable(text) != text:
        raise BadPointer(printable(text), "holds a lone surrogate")
    tokens = text[1:].split("/")
    if len(tokens) > TOKENS_MAX:
        raise BadPointer(text, f"has more than {TOKENS_MAX} tokens")
    # "~1" first, as RFC 6901 section 4 asks: the other way round "~01" would become "/" instead of "~1".
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)


def write(tokens: tuple[str, ...] | list[str]) -> str:
    """Return the JSON pointer with these tokens; a lone surrogate is written out, so that the text can be shown."""
    return printable("".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens))


def printable(text: str) -> str:
    r"""Return the text with every lone surrogate spelled as `\udxxx`, which any terminal, page or store can take."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def get(value: object, tokens: tuple[str, ...]) -> object:
    """Return what stands at the pointer, or `MISSING`: a null that is there is `None`."""
    for token in tokens:
        if isinstance(value, dict):
            value = value.get(token, MISSING)
        elif isinstance(value, (list, tuple)) and _INDEX.fullmatch(token) and int(token) < len(value):
            value = value[int(token)]
        else:
            return MISSING
    return value


def without(value: object, tokens: tuple[str, ...]) -> object:
    """Return the value less what stands at the pointer; the value itself where nothing stands there.

    Items behind a removed one move up: `without_all` takes several pointers as they are declared.

    Raises:
        BadPointer: the pointer is the whole value, of which nothing would be left.
    """
    if not tokens:
        raise BadPointer("", "is the whole value, which cannot be left out")
    if get(value, tokens) is MISSING:
        return value
    return _rebuilt(value, tokens, MISSING)


def without_all(value: object, paths: Iterable[tuple[str, ...]]) -> object:
    """Return the value less what stands at each pointer, whatever their order and however many lead into one list.

    Raises:
        BadPointer: one of them is the whole value.
    """
    # The last item of a list goes first, so that the others still stand where they were declared to; of two indexes
    # without leading zeros the longer is the larger.
    for path in sorted(paths, key=lambda path: [(len(token), token) for token in path], reverse=True):
        value = without(value, path)
    return value


def put(value: object, tokens: tuple[str, ...], new: object) -> object:
    """Return the value with `new` at the pointer; a member may be new, an item of a list must be there already.

    Raises:
        BadPointer: the place does not exist: its parent is missing, is no container or has no such item.
    """
    if not tokens:
        return new
    parent = get(value, tokens[:-1])
    if not isinstance(parent, dict) and (not isinstance(parent, (list, tuple)) or get(parent, tokens[-1:]) is MISSING):
        raise BadPointer(write(tokens), "names no place in the value")
    return _rebuilt(value, tokens, new)


def _rebuilt(value: object, tokens: tuple[str, ...], new: object) -> object:
    """Copy the containers along a pointer whose parent exists, its last token set to `new` or, for `MISSING`, gone."""
    copy: Any = dict(value) if isinstance(value, dict) else list(cast("list[object]", value))
    place = tokens[0] if isinstance(value, dict) else int(tokens[0])
    if len(tokens) > 1:
        copy[place] = _rebuilt(copy[place], tokens[1:], new)
    elif new is MISSING:
        del copy[place]
    else:
        copy[place] = new
    return cast("object", copy)
