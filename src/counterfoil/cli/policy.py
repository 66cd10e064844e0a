"""`counterfoil policy check | adopt | show`: whose approval is needed, said beforehand and changed on the record."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterfoil.cli import exits, parser

if TYPE_CHECKING:
    from counterfoil.cli.rulebook import Change, Fall
    from counterfoil.domain.command import Adopted, Declined
    from counterfoil.domain.policy import OnRecord, Policy
    from counterfoil.runtime.ledger import Ledger
    from counterfoil.runtime.policies import Loaded


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    acts = verb.add_subparsers(metavar="WHAT", required=True, title="what")
    check = parser.act(acts, "check", "read a policy file and say what it means; nothing is changed", _check)
    _file(check)
    parser.actions_option(check)
    adopt = parser.act(acts, "adopt", "put a policy file in force: a recorded decision", _adopt)
    _file(adopt)
    adopt.add_argument("--new", action="store_true", help="the receipts file may be created")
    parser.store_option(adopt)
    parser.actions_option(adopt)
    parser.decision_options(adopt)
    show = parser.act(acts, "show", "say which policy is in force, and who put it there, when and why", _show)
    show.add_argument("--history", action="store_true", help="every policy that ever was, newest first")
    parser.store_option(show)
    parser.actions_option(show)


def run(asked: argparse.Namespace) -> int:
    """Do it and return the exit code."""
    return int(asked.act(asked))


def _file(act: argparse.ArgumentParser) -> None:
    act.add_argument("file", metavar="FILE.yaml", type=Path, help="the policy file")


# -- check -------------------------------------------------------------------------------------------------------------


def _check(asked: argparse.Namespace) -> int:
    """Exit code 1 where an action could never be called under it."""
    from counterfoil.cli.terminal import print_json
    from counterfoil.domain.policy import digest
    from counterfoil.runtime.policies import load

    loaded = load(asked.file)
    found = _falls(asked, loaded.policy)
    wrong = any(fall.wrong for fall in found or ())
    if asked.json:
        said = {"digest": digest(loaded.policy), "policy": _plain(loaded.policy), "warnings": list(loaded.warnings)}
        print_json({**said, "actions": _plain(found), "ok": not wrong})
    else:
        from counterfoil.cli import policy_page

        _warn(loaded)
        policy_page.show(policy_page.checked(loaded.policy, found))
    return exits.UNSETTLED if wrong else exits.DONE


def _falls(asked: argparse.Namespace, policy: Policy) -> list[Fall] | None:
    """Under which rules the actions fall; None where none are named. A file of actions opens no receipts for it."""
    import os
    import tempfile

    from counterfoil.cli.rulebook import falls
    from counterfoil.runtime import actions

    spec = asked.actions or os.environ.get(parser.ACTIONS)
    if not spec:
        return None
    with tempfile.TemporaryDirectory() as folder:
        beside = Path(folder) / "none.db" if spec.endswith((".yaml", ".yml")) else None
        with actions.load(spec, store=beside) as ledger:
            return falls(policy, ledger)


# -- adopt -------------------------------------------------------------------------------------------------------------


def _adopt(asked: argparse.Namespace) -> int:
    """Exit code 1 where somebody else's policy was adopted meanwhile: nothing was changed."""
    from counterfoil.cli import rulebook
    from counterfoil.cli.opening import for_reading
    from counterfoil.domain.policy import digest
    from counterfoil.runtime import policies

    loaded = policies.load(asked.file)
    _warn(loaded)
    with exits.terminable(), for_reading(asked, new=asked.new, made_by="--new") as ledger:
        seen, before = policies.in_force(ledger.store)
        named, stood = digest(loaded.policy), digest(before) if before else ""
        changes = rulebook.changes(before, loaded.policy)
        if named == stood:
            return _said(asked, {"adopted": False, "n": seen, "digest": named}, f"policy {seen} is this very policy")
        reply = _decided(asked, ledger, loaded.policy, changes, seen=(seen, stood))
        return _answered(asked, reply, named, changes)


def _decided(
    asked: argparse.Namespace, ledger: Ledger, policy: Policy, changes: list[Change], *, seen: tuple[int, str]
) -> Adopted | Declined:
    """Show what changes, where a person reads it, and take their decision."""
    from counterfoil.cli import policy_page
    from counterfoil.cli.decision import Subject, decide_about
    from counterfoil.domain.decision import Decider
    from counterfoil.domain.policy import digest
    from counterfoil.runtime import policies

    n, stood = seen
    if not (asked.json and asked.decider is not None):
        # On standard error: it is what the person decides about, and standard output keeps to the answer.
        policy_page.show(policy_page.changed(changes, n), stream=sys.stderr)
    named = digest(policy)
    what = f"put it in force in place of policy {n}" if n else "put it in force, the first one"
    about = Subject(said=f"policy {policy.name}  {named}", name=named, kind="digest")
    decision = decide_about(asked, about, what)
    who = Decider(by=decision.by, reason=decision.reason, how=decision.how, seen=n)
    return policies.adopt(ledger.store, policy, who, replaces=stood)


def _answered(asked: argparse.Namespace, reply: Adopted | Declined, digest: str, changes: list[Change]) -> int:
    from counterfoil.domain.command import Declined

    if isinstance(reply, Declined):
        why = "; ".join(reply.because)
        _said(asked, {"adopted": False, "because": list(reply.because)}, f"{why}: nothing was changed, look again")
        return exits.UNSETTLED
    fact = {"adopted": True, "n": reply.n, "at": reply.at, "digest": digest, "changes": _plain(changes)}
    return _said(asked, fact, f"policy {reply.n} is in force")


def _said(asked: argparse.Namespace, fact: dict[str, Any], sentence: str) -> int:
    from counterfoil.cli.terminal import print_json, safe

    if asked.json:
        print_json(fact)
    else:
        print(safe(sentence), flush=True)
    return exits.DONE


# -- show --------------------------------------------------------------------------------------------------------------


def _show(asked: argparse.Namespace) -> int:
    from counterfoil.cli import policy_page
    from counterfoil.cli.opening import for_reading
    from counterfoil.cli.terminal import print_json

    with for_reading(asked) as ledger:
        every = ledger.store.policies()
        now = ledger.store.now()
        ledger.store.policy()  # refused where it is not the one its digest names
    if asked.json:
        told = [_as_json(kept) for kept in reversed(every)]
        print_json({"policies": told} if asked.history else {"policy": told[0] if told else None})
    elif asked.history:
        policy_page.show(policy_page.history(every))
    else:
        policy_page.show(policy_page.in_force(every[-1] if every else None, now))
    return exits.DONE


def _as_json(kept: OnRecord) -> dict[str, Any]:
    from counterfoil.cli.policy_page import decided_of
    from counterfoil.runtime.policies import read

    decided = decided_of(kept)
    return {
        "n": kept.n, "at": kept.at, "digest": kept.digest, "by": decided.by, "reason": decided.reason,
        "how": decided.how, "seen": decided.seen_seq, "from": decided.facts.get("from", ""),
        "policy": _plain(read(kept.n, kept.policy)),
    }  # fmt: skip


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON is anything
    import msgspec

    return msgspec.to_builtins(value)


def _warn(loaded: Loaded) -> None:
    from counterfoil.cli.terminal import note

    for warning in loaded.warnings:
        note(f"counterfoil: warning: {warning}")
