"""Load a contract: every mistake is named with its file, its line and its key, and nothing wrong is used."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from counterfoil.domain import pointer
from counterfoil.domain.contract import Contract
from counterfoil.domain.errors import ContractInvalid
from counterfoil.domain.soundness import check

if TYPE_CHECKING:
    import yaml

CATALOGUE = Path(__file__).parent / "catalogue"
CONTRACT_BYTES_MAX = 256 * 1024
"""Ten times the longest contract a person would review."""
DEPTH_MAX = 16
"""Twice as deep as the model."""

_PREFIX = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")
_PATH_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]+)\]|(\[\.\.\.\])")

Tokens = tuple[str, ...]


def names() -> list[str]:
    """Every contract of the catalogue, by name."""
    return sorted(path.stem for path in CATALOGUE.glob("*.yaml"))


def schema() -> dict[str, object]:
    """The JSON Schema of a contract file, made from the model itself."""
    made = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Counterfoil contract",
        **msgspec.json.schema(Contract),
    }
    return msgspec.json.decode(msgspec.json.encode(made), type=dict[str, object])


def load(name_or_path: str | Path) -> Contract:
    """Read one contract: a name of the catalogue, or the path of a file.

    Raises:
        ContractInvalid: there is no such contract, or it is wrong: at which line, at which key and why.
    """
    path = _locate(name_or_path)
    file = _File(str(path), _text(path))
    contract = file.contract()
    problems = check(contract)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise ContractInvalid(
            file.path, file.line_of(problems[0].path), f"{problems[0].path}: {problems[0].problem}{more}"
        )
    return contract


def _locate(name_or_path: str | Path) -> Path:
    if isinstance(name_or_path, str) and name_or_path in names():
        return CATALOGUE / f"{name_or_path}.yaml"
    path = Path(name_or_path)
    if path.suffix not in {".yaml", ".yml"}:
        raise ContractInvalid(str(name_or_path), 0, f"no contract has that name; there are: {', '.join(names())}")
    return path


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(CONTRACT_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        raise ContractInvalid(
            str(path), 0, f"cannot be read: {getattr(error, 'strerror', None) or 'bad path'}"
        ) from error
    if len(content) > CONTRACT_BYTES_MAX:
        raise ContractInvalid(str(path), 0, f"is longer than {CONTRACT_BYTES_MAX} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ContractInvalid(str(path), line, "is not UTF-8") from error


def _line(mark: object) -> int:
    """The line of either reader's mark, from 0."""
    return int(getattr(mark, "line", 0))


class _File:
    """One YAML file as plain values, with the line of every key and item."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self._lines: dict[Tokens, int] = {(): 1}
        self._document = self._plain(self._compose(text), ())

    def contract(self) -> Contract:
        """The model of it; unknown keys are refused."""
        try:
            return msgspec.convert(self._document, Contract)
        except msgspec.ValidationError as error:
            raise self._explained(str(error)) from None

    def line_of(self, path: str) -> int:
        """The line at which a path such as `$.looks[0].by` stands, or its nearest parent that is there."""
        tokens = self._tokens(path, "")
        while tokens not in self._lines:
            tokens = tokens[:-1]
        return self._lines[tokens]

    def _compose(self, text: str) -> yaml.Node:
        import yaml

        reader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            self._survey(yaml.parse(text, Loader=reader))
            node = yaml.compose(text, Loader=reader)
        except yaml.MarkedYAMLError as error:
            line = _line(error.problem_mark or error.context_mark)
            raise self._refused(line, f"is not YAML: {error.problem or error.context}") from None
        except yaml.YAMLError as error:
            raise self._refused(0, f"is not YAML: {getattr(error, 'reason', 'unreadable')}") from None
        if node is None:
            raise self._refused(0, "is empty")
        return node

    def _survey(self, events: Iterable[yaml.Event]) -> None:
        """Refuse what could make a small file large or deep, before anything is built of it."""
        import yaml

        depth = 0
        for event in events:
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEPTH_MAX:
                raise self._refused(_line(event.start_mark), f"is nested deeper than {DEPTH_MAX}")
            if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
                raise self._refused(_line(event.start_mark), "anchors and aliases are not used in contracts")

    def _refused(self, line: int, problem: str) -> ContractInvalid:
        return ContractInvalid(self.path, line + 1, problem)

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
            key = key_node.value
            line = key_node.start_mark.line
            if key_node.tag != _PREFIX + "str":
                raise self._refused(line, "a key is not text; put it in quotes")
            if key in made:
                raise self._refused(line, f"key {key!r} stands twice (first in line {self._lines[*at, key]})")
            self._lines[*at, key] = line + 1
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
        raise self._refused(
            node.start_mark.line, f"{text[:40]!r} reads as {kind}; put it in quotes or write it plainly"
        )

    def _explained(self, message: str) -> ContractInvalid:
        """Turn the model's refusal into a file, a line and a key."""
        problem, _, path = message.rpartition(" - at `")
        path = path.removesuffix("`").removeprefix("key in ") if problem else "$"
        problem = problem or message
        tokens = self._tokens(path, message)
        unknown = re.search(r"unknown field `([^`]*)`", problem)
        line = self._lines.get((*tokens, unknown[1])) if unknown else None
        while line is None:
            line = self._lines.get(tokens)
            tokens = tokens[:-1]
        return ContractInvalid(self.path, line, f"{path}: {problem[:1].lower()}{problem[1:]}")

    def _tokens(self, path: str, message: str) -> Tokens:
        """Read a path such as `$.answers[0].where`; for a member the model does not name, find which one it is."""
        tokens: Tokens = ()
        for name, index, anonymous in _PATH_STEP.findall(path.removeprefix("$")):
            step = self._culprit(tokens, message) if anonymous else name or index
            tokens = (*tokens, step)
        return tokens

    def _culprit(self, tokens: Tokens, message: str) -> str:
        """The member of a mapping that, alone, is refused with the same words."""
        members = pointer.get(self._document, tokens)
        for key, value in members.items() if isinstance(members, dict) else ():
            try:
                msgspec.convert(pointer.put(self._document, tokens, {key: value}), Contract)
            except msgspec.ValidationError as error:
                if str(error) == message:
                    return str(key)
        return "..."
