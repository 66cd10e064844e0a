#!/usr/bin/env python3
"""Write docs/contracts/ID.md for each contract, and the catalogue's table; `--check` says whether they are fresh.

PYTHONPATH=src .venv/bin/python scripts/contract_pages.py [--check]
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

from counterfoil import contracts
from counterfoil.cli import clauses
from counterfoil.contracts.loader import CATALOGUE
from counterfoil.domain.contract import Contract

FOLDER = Path(__file__).parent.parent / "docs" / "contracts"
OVERVIEW = FOLDER.with_suffix(".md")
BEGIN, END = "<!-- catalogue -->\n", "<!-- end of catalogue -->\n"
MADE = "<!-- Made from the catalogue by scripts/contract_pages.py; what is written here by hand is lost. -->"


def page(contract: Contract) -> str:
    """The page of one contract."""
    return "\n".join([*_head(contract), *_clauses(contract), *_sources(contract)]) + "\n"


def _head(contract: Contract) -> Iterator[str]:
    yield from (MADE, "", f"# {contract.id}", "")
    yield f"{contract.effect[:1].upper()}{contract.effect[1:]}, by {contract.provider}. {_request(contract)}"
    yield from ("", _comment(contract), "")
    for name, said in clauses.follows(contract):
        yield f"- **{name}**: {_cell(said)}"


def _comment(contract: Contract) -> str:
    """What the file itself says before anything else: which payload it takes, and what nobody may expect."""
    lines = (CATALOGUE / f"{contract.id}.yaml").read_text(encoding="utf-8").splitlines()
    return " ".join(line.removeprefix("#").strip() for line in itertools.takewhile(lambda t: t.startswith("#"), lines))


def table() -> str:
    """The catalogue's table, as it stands on the overview page."""
    rows = ["| contract | group | protected by | kept | a lost answer is settled | |", "|---|---|---|---|---|---|"]
    for contract in map(contracts.load, contracts.names()):
        settled = "by a look" if "look" in dict(clauses.follows(contract))["a lost answer"] else "by a person"
        kind = contract.protection.kind.value.replace("_", " ")
        page_of = f"[page](contracts/{contract.id}.md)"
        rows.append(
            f"| `{contract.id}` | {contract.group.value} | {kind} | {clauses.lasts(contract)} | {settled} | {page_of} |"
        )
    return "\n".join(rows) + "\n"


def overview() -> str:
    """The overview page with its table made anew."""
    head, _, rest = OVERVIEW.read_text(encoding="utf-8").partition(BEGIN)
    return head + BEGIN + table() + END + rest.partition(END)[2]


def _request(contract: Contract) -> str:
    if contract.request is None:
        return "The write is a function."
    body = "" if contract.request.body == "none" else f", body: {contract.request.body}"
    return f"The write is `{contract.request.method} {contract.request.path}`{body}."


def _clauses(contract: Contract) -> Iterator[str]:
    yield from ("", "| clause | says | rests on |", "|---|---|---|")
    for said in clauses.clauses(contract):
        confidence = contract.sources[said.source].confidence.value.replace("_", " ")
        yield f"| {said.clause} | {_cell(said.says)} | {said.source}, {confidence} |"


def _sources(contract: Contract) -> Iterator[str]:
    yield from ("", "## Sources", "")
    for name, citation in contract.sources.items():
        where = f"<{citation.url}>" if citation.url else citation.document
        yield f"- **{name}** ({citation.confidence.value.replace('_', ' ')}): {' '.join(citation.says.split())} {where}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("{", "&#123;")


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    return {f"{name}.md": page(contracts.load(name)) for name in contracts.names()}


def stale() -> list[str]:
    """The pages that are not what they should be, those that should not be there too."""
    made = pages()
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    wrong = sorted(f"contracts/{name}" for name in made.keys() | there.keys() if made.get(name) != there.get(name))
    return [*(["contracts.md"] if overview() != OVERVIEW.read_text(encoding="utf-8") else []), *wrong]


def write() -> None:
    """Write every page, and remove those of contracts that are gone."""
    made = pages()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.md"):
        path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    OVERVIEW.write_text(overview(), encoding="utf-8")


def main() -> int:
    """Write the pages, or check them."""
    if "--check" not in sys.argv[1:]:
        write()
        return 0
    found = stale()
    for name in found:
        print(f"docs/{name} is not what scripts/contract_pages.py makes", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
