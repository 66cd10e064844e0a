"""Load a contract: every mistake is named with its file, its line and its key, and nothing wrong is used."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from counterfoil.contracts.document import Document, Tokens, read_text
from counterfoil.contracts.refusal import in_words
from counterfoil.domain import pointer
from counterfoil.domain.contract import Contract
from counterfoil.domain.errors import ContractInvalid
from counterfoil.domain.soundness import check

CATALOGUE = Path(__file__).parent / "catalogue"
ALIKE_MAX = 3
"""Names that are offered for one that there is not."""

_PATH_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]+)\]|(\[\.\.\.\])")


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
    return _File(_locate(name_or_path)).contract()


def _named(unknown: re.Match[str] | None) -> str:
    return f"{unknown[1]}: " if unknown else ""


def _locate(name_or_path: str | Path) -> Path:
    if isinstance(name_or_path, str) and name_or_path in names():
        return CATALOGUE / f"{name_or_path}.yaml"
    path = Path(name_or_path)
    if path.suffix not in {".yaml", ".yml"}:
        raise ContractInvalid(str(name_or_path), 0, f"no contract has that name{_alike(str(name_or_path))}")
    return path


def _alike(name: str) -> str:
    """What may have been meant, or how many there are."""
    import difflib

    parts = {known: known for known in names()} | {known.partition(".")[2]: known for known in names()}
    close = difflib.get_close_matches(name, parts, n=ALIKE_MAX, cutoff=0.5)
    meant = dict.fromkeys([known for known in names() if name and known.startswith(f"{name}.")][:ALIKE_MAX])
    meant |= dict.fromkeys(parts[one] for one in close)
    return f"; there is {' or '.join(meant)}" if meant else f", nor a similar one, of the {len(names())} there are"


class Flaw(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a contract file: at which line, in which clause."""

    line: int
    clause: str
    problem: str


def lint(path: Path) -> tuple[Flaw, ...]:
    """Name everything that is wrong with a contract file, not only the first of it.

    Raises:
        ContractInvalid: it cannot be read at all.
    """
    return _File(path).flaws()


class _File:
    """One contract file: its values, and where each of them stands."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._document = Document(read_text(path, self._refused), self._refused)

    def contract(self) -> Contract:
        """The model of it, checked; unknown keys are refused."""
        contract = self._read()
        flaws = self._flaws_of(contract)
        if flaws:
            more = f" (and {len(flaws) - 1} more)" if len(flaws) > 1 else ""
            raise self._refused(flaws[0].line, f"{flaws[0].clause}: {flaws[0].problem}{more}")
        return contract

    def flaws(self) -> tuple[Flaw, ...]:
        """Everything that is wrong with it; what is no contract at all is the one thing that is."""
        try:
            return self._flaws_of(self._read())
        except ContractInvalid as error:
            clause, _, problem = error.problem.partition(": ")
            return (Flaw(line=error.line, clause=clause, problem=problem),)

    def _read(self) -> Contract:
        try:
            return msgspec.convert(self._document.values, Contract)
        except msgspec.ValidationError as error:
            raise self._explained(str(error)) from None

    def _flaws_of(self, contract: Contract) -> tuple[Flaw, ...]:
        return tuple(
            Flaw(line=self._document.line_of(self._tokens(p.path, "")), clause=p.path, problem=p.problem)
            for p in check(contract)
        )

    def _refused(self, line: int, problem: str) -> ContractInvalid:
        return ContractInvalid(self._path, line, problem)

    def _explained(self, message: str) -> ContractInvalid:
        """Turn the model's refusal into a file, a line and a key."""
        problem, _, path = message.rpartition(" - at `")
        path = path.removesuffix("`").removeprefix("key in ") if problem else "$"
        problem = problem or message
        tokens = self._tokens(path, message)
        unknown = re.search(r"unknown field `([^`]*)`", problem)
        line = self._document.line_of((*tokens, unknown[1]) if unknown else tokens)
        return self._refused(line, f"{path}: {_named(unknown)}{in_words(Contract, problem, tokens)}")

    def _tokens(self, path: str, message: str) -> Tokens:
        """Read a path such as `$.answers[0].where`; for a member the model does not name, find which one it is."""
        tokens: Tokens = ()
        for name, index, anonymous in _PATH_STEP.findall(path.removeprefix("$")):
            step = self._culprit(tokens, message) if anonymous else name or index
            tokens = (*tokens, step)
        return tokens

    def _culprit(self, tokens: Tokens, message: str) -> str:
        """The member of a mapping that, alone, is refused with the same words."""
        members = pointer.get(self._document.values, tokens)
        for key, value in members.items() if isinstance(members, dict) else ():
            try:
                msgspec.convert(pointer.put(self._document.values, tokens, {key: value}), Contract)
            except msgspec.ValidationError as error:
                if str(error) == message:
                    return str(key)
        return "..."
