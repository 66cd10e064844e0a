"""Two people, a policy that asks somebody, and a tool that counts what it was called with."""

from __future__ import annotations

from counterfoil.domain.decision import Decider
from counterfoil.domain.policy import Otherwise, Override, Policy, Rule, When, digest
from counterfoil.domain.terms import OneShot, Required
from counterfoil.runtime import policies

WHO = {"account": "acct", "owner": "payments", "authoriser": "payments-lead"}
HOUR = 3600.0
MARA, DANA = {"by": "mara", "reason": "checked with the customer"}, {"by": "dana", "reason": "the same"}


def asks(ledger, actions=("pay", "send"), *, one_shot=OneShot.NO, breakers=(), escalation=(), **override):
    """Put a policy in force that asks somebody about these actions, for an hour each; return the ledger."""
    rule = Rule(name="ask", when=When(actions=actions), approval=Required(seconds=HOUR), one_shot=one_shot)
    every = Rule(name="rest", when=When(), approval=None, one_shot=one_shot)
    made = Policy(
        name="shop", rules=(rule, every), otherwise=Otherwise.ALLOW, override=Override(**override),
        breakers=breakers, escalation=escalation,
    )  # fmt: skip
    stands, before = policies.in_force(ledger.store)
    who = Decider(by="mara", reason="agreed", seen=stands)
    policies.adopt(ledger.store, made, who, replaces="" if before is None else digest(before))
    return ledger


class Tool:
    """A function that keeps what it was called with, and ends as it is told."""

    def __init__(self, ledger, name="pay", *ends, **declared):
        self.calls, self.ends = [], list(ends)

        def tool(order, amount=10, note=""):
            self.calls.append((order, amount, note))
            end = self.ends.pop(0) if self.ends else {"id": order}
            if isinstance(end, Exception):
                raise end
            return end

        self.call = ledger.action(tool, name=name, key=lambda order, **_: order, **WHO, **declared)
