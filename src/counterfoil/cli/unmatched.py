"""`counterfoil reconcile --unmatched`: what the provider has and no receipt explains."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from counterfoil.cli import exits, parser

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger
    from counterfoil.runtime.unmatched import Seen, Unmatched

WORDS = ("explained", "candidate", "contradictory", "unmatched")


def options(verb: argparse.ArgumentParser) -> None:
    """Declare what the report may be narrowed by."""
    group = verb.add_argument_group("--unmatched")
    group.add_argument("--action", metavar="NAME", help="whose account is read, by the list look of its contract")
    group.add_argument(
        "--of", metavar="FIELD=VALUE", action="append", type=_field, default=[],
        help="a payload field by which that list is asked for, e.g. channel=C1; may be given again",
    )  # fmt: skip
    group.add_argument("--since", metavar="WHEN", type=parser.moment, help="only what came to be from then on")
    group.add_argument("--until", metavar="WHEN", type=parser.moment, help="only what came to be before then")


def report(asked: argparse.Namespace, ledger: Ledger) -> int:
    """Print it and return the exit code: 0 where all was shown, and a receipt explains each of it."""
    from counterfoil.cli.terminal import print_json

    if not asked.action:
        raise exits.Missing("--action", "name the action whose account is to be read: pass --action NAME")
    found = ledger.unmatched(asked.action, of=dict(asked.of), since=asked.since, until=asked.until)
    if asked.json:
        print_json(as_json(found))
    else:
        for line in _said(found):
            print(line, flush=True)
    codes = {exits.DONE if found.clean else exits.UNSETTLED, exits.DEPLOYMENT if found.unreadable else exits.DONE}
    return exits.most_urgent(codes)


def as_json(found: Unmatched) -> dict[str, Any]:
    """The whole answer; what is explained is only counted."""
    from counterfoil.runtime.export import iso

    rows = [msgspec.to_builtins(one) for one in found.open]
    for row in rows:
        row["created_at"] = None if row["created_at"] is None else iso(row["created_at"])
    return {
        "action": found.action,
        "account": found.account,
        "look": f"looks[{found.look}]",
        "complete": not found.incomplete,
        "incomplete": found.incomplete or None,
        "counts": _counts(found),
        "open": rows,
        "unreadable": found.unreadable,
        "ok": found.clean,
    }


def _counts(found: Unmatched) -> dict[str, int]:
    counted = Counter(one.match.value for one in found.seen)
    return {word: counted[word] for word in WORDS}


def _said(found: Unmatched) -> Iterator[str]:
    from counterfoil.cli.terminal import safe

    for one in found.open:
        yield safe(_line(one))
    for operation, why in found.unreadable.items():
        yield safe(f"{operation}: its receipt cannot be read, what is its own may stand above: {why}")
    if found.incomplete:
        yield safe(f"incomplete ({found.incomplete}): there may be more than was shown")
    counts = ", ".join(f"{count:,} {word}" for word, count in _counts(found).items())
    yield safe(f"{found.action}, account {found.account}: {counts}")


def _line(one: Seen) -> str:
    from counterfoil.cli.marks import moment

    at = "" if one.created_at is None else f", {moment(one.created_at)} UTC"
    named = f" under {one.reference!r}" if one.reference else ""
    beside = f": {', '.join(one.operations)}, {one.because}" if one.operations else ""
    return f"{one.match.value}  {one.external_id or 'without a name'}{named}{at}{beside}"


def _field(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not FIELD=VALUE")
    return name.strip(), value.strip()
