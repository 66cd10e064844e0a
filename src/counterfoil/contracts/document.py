"""A YAML file as plain values, with the line of every key: what YAML readers disagree about is refused."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import yaml

BYTES_MAX = 256 * 1024
"""Ten times the longest file of this kind that a person would review."""
DEPTH_MAX = 16
"""Twice as deep as any model read from such a file."""

_PREFIX = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")

Tokens = tuple[str, ...]
Refuse = Callable[[int, str], Exception]
"""Makes the error for a line (from 1; 0 is the file itself) and a problem; the file's values are never quoted."""


class Document:
    """One YAML file, read strictly: no anchors, no key twice, no spelling that means something else elsewhere.

    Args:
        text: the file's text.
        refuse: makes the error that is raised.
    """

    def __init__(self, text: str, refuse: Refuse) -> None:
        self._refuse = refuse
        self._lines: dict[Tokens, int] = {(): 1}
        self.values = self._plain(self._compose(text), ())

    def line_of(self, at: Tokens) -> int:
        """The line where a key or item stands, or its nearest parent that is there."""
        while at not in self._lines:
            at = at[:-1]
        return self._lines[at]

    def _compose(self, text: str) -> yaml.Node:
        import yaml

        reader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            self._survey(yaml.parse(text, Loader=reader))
            node = yaml.compose(text, Loader=reader)
        except yaml.MarkedYAMLError as error:
            line = _line(error.problem_mark or error.context_mark)
            raise self._refuse(line, f"is not YAML: {error.problem or error.context}") from None
        except yaml.YAMLError as error:
            raise self._refuse(1, f"is not YAML: {getattr(error, 'reason', 'unreadable')}") from None
        if node is None:
            raise self._refuse(1, "is empty")
        return node

    def _survey(self, events: Iterable[yaml.Event]) -> None:
        """Refuse what could make a small file large or deep, before anything is built of it."""
        import yaml

        depth = 0
        for event in events:
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH_MAX:
                raise self._refuse(_line(event.start_mark), f"is nested deeper than {DEPTH_MAX}")
            if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
                raise self._refuse(_line(event.start_mark), "anchors and aliases are not used here")

    def _plain(self, node: yaml.Node, at: Tokens) -> object:
        import yaml

        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, at)
        if isinstance(node, yaml.SequenceNode):
            return [self._item(item, (*at, str(index))) for index, item in enumerate(node.value)]
        return self._scalar(node)

    def _item(self, node: yaml.Node, at: Tokens) -> object:
        self._lines[at] = node.start_mark.line + 1
        return self._plain(node, at)

    def _mapping(self, node: yaml.MappingNode, at: Tokens) -> dict[str, object]:
        made: dict[str, object] = {}
        for key_node, value_node in node.value:
            key, line = key_node.value, key_node.start_mark.line + 1
            if key_node.tag != _PREFIX + "str":
                raise self._refuse(line, "a key is not text; put it in quotes")
            if key in made:
                raise self._refuse(line, f"key {key!r} stands twice (first in line {self._lines[*at, key]})")
            self._lines[*at, key] = line
            made[key] = self._plain(value_node, (*at, key))
        return made

    def _scalar(self, node: yaml.Node) -> object:
        """Read a scalar; spellings that YAML readers disagree about must be quoted."""
        kind, text = node.tag.removeprefix(_PREFIX), str(node.value)
        if kind == "str":
            return text
        if kind == "null" and text in {"null", ""}:
            return None
        if kind == "bool" and text in {"true", "false"}:
            return text == "true"
        if kind == "int" and _INTEGER.fullmatch(text):
            return int(text)
        if kind == "float" and _FLOAT.fullmatch(text):
            return float(text)
        raise self._refuse(node.start_mark.line + 1, f"a value reads as {kind}; put it in quotes or write it plainly")


def _line(mark: object) -> int:
    """The line of either reader's mark, from 1."""
    return int(getattr(mark, "line", 0)) + 1


def read_text(path: Path, refuse: Refuse) -> str:
    """Read a file of at most `BYTES_MAX` as UTF-8."""
    try:
        # Without waiting: a pipe that nobody writes to would keep its reader for ever.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123 - opened so
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise refuse(0, "is no regular file")
            content = file.read(BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise refuse(0, f"cannot be read: {getattr(error, 'strerror', None) or 'bad path'}") from error
    if len(content) > BYTES_MAX:
        raise refuse(0, f"is longer than {BYTES_MAX} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refuse(content[: error.start].count(b"\n") + 1, "is not UTF-8") from error
