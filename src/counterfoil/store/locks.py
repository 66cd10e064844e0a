"""What a transaction on PostgreSQL locks before it reads: SQLite's one write lock, cut along what can collide.

The locks are PostgreSQL's advisory ones, held to the end of the transaction: they need no session, and so work through
a pooler of transactions. They are taken in one order everywhere and in one statement, and everything that is judged is
read after it. One stands for each effect, exclusive; one for each breaker and for the looks at each provider's account,
for what they count; and one for the policy, shared by whatever is judged under its number and exclusive for the
adoption of the next.
"""

from __future__ import annotations

from collections.abc import Iterable

from counterfoil.domain.command import Adopt, Amend, Claim, Command, Erase, Propose, Remove, Settle
from counterfoil.domain.identifier import row_number

POLICY = "policy"
KEY = "hashtextextended({}, 1129729097)"
"""The number of a name's lock; the seed keeps them apart from another program's of the same text."""

# An operation's effect never changes, so that it may be read before its lock is held.
TAKE = f"""
SELECT CASE WHEN shared THEN pg_advisory_xact_lock_shared(key) ELSE pg_advisory_xact_lock(key) END FROM (
    SELECT key, bool_and(shared) AS shared FROM (
        SELECT {KEY.format("name")} AS key, shared FROM unnest($1::text[], $2::boolean[]) AS named (name, shared)
        UNION ALL SELECT {KEY.format("effect")}, false FROM operation WHERE n = ANY ($3::bigint[])
    ) AS wanted GROUP BY key ORDER BY key
) AS ordered
""".encode()  # noqa: S608 - names of our own
ROWS = b"SELECT n FROM operation WHERE n = ANY ($1::bigint[]) ORDER BY n FOR UPDATE"
"""What a rule is to judge, against whoever does not ask for the locks."""


def wanted(commands: Iterable[Command]) -> tuple[list[str], list[bool], list[int]]:
    """The names of the locks that commands need, whether each is shared, and the rows whose effects are locked too."""
    names: dict[str, bool] = {}
    rows: set[int] = set()
    for command in commands:
        if isinstance(command, Adopt):
            names[POLICY] = False
        elif isinstance(command, Propose):
            names.setdefault(POLICY, True)
            names[command.claim.intent.effect] = False
        elif isinstance(command, Claim):
            names.setdefault(POLICY, True)
            names[command.intent.effect] = False
        elif isinstance(command, Settle):
            rows.add(command.n)
        elif isinstance(command, Amend | Remove | Erase):
            rows.add(row_number(command.operation) or 0)
            if isinstance(command, Amend) and command.policy is not None:
                names.setdefault(POLICY, True)
        if isinstance(command, Claim | Amend) and command.breaker is not None:
            names[f"breaker {command.breaker.name}"] = False
        if isinstance(command, Amend) and command.reads is not None:
            names[f"looks {command.reads.tenant} {command.reads.provider} {command.reads.account}"] = False
    return list(names), list(names.values()), sorted(rows)
