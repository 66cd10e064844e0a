"""What guards the receipts of a database: triggers, their functions and the indexes, as the migrations make them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from counterfoil.store.migrating import script
from counterfoil.store.opening import MIGRATIONS

Query = Callable[[str], list[tuple[object, ...]]]

_TRIGGERS = """
SELECT t.tgname, p.proname, t.tgenabled FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    JOIN pg_proc p ON p.oid = t.tgfoid WHERE c.relnamespace = current_schema()::regnamespace AND NOT t.tgisinternal
"""
_FUNCTIONS = "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"
_INDEXES = """
SELECT c.relname, i.indisunique, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE c.relnamespace = current_schema()::regnamespace
"""


def wrong(query: Query) -> Iterator[str]:
    """Each guard that is missing, switched off or another than this version makes it.

    Args:
        query: runs one reading statement.
    """
    text = "\n".join(script(name).decode() for name in MIGRATIONS)
    functions = dict(re.findall(r"CREATE FUNCTION (\w+)\(.*?\$\$(.*?)\$\$", text, re.DOTALL))
    triggers = dict(re.findall(r"CREATE TRIGGER (\w+) .*?EXECUTE FUNCTION (\w+)\(\)", text, re.DOTALL))
    indexes = {name: bool(unique) for unique, name in re.findall(r"CREATE (UNIQUE )?INDEX (\w+)", text)}
    yield from _differing("trigger", {k: (v, "O") for k, v in triggers.items()}, _rows(query(_TRIGGERS)))
    yield from _differing("function", {k: (v,) for k, v in functions.items()}, _rows(query(_FUNCTIONS)))
    yield from _differing("index", {k: (v, True) for k, v in indexes.items()}, _rows(query(_INDEXES)))


def _rows(found: list[tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    return {str(row[0]): row[1:] for row in found}


def _differing(
    kind: str, wanted: dict[str, tuple[object, ...]], standing: dict[str, tuple[object, ...]]
) -> Iterator[str]:
    for name, made in wanted.items():
        if name not in standing:
            yield f"{kind} {name} is missing: it guards the receipts"
        elif standing[name] != made:
            yield f"{kind} {name} is not what this version makes it"
