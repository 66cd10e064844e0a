#!/usr/bin/env python3
"""Write docs/contracts/ID.md for every contract of the catalogue; `--check` says whether they are what they should be.

PYTHONPATH=src .venv/bin/python scripts/contract_pages.py [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from counterfoil import contracts
from counterfoil.cli import clauses
from counterfoil.domain.contract import Contract

FOLDER = Path(__file__).parent.parent / "docs" / "contracts"
MADE = "<!-- Made from the catalogue by scripts/contract_pages.py; what is written here by hand is lost. -->"


def page(contract: Contract) -> str:
    """The page of one contract."""
    return "\n".join([*_head(contract), *_clauses(contract), *_sources(contract)]) + "\n"


def _head(contract: Contract) -> Iterator[str]:
    yield from (MADE, "", f"# {contract.id}", "")
    yield f"{contract.effect[:1].upper()}{contract.effect[1:]}, by {contract.provider}. {_request(contract)}"
    yield ""
    for name, said in clauses.follows(contract):
        yield f"- **{name}**: {_cell(said)}"


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


def stale() -> list[str]:
    """The pages that are not what they should be, those that should not be there too."""
    made = {f"{name}.md": page(contracts.load(name)) for name in contracts.names()}
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    return sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))


def write() -> None:
    """Write every page, and remove those of contracts that are gone."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.md"):
        path.unlink()
    for name in contracts.names():
        (FOLDER / f"{name}.md").write_text(page(contracts.load(name)), encoding="utf-8")


def main() -> int:
    """Write the pages, or check them."""
    if "--check" not in sys.argv[1:]:
        write()
        return 0
    found = stale()
    for name in found:
        print(f"docs/contracts/{name} is not what scripts/contract_pages.py makes", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
