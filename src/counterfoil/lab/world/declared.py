"""What a world declares: its actions, their contracts, and the policy that asks people."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import msgspec

from counterfoil import contracts
from counterfoil.domain.contract import Contract
from counterfoil.domain.policy import Otherwise, Policy, Rule, When
from counterfoil.domain.terms import Required
from counterfoil.domain.words import AttemptClass
from counterfoil.lab.world.provider import ACCOUNT, DELIVERY_SECONDS
from counterfoil.runtime.declared import action_of, declared


@functools.cache
def action_for(kind: str, assumed: bool, key_seconds: float, looks_max: int) -> Any:  # noqa: FBT001 - the cache's key
    """The action of one kind of provider, under a contract that says what this world's provider does."""
    given: dict[str, Any] = {"account": ACCOUNT, "owner": "payments", "authoriser": "lea"}
    if assumed:
        given |= {
            "longest_delivery": DELIVERY_SECONDS,
            "longest_delivery_by": "lea",
            "longest_delivery_why": "their word",
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return action_of(
            declared(given, kind), kind, contract=contract_for(kind, key_seconds, looks_max), tenant="default"
        )


def contract_for(kind: str, key_seconds: float, looks_max: int) -> Contract:
    """The laboratory's own contract, with what this world has otherwise."""
    contract = contracts.load(f"lab.{kind}")
    if kind == "key":
        protection = msgspec.structs.replace(contract.protection, retention_seconds=key_seconds)
        contract = msgspec.structs.replace(contract, protection=protection)
    if looks_max and contract.looks:
        budget = msgspec.structs.replace(contract.read_budget, looks_max=looks_max)
        contract = msgspec.structs.replace(contract, read_budget=budget)
    return contract


def policy_for(people: int) -> Policy:
    """A policy that asks so many people about everything."""
    asks = Required(
        people=people, approvers=(), seconds=300.0, attempts=tuple(AttemptClass), uses=2
    )  # fmt: skip
    return Policy(name="world", rules=(Rule(name="all", when=When(), approval=asks),), otherwise=Otherwise.ALLOW)
