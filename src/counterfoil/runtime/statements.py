"""Reading statement files: CSV with a head, or one JSON object a line; what cannot be read stops nothing else."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import msgspec

from counterfoil.domain import body
from counterfoil.domain.errors import BadValue
from counterfoil.domain.pointer import MISSING
from counterfoil.domain.statement import Layout, Line

FILE_BYTES_MAX = 64 * 1024 * 1024
"""It is read whole: two lines for one operation may stand anywhere in it. A larger one is handed in in parts."""
LINES_MAX = 500_000
FIELD_CHARS_MAX = 512
"""As long as any name a provider gives to an object."""
FORMATS = ("csv", "jsonl")


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A line that could not be read; it is counted for nothing."""

    line: int
    problem: str


class _Wrong(Exception):
    """Why a line cannot be read."""


def read(content: bytes, layout: Layout, form: str, *, delimiter: str = ",") -> Iterator[Line | Broken]:
    """Read every line by its declared columns.

    Args:
        content: the file, UTF-8.
        layout: which column holds what.
        form: `csv` or `jsonl`.
        delimiter: of a CSV file.

    Raises:
        BadValue: it is no such file, is too large, or lacks a column that was declared.
    """
    if form not in FORMATS:
        raise BadValue("format", form, wanted=f"one of {', '.join(FORMATS)}")
    if len(content) > FILE_BYTES_MAX:
        raise BadValue("statement", len(content), wanted=f"at most {FILE_BYTES_MAX} bytes: hand it in in parts")
    problem = layout.problem()
    if problem:
        raise BadValue("layout", "", wanted=problem)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadValue("statement", error.start, wanted="a file in UTF-8; this byte is none") from None
    found = _csv(text, layout, delimiter) if form == "csv" else _jsonl(text, layout)
    for number, line in enumerate(found):
        if number >= LINES_MAX:
            raise BadValue("statement", LINES_MAX, wanted="at most so many lines: hand it in in parts")
        yield line


def _csv(text: str, layout: Layout, delimiter: str) -> Iterator[Line | Broken]:
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        raise BadValue("delimiter", delimiter, wanted="one character")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    head: list[str] | None = None
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error:
            yield Broken(line=rows.line_num, problem="is not well-formed CSV; nothing after it can be trusted")
            return
        if head is None:
            head = _head(row, layout)
        elif row:
            yield _made(rows.line_num, layout, row, head)


def _head(row: list[str], layout: Layout) -> list[str]:
    for column in layout.columns.values():
        if row.count(column) != 1:
            raise BadValue("column", column, wanted=f"stands {row.count(column)} times in the file's head, not once")
    return row


def _made(number: int, layout: Layout, row: list[str], head: list[str]) -> Line | Broken:
    if len(row) != len(head):
        return Broken(line=number, problem=f"has {len(row)} fields and the head {len(head)}")
    return _line(number, {name: row[head.index(column)] for name, column in layout.columns.items()})


def _jsonl(text: str, layout: Layout) -> Iterator[Line | Broken]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            # A fraction stays the text it is: no amount goes through binary floating point.
            found = json.loads(line, parse_float=str, parse_constant=_refuse, object_pairs_hook=_members)
            yield _line(number, {name: _at(found, column) for name, column in layout.columns.items()})
        except (ValueError, RecursionError, _Wrong) as error:
            problem = str(error) if isinstance(error, _Wrong) else "is not one JSON object"
            yield Broken(line=number, problem=problem)


def _at(found: object, column: str) -> str:
    """A member by its name, or by a JSON pointer; text and whole numbers only, and nothing where it is missing."""
    if not isinstance(found, dict):
        raise _Wrong("is not one JSON object")
    value = body.at(found, column) if column.startswith("/") else found.get(column)
    if value is MISSING or value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _Wrong(f"{column[:40]!r} is neither text nor a number")
    return str(value)


def _refuse(constant: str) -> None:
    raise _Wrong(f"{constant} is no number")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise _Wrong("has a member twice")
    return dict(pairs)


def _line(number: int, fields: dict[str, str]) -> Line | Broken:
    plain = {name: text.strip() for name, text in fields.items()}
    for name, text in plain.items():
        if len(text) > FIELD_CHARS_MAX or not text.isprintable():
            problem = f"its {name} is longer than {FIELD_CHARS_MAX} characters or does not print"
            return Broken(line=number, problem=problem)
    return Line(number=number, fields={str(name): text for name, text in plain.items()})
