"""`counterfoil evidence add`: hand in a late answer, a webhook or a statement; nothing is sent or overwritten by it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterfoil.cli import exits, parser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from counterfoil.domain.statement import Layout
    from counterfoil.runtime.fed import Fed, Found
    from counterfoil.runtime.feeding import Feeding

COLUMNS = ("reference", "external_id", "account", "amount", "state")
DECIMALS_MAX = 18
NOUNS = {"answer": "a late answer", "webhook": "a webhook", "statement": "a statement"}


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    acts = verb.add_subparsers(metavar="WHAT", required=True, title="what")
    line = "hand in a late answer, a webhook or a statement, as it was received: it is matched, judged and kept"
    act = parser.act(acts, "add", line, run)
    kind = act.add_mutually_exclusive_group(required=True)
    kind.add_argument("--answer", metavar="FILE", type=Path, help="the body of an answer that came by another way")
    kind.add_argument("--webhook", metavar="FILE", type=Path, help="the body of an event that the provider sent")
    kind.add_argument("--statement", metavar="FILE", type=Path, help="a CSV or JSONL file of what the provider did")
    act.add_argument("--action", metavar="NAME", default="", help="only operations of this action (default: of all)")
    act.add_argument("--account", metavar="NAME", default="", help="whose answer or statement it is")
    answer = act.add_argument_group("an answer")
    answer.add_argument("--status", metavar="N", type=parser.count(100, 599), help="of its status line")
    answer.add_argument(
        "--header", metavar="NAME:VALUE", action="append", type=_header, default=[], help="may be given again"
    )
    answer.add_argument("--key", metavar="KEY", default="", help="provider key or client reference of its request")
    answer.add_argument("--external-id", metavar="ID", default="", help="the provider's name of the object")
    answer.add_argument("--attempt", metavar="N", type=parser.count(1, 32_767), help="which attempt was answered")
    _statement_options(act)
    parser.actions_option(act)
    parser.store_option(act)
    parser.decision_options(act)


def _statement_options(act: argparse.ArgumentParser) -> None:
    group = act.add_argument_group("a statement")
    group.add_argument(
        "--column", metavar="WHAT=NAME", action="append", type=_pair, default=[],
        help=f"which column holds what, of {', '.join(COLUMNS)}; a member or /pointer of JSONL",
    )  # fmt: skip
    group.add_argument(
        "--state", metavar="WORD=OUTCOME", action="append", type=_pair, default=[],
        help="what the file's word for a state proves: succeeded, accepted or rejected",
    )  # fmt: skip
    group.add_argument("--amount-at", metavar="POINTER", default="", help="where the payload holds the amount")
    group.add_argument(
        "--decimals", metavar="N", type=parser.count(0, DECIMALS_MAX), default=0,
        help="2 where the file says 15.00 and the payload 1500 (default 0)",
    )  # fmt: skip
    group.add_argument("--negated", action="store_true", help="the file writes with a minus what the payload does not")
    group.add_argument("--format", choices=("csv", "jsonl"), help="default: by the file's name")
    group.add_argument("--delimiter", metavar="CHAR", default=",", help="of a CSV file (default ,)")


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code: 0 where all of it counts and nothing it speaks of is unresolved."""
    from counterfoil.cli.decision import Subject, decide_about
    from counterfoil.cli.opening import for_acting
    from counterfoil.cli.terminal import print_json

    kind = next(name for name in NOUNS if getattr(asked, name) is not None)
    path: Path = getattr(asked, kind)
    content = _content(path)
    layout = _layout(asked) if kind == "statement" else None
    with exits.terminable(), for_acting(asked) as ledger:
        subject = Subject(said=f"{path}  {len(content):,} bytes", name=_sha256(content), kind="SHA-256")
        what = f"hand in {NOUNS[kind]}, and say that it is authentic"
        decision = decide_about(asked, subject, what, first=_decides)
        who = {"by": decision.by, "reason": decision.reason, "how": decision.how}
        fed = _hand_in(asked, ledger.evidence, content, layout, who)
    if asked.json:
        print_json(as_json(path, fed))
    else:
        for line in said(fed):
            print(line)
    return exits.most_urgent(set(_codes(fed)))


