"""When a weakened contract is no weaker: the rule by which nothing that could ever be done or said is another.

There is no list of exceptions: each rule asks the product itself, or goes through every answer and every thing that the
behaviour can show.
"""

from __future__ import annotations

from counterfoil.domain.canonical import canonical
from counterfoil.domain.contract import Contract
from counterfoil.domain.judge import judge
from counterfoil.domain.reach import repeats, why_no_absence, why_no_repeat
from counterfoil.domain.sure import believed
from counterfoil.lab.behaviour.asked import Asked
from counterfoil.lab.behaviour.model import Behaviour
from counterfoil.lab.catalogue.sayable import NOTHING, Reply, readings, replies
from counterfoil.lab.catalogue.weaken import ABSENCE, ANSWER, MATCH, REPEAT, Weakened

ONE_ATTEMPT = "there is never more than one attempt for it to cover"
JUDGED_ALIKE = "no answer that the provider can give is judged otherwise"
READ_ALIKE = "of nothing that the provider can show more is concluded"
ACCEPTED_IS_DONE = "what the provider takes in is all there is to it: it leaves nothing in another state"
DID_NOTHING = "it only ever meets answers to requests that did nothing"


def equivalent(weak: Weakened, contract: Contract, behaviour: Behaviour, asked: Asked) -> str:
    """The rule by which this weakening cannot matter; empty where it may.

    Args:
        weak: the weakened contract, and which clause it is.
        contract: as it stands.
        behaviour: what the provider can do.
        asked: our write, as the provider reads it.
    """
    if weak.guards == REPEAT:
        return "; ".join(why_no_repeat(weak.contract)[:1])
    if weak.guards == ABSENCE:
        return "; ".join(why_no_absence(believed(weak.contract, weak.contract.looks[weak.at]))[:1])
    if weak.guards == MATCH:
        before, after = (readings(c, weak.at, behaviour) for c in (contract, weak.contract))
        return "" if any(now not in (was, NOTHING) for was, now in zip(before, after, strict=True)) else READ_ALIKE
    return _of_answer(weak, contract, behaviour, asked) if weak.guards == ANSWER else ""


def _of_answer(weak: Weakened, contract: Contract, behaviour: Behaviour, asked: Asked) -> str:
    if weak.clause.endswith(".coverage"):
        return "" if repeats(contract) else ONE_ATTEMPT
    changed = [one for one in replies(behaviour, asked) if _otherwise(one, contract, weak.contract, behaviour)]
    if not changed:
        return JUDGED_ALIKE
    if contract.answers[weak.at].finding == "accepted" and set(behaviour.states.values()) == {"done"}:
        return ACCEPTED_IS_DONE
    rejects = weak.contract.answers[weak.at].finding == "rejected"
    return DID_NOTHING if rejects and all(one.did_nothing for one in changed) else ""


def _otherwise(one: Reply, contract: Contract, weaker: Contract, behaviour: Behaviour) -> bool:
    payload = canonical(behaviour.played.payload)
    before, after = (judge(c, one.answer, 1, "e", payload) for c in (contract, weaker))
    return (before.finding, before.coverage, before.effect) != (after.finding, after.coverage, after.effect)
