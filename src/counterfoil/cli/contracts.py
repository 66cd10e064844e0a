"""`counterfoil contracts list | show | new | lint`: what is known of providers, and a beginning for one more."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from counterfoil.cli import exits, parser

if TYPE_CHECKING:
    from collections.abc import Callable

    from counterfoil.contracts import Flaw
    from counterfoil.domain.contract import Contract


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    acts = verb.add_subparsers(metavar="WHAT", required=True, title="what")
    listed = parser.act(acts, "list", "name every contract of the catalogue", _list)
    listed.add_argument("--group", metavar="NAME", help="of one kind of service only")
    shown = parser.act(acts, "show", "say what one contract claims, on what it rests and what follows", _show)
    shown.add_argument("contract", metavar="ID|FILE.yaml", help="a name of the catalogue, or a file")
    _new_arguments(parser.act(acts, "new", "write the beginning of a contract, with comments", _new))
    linted = parser.act(acts, "lint", "name whatever is wrong with contract files, by line and clause", _lint)
    linted.add_argument("files", metavar="FILE.yaml", type=Path, nargs="+", help="the files")


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code."""
    return int(asked.act(asked))


def _new_arguments(new: argparse.ArgumentParser) -> None:
    new.add_argument("id", metavar="PROVIDER.ACTION", help="its name, and that of the file")
    new.add_argument("--request", metavar="'METHOD PATH'", help="the one write, e.g. 'POST /v1/refunds'")
    new.add_argument("--key", metavar="PLACE", help="where a key stands: header:NAME, body:/FIELD or none")
    new.add_argument("--retention", metavar="SECONDS", help="how long a key protects: seconds, never or unknown")
    new.add_argument("--url", metavar="URL", help="the documentation page that it is written from")
    new.add_argument(
        "--look", metavar="PATH", help="a GET that lists what there is; left out: a lost answer is a person's"
    )


def _list(asked: argparse.Namespace) -> int:
    from counterfoil import contracts
    from counterfoil.cli import clauses
    from counterfoil.cli.terminal import print_json
    from counterfoil.domain.errors import BadValue

    every = [contracts.load(name) for name in contracts.names()]
    groups = sorted({c.group.value for c in every})
    if asked.group not in (None, *groups):
        raise BadValue("--group", asked.group, wanted=f"is none of {', '.join(groups)}")
    chosen = [c for c in every if asked.group in (None, c.group.value)]
    counted = clauses.counts(chosen)
    if asked.json:
        print_json({**counted, "catalogue": [_row(contract) for contract in chosen]})
    else:
        from counterfoil.cli import contracts_page
        from counterfoil.cli.terminal import console

        contracts_page.show(contracts_page.catalogue(chosen, counted, console().width))
    return exits.DONE


def _row(contract: Contract) -> dict[str, object]:
    from counterfoil.cli import clauses
    from counterfoil.domain import reach

    protection = contract.protection
    return {
        "id": contract.id, "version": contract.version, "provider": contract.provider, "group": contract.group.value,
        "effect": contract.effect, "kind": protection.kind.value, "carrier": protection.carrier,
        "retention_seconds": protection.retention_seconds, "confidence": clauses.weakest(contract),
        "documented": reach.documented(contract), "finds": reach.finds(contract),
        "repeats": reach.repeats(contract), "disproves": reach.disproves(contract),
    }  # fmt: skip


def _show(asked: argparse.Namespace) -> int:
    from counterfoil import contracts
    from counterfoil.cli import clauses
    from counterfoil.cli.terminal import print_json
    from counterfoil.domain.contract import digest

    contract = contracts.load(asked.contract)
    if asked.json:
        said = {"clauses": msgspec.to_builtins(clauses.clauses(contract)), "follows": dict(clauses.follows(contract))}
        print_json({"digest": digest(contract), **said, "contract": msgspec.to_builtins(contract)})
    else:
        from counterfoil.cli import contracts_page

        contracts_page.show(contracts_page.one(contract))
    return exits.DONE


def _new(asked: argparse.Namespace) -> int:
    """Refused where the file is there: nothing that somebody wrote is written over."""
    from counterfoil.cli import scaffold
    from counterfoil.cli.terminal import note, print_json
    from counterfoil.domain.errors import BadValue

    answers = scaffold.answered(vars(asked), ask=_ask if sys.stdin.isatty() and not asked.json else None)
    path, text = Path(f"{answers.id}.yaml"), scaffold.written(answers)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise BadValue("id", answers.id, wanted=f"another name: {path} is there already") from None
    if asked.json:
        print_json({"file": str(path)})
    else:
        note(f"{path} is written: fill in what stands as unknown, then `counterfoil contracts lint {path}`")
    return exits.DONE


def _ask(question: str, otherwise: str) -> str:
    print(f"{question} [{otherwise}] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() or otherwise


def _lint(asked: argparse.Namespace) -> int:
    """Exit code 1 where anything is wrong."""
    from counterfoil import contracts
    from counterfoil.cli.terminal import print_json

    found = [(str(path), _flaws(contracts.lint, path)) for path in asked.files]
    wrong = any(flaws for _, flaws in found)
    if asked.json:
        rows = [{"file": name, "flaws": msgspec.to_builtins(flaws)} for name, flaws in found]
        print_json({"files": rows, "ok": not wrong})
    else:
        from counterfoil.cli import contracts_page

        contracts_page.show(contracts_page.flaws(found))
    return exits.UNSETTLED if wrong else exits.DONE


def _flaws(lint: Callable[[Path], tuple[Flaw, ...]], path: Path) -> tuple[Flaw, ...]:
    """What is no YAML at all has its one flaw too."""
    from counterfoil.contracts import Flaw
    from counterfoil.domain.errors import ContractInvalid

    try:
        return lint(path)
    except ContractInvalid as error:
        return (Flaw(line=error.line, clause="", problem=error.problem),)