def _hand_in(
    asked: argparse.Namespace, evidence: Feeding, content: bytes, layout: Layout | None, who: dict[str, str]
) -> Fed:
    if layout is not None:
        form = asked.format or ("jsonl" if asked.statement.suffix in {".jsonl", ".ndjson"} else "csv")
        return evidence.statement(
            content, layout, form=form, delimiter=asked.delimiter, action=asked.action, **who
        )  # fmt: skip
    if asked.webhook is not None:
        return evidence.webhook(content, action=asked.action, **who)
    if asked.status is None:
        raise exits.Missing("--status", "an answer has a status: pass --status N")
    return evidence.answer(
        content, status=asked.status, headers=asked.header, key=asked.key, external_id=asked.external_id,
        account=asked.account, attempt=asked.attempt, action=asked.action, **who,
    )  # fmt: skip


def _codes(fed: Fed) -> Iterator[int]:
    yield exits.DONE if fed.settled else exits.UNSETTLED
    if fed.unreadable:
        yield exits.DEPLOYMENT


def as_json(path: Path, fed: Fed) -> dict[str, Any]:
    """The whole answer."""
    import msgspec

    return {
        "file": str(path),
        "source": fed.source.value,
        "digest": fed.digest,
        "counts": counts(fed),
        "found": [msgspec.to_builtins(one) for one in fed.found],
        "broken": [msgspec.to_builtins(one) for one in fed.broken],
        "unreadable": fed.unreadable,
        "ok": fed.settled and not fed.unreadable,
    }


def counts(fed: Fed) -> dict[str, int]:
    """How many of its lines came to what."""
    return {
        "recorded": sum(one.recorded for one in fed.found),
        "recorded_before": sum(bool(one.finding) and not one.recorded for one in fed.found),
        "candidates": sum(one.match.value == "candidate" for one in fed.found),
        "unmatched": sum(one.match.value == "unmatched" for one in fed.found),
        "discrepancies": len({one.operations[0] for one in fed.found if one.discrepancy == "open"}),
        "broken": len(fed.broken),
    }


def said(fed: Fed) -> Iterator[str]:
    """The same in lines: every one that a person has to look at, and how many there are of each."""
    from counterfoil.cli.terminal import safe

    for one in fed.found:
        if not one.finding or one.unresolved or not one.line:
            yield safe(_about(one))
    for broken in fed.broken:
        yield safe(f"line {broken.line}: cannot be read: {broken.problem}")
    for operation, why in fed.unreadable.items():
        yield safe(f"{operation}: its receipt cannot be read: {why}")
    yield ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts(fed).items())


def _about(one: Found) -> str:
    where = f"line {one.line}: " if one.line else ""
    fields = ", ".join(f"{name} {word}" for name, word in one.compared.items() if word != "missing")
    of = f" {', '.join(one.operations)}" if one.operations else ""
    text = f"{where}{one.match.value}{of}" + (f" ({fields})" if fields else "")
    if one.finding:
        text += f", {one.finding}, outcome {one.outcome}"
    if one.discrepancy == "open":
        text += f", evidence disagrees, for {one.owner or 'nobody'}"
    return text + (f": {'; '.join(one.because)}" if one.because else "")


def _decides(by: str) -> None:
    from counterfoil.runtime.given import checked_decider

    checked_decider("by", by)


def _layout(asked: argparse.Namespace) -> Layout:
    import msgspec

    from counterfoil.domain.errors import BadValue
    from counterfoil.domain.statement import Layout

    declared = {
        "columns": _once("--column", asked.column), "states": _once("--state", asked.state),
        "amount_at": asked.amount_at, "decimals": asked.decimals, "negated": asked.negated, "account": asked.account,
    }  # fmt: skip
    try:
        return msgspec.convert(declared, Layout)
    except msgspec.ValidationError as error:
        wanted = f"--column WHAT=NAME of {', '.join(COLUMNS)}; --state WORD=succeeded, accepted or rejected; a pointer"
        raise BadValue("statement", str(error), wanted=wanted) from None


def _once(option: str, pairs: list[tuple[str, str]]) -> dict[str, str]:
    from counterfoil.domain.errors import BadValue

    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadValue(option, "", wanted="names each once")
    return found


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not NAME=VALUE")
    return name.strip(), value.strip()


def _header(text: str) -> tuple[str, str]:
    name, sign, value = text.partition(":")
    if not sign or not name.strip():
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not NAME:VALUE")
    return name.strip(), value.strip()


def _content(path: Path) -> bytes:
    from counterfoil.domain.errors import BadValue

    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "bad path"
        raise BadValue("FILE", str(path), wanted=f"cannot be read: {why}") from error


def _sha256(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()
