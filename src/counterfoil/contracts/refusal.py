"""What a model refuses in a file, in words: the keys it knows, the words it takes, and types as people call them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from msgspec import inspect

from counterfoil.contracts.document import Tokens

_WORDS = {
    "str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "null": "null",
    "array": "a list", "object": "a mapping of keys",
}  # fmt: skip
_EXPECTED = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")


def in_words(model: type[msgspec.Struct], problem: str, at: Tokens) -> str:
    """Say a model's refusal so that whoever wrote the file can mend it; values are not quoted by it.

    Args:
        model: what the file is read as.
        problem: the model's own words, without its path.
        at: where: the value that is refused, or the mapping with the key that is.
    """
    here = list(_at(inspect.type_info(model), at))
    if problem.startswith("Object contains unknown field"):
        return f"unknown key; known are {', '.join(_keys(here))}" if _keys(here) else "unknown key"
    words = _choices(here)
    if words and problem.startswith("Invalid "):
        number = any(isinstance(one, inspect.IntType | inspect.FloatType) for one in here)
        return f"must be {'a number or ' if number else ''}one of {', '.join(words)}"
    typed = _EXPECTED.search(problem)
    if typed:
        wanted = [_WORDS.get(part, part) for part in typed[1].split(" | ")]
        wanted = [word for word in wanted if not (word == "a whole number" and "a number" in wanted)]
        got = _WORDS.get(typed[2], typed[2])
        return f"must be {' or '.join(dict.fromkeys(wanted))}, and is {got}"
    return problem[:1].lower() + problem[1:]


def _keys(here: list[inspect.Type]) -> list[str]:
    return [f.encode_name for t in here if isinstance(t, inspect.StructType) for f in t.fields]


def _choices(here: list[inspect.Type]) -> list[str]:
    found: list[str] = []
    for one in here:
        if isinstance(one, inspect.EnumType):
            found += [str(member.value) for member in one.cls]
        elif isinstance(one, inspect.LiteralType):
            found += [str(value) for value in one.values]
        elif isinstance(one, inspect.BoolType):
            found += ["true", "false"]
    return found


def _at(found: inspect.Type, at: Tokens) -> Iterator[inspect.Type]:
    """Every type that a value at this place may have."""
    if isinstance(found, inspect.Metadata):
        yield from _at(found.type, at)
    elif isinstance(found, inspect.UnionType):
        for one in found.types:
            yield from _at(one, at)
    elif not at:
        yield found
    elif isinstance(found, inspect.StructType):
        for field in found.fields:
            if field.encode_name == at[0]:
                yield from _at(field.type, at[1:])
    elif isinstance(found, inspect.DictType):
        yield from _at(found.value_type, at[1:])
    elif isinstance(found, inspect.VarTupleType | inspect.ListType):
        yield from _at(found.item_type, at[1:])
