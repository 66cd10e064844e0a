"""What the policy in force asks of a ledger's own actions: read once, and asked at every call."""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from typing import TYPE_CHECKING

from counterfoil.domain.action import Action
from counterfoil.domain.errors import NotDeclared
from counterfoil.domain.terms import NO_POLICY, Terms

if TYPE_CHECKING:
    # Most ledgers have no policy, and pay nothing for what reads one.
    from counterfoil.domain.policy import Policy
    from counterfoil.ports.store import Store

UNDECLARED = -1
"""In the place of a band, for an action that declares no value at risk."""


class _Asked:
    """The terms of one action, by the band between two thresholds its value falls into."""

    def __init__(self, action: Action, bands: tuple[float, ...]) -> None:
        self.action = action
        self.bands = bands
        self.terms: dict[int, Terms] = {}


class _InForce:
    """One policy, and what was asked of it so far."""

    def __init__(self, n: int, policy: Policy | None) -> None:
        self.n, self.policy = n, policy
        self.asked: dict[str, _Asked] = {}

    @functools.cached_property
    def digest(self) -> str:
        """Names the policy; empty where there is none."""
        if self.policy is None:
            return ""
        from counterfoil.domain.policy import digest

        return digest(self.policy)


class Governance:
    """The policy in force for one ledger; read from the store when it is first asked.

    A claim is judged again by the store, under the number of the policy it was made under: what is cached here may be
    late, and is never wrong unnoticed.

    Args:
        store: where policies are on record.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: _InForce | None = None

    @property
    def number(self) -> int:
        """The number of the policy in force; 0: none was ever adopted."""
        return (self._held or self._read()).n

    @property
    def policy(self) -> Policy | None:
        """The policy in force; None: none was ever adopted."""
        return (self._held or self._read()).policy

    @property
    def digest(self) -> str:
        """The digest of the policy in force; empty: none was ever adopted."""
        return (self._held or self._read()).digest

    def refresh(self) -> int:
        """Read again which policy is in force; return its number."""
        return self._read().n

    def terms(self, action: Action, value: float, *, value_declared: bool) -> Terms:
        """Say what the policy in force asks of one operation.

        Args:
            action: the registered action's data.
            value: what is at risk.
            value_declared: the action says so itself.

        Raises:
            NotDeclared: a rule of the policy in force now speaks of an amount, and the action declares none.
            InvariantBroken: what stands in the store is no policy; nothing may be sent.
        """
        held = self._held or self._read()
        policy = held.policy
        if policy is None:
            return NO_POLICY
        from counterfoil.domain.policy import terms_of, thresholds

        asked = held.asked.get(action.name)
        if asked is None or asked.action is not action:
            who = {"tenant": action.tenant, "action": action.name, "account": action.account}
            asked = held.asked[action.name] = _Asked(action, thresholds(policy, **who))
        band = bisect_left(asked.bands, value) if value_declared else UNDECLARED
        terms = asked.terms.get(band)
        if terms is None or math.isnan(value):
            try:
                terms = terms_of(
                    policy, held.n, tenant=action.tenant, action=action.name, account=action.account, value=value,
                    value_declared=value_declared, consequence=action.consequence,
                )  # fmt: skip
            except NotDeclared:  # it comes to no claim, which would have noticed that another policy is in force
                if self._read().n == held.n:
                    raise
                return self.terms(action, value, value_declared=value_declared)
            if not math.isnan(value):
                asked.terms[band] = terms
        return terms

    def _read(self) -> _InForce:
        held, stored = self._held, self._store.policy()
        if stored is None:
            held = held or _InForce(0, None)
        elif held is None or held.n != stored[0]:
            from counterfoil.runtime.policies import read

            held = _InForce(stored[0], read(*stored))
        self._held = held  # only now: what cannot be read must not pass for no policy
        return held
