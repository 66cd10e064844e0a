"""What the verbs of decision share: which operation, who decides, on what they saw, and how it stands afterwards."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict

from counterfoil.cli import exits, parser

if TYPE_CHECKING:
    from counterfoil.domain.contract import Contract
    from counterfoil.domain.event import History
    from counterfoil.runtime.decisions import Decisions
    from counterfoil.runtime.ledger import Ledger
    from counterfoil.runtime.receipt import Receipt


class Who(TypedDict):
    """Who decides, as every decision is told."""

    by: str
    reason: str
    how: str
    seen: int


Act = Callable[["Decisions", str, Who], "Receipt"]
"""Takes the ledger's decisions, the operation's whole id and who decides; returns the receipt as it stands then."""

FORESEEN = "to be said"
"""In the place of a reason, before a person is asked for it."""


def add(verb: argparse.ArgumentParser) -> None:
    """Declare the arguments that every decision has."""
    parser.operation_argument(verb)
    parser.store_option(verb)
    parser.actions_option(verb)
    parser.decision_options(verb)


def decide(
    asked: argparse.Namespace,
    what: str,
    act: Act,
    *,
    knows: Callable[[Ledger, History], None] | None = None,
    before: Callable[[Ledger, History], None] | None = None,
    done: Callable[[Ledger, Receipt], bool] | None = None,
) -> int:
    """Take one decision about one operation, on what it was when it was shown, and print how it stands.

    The exit code is 0 once it holds, and 1 while it is on record and takes more people.

    Args:
        asked: the command line.
        what: the decision as a clause, e.g. `revoke its permission`.
        act: records it.
        knows: brings what it is judged by, where no actions are named; None where the receipt alone will do.
        before: shows what is decided.
        done: whether it takes nobody else any more; default: it never does.

    Raises:
        NotDecided: it was refused, or somebody wrote to it since it was shown.
    """
    from counterfoil.cli import receipts
    from counterfoil.cli.decision import decide as ask
    from counterfoil.cli.hint import hints
    from counterfoil.cli.named import whole
    from counterfoil.cli.opening import for_reading
    from counterfoil.cli.sentences import recorded

    with exits.terminable(), opened(asked) if knows is not None else for_reading(asked) as ledger:
        history = ledger.store.load(whole(ledger, asked.operation))
        if knows is not None:
            knows(ledger, history)
        if before is not None:
            before(ledger, history)
        stood, decisions = history.operation, ledger.decisions

        def first(by: str) -> None:
            act(decisions.foreseen, stood.id, Who(by=by, reason=FORESEEN, how="", seen=stood.seq))

        said = ask(asked, stood, what, first=first)
        receipt = act(decisions, stood.id, Who(by=said.by, reason=said.reason, how=said.how, seen=stood.seq))
        said_now = recorded(ledger.history(stood.id), hints(asked, ledger.store.path))
        receipts.show(receipt, json=asked.json, happened=[said_now])
        return exits.DONE if done is None or done(ledger, receipt) else exits.UNSETTLED


def opened(asked: argparse.Namespace) -> Ledger:
    """The ledger of the actions, where any are named; a decision sends nothing, so that the receipts alone may do."""
    from counterfoil.cli.opening import for_acting, for_reading

    return for_acting(asked) if asked.actions or os.environ.get(parser.ACTIONS) else for_reading(asked)


def know_contract(ledger: Ledger, history: History) -> None:
    """Let a ledger without actions judge one operation, by the contract its receipt pins.

    Args:
        ledger: one that has actions is left as it is.
        history: the operation.

    Raises:
        Missing: it pins a contract of somebody's own, which only the actions can bring.
    """
    from counterfoil.cli.steps import contract_at_hand

    if ledger.registry or not history.events:
        return
    contract = contract_at_hand(history)
    if contract is None:
        raise _needed("the contract this receipt pins is not of the catalogue, and says whether the finding settles it")
    _stand_in(ledger, history, contract)


def know_terms(ledger: Ledger, history: History) -> None:
    """Let a ledger without actions say what the policy in force asks of one operation.

    Raises:
        Missing: the policy speaks of amounts, and only the action says which are at risk.
    """
    if not ledger.registry:
        _without_amounts(ledger, history)
        _stand_in(ledger, history, None)


def know_both(ledger: Ledger, history: History) -> None:
    """Both of these.

    Raises:
        Missing: as they do.
    """
    from counterfoil.cli.steps import contract_at_hand

    if ledger.registry:
        return
    _without_amounts(ledger, history)
    contract = contract_at_hand(history)
    if contract is None:
        raise _needed("the contract this receipt pins is not of the catalogue, and says what may be sent again")
    _stand_in(ledger, history, contract)


def _without_amounts(ledger: Ledger, history: History) -> None:
    from counterfoil.domain.policy import depends_on_value

    stood, policy = history.operation, ledger.governance.policy
    if policy and depends_on_value(policy, tenant=stood.tenant, action=stood.action, account=stood.account):
        raise _needed("the policy in force speaks of amounts, and the action says what is at risk")


def _stand_in(ledger: Ledger, history: History, contract: Contract | None) -> None:
    """An action by which one operation is judged, and which sends nothing."""
    from counterfoil.domain.errors import NotSent

    def nothing() -> None:
        raise NotSent("a decision is recorded, and nothing is sent")

    stood = history.operation
    ledger.action(
        nothing, name=stood.action, contract=contract, account=stood.account, tenant=stood.tenant,
        owner=stood.owner or "nobody", authoriser="nobody",
    )  # fmt: skip


def _needed(why: str) -> exits.Missing:
    said = f"{why}: pass --actions FILE.yaml or MODULE:LEDGER, or set {parser.ACTIONS}"
    return exits.Missing("--actions", said)
