"""Play one case of one contract, and say what was unsafe about what the product said and did."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from counterfoil.domain.contract import Contract
from counterfoil.domain.words import Basis, Outcome
from counterfoil.lab.behaviour.asked import Asked, differing, put, routed
from counterfoil.lab.behaviour.service import Effect, Service
from counterfoil.lab.behaviour.showing import OUTSIDER
from counterfoil.lab.catalogue.bench import Bench, Run, Stood
from counterfoil.lab.catalogue.crossing import Crossings
from counterfoil.lab.catalogue.scenarios import BECOMES_SECONDS, Case

LONG_AGO = 0.0
"""When everything was made that is there before us."""


@dataclass(frozen=True, slots=True)
class Result:
    """What one case came to."""

    case: Case
    run: Run
    unsafe: tuple[str, ...]

    @property
    def effects(self) -> list[Effect]:
        """What really happened."""
        return self.run.crossings.service.effects


def play(bench: Bench, contract: Contract, case: Case) -> Result:
    """Play one case to its end."""
    service = Service(case.nature)
    crossings = Crossings(contract, service, bench.clock, case.script, case.sight)
    crossings.before = lambda ours, asked: _before(ours, asked, case)
    bench.fenced = case.fenced
    run = bench.play(crossings, assumed=case.assumed, meanwhile=lambda run: _meanwhile(run, case), away=case.away)
    _finally(service, case, bench.clock.now)
    return Result(case, run, tuple(_unsafe(run, case)))


def _before(ours: Crossings, asked: Asked, case: Case) -> None:
    """What is there before our first write: the item that every account has, and what somebody else made."""
    service = ours.service
    _known(service, asked, asked.account)
    _known(service, asked, OUTSIDER)
    if case.elsewhere:
        service.add(replace(asked, account=OUTSIDER, wire=0), ours.clock.now)
    if case.other is not None:
        theirs = differing(asked, *case.other)
        service.bind(theirs, ours.clock.now, service.add(theirs, ours.clock.now))


def _known(service: Service, asked: Asked, account: str) -> None:
    played = service.nature.played
    if not played.known and not played.known_path:
        return
    document = asked.document
    for where, value in played.known.items():
        document = put(document, where, value)
    path = played.known_path or asked.path
    names = routed(service.nature.path, path) or asked.names
    headers = dict.fromkeys(asked.headers, played.control)
    query = {name: [played.control] for name in asked.query}
    made = replace(
        asked, document=document, account=account, wire=0, names=names, headers=headers, path=path, query=query
    )  # fmt: skip
    service.add(made, LONG_AGO)


def _meanwhile(run: Run, case: Case) -> None:
    if case.becomes:
        _become(run, case)
    if not case.ended:
        return
    for thing in run.crossings.service.things:
        if thing.ours:
            thing.gone, thing.closed = case.nature.ends == "gone", case.nature.ends == "closed"


def _become(run: Run, case: Case) -> None:
    """What our write left open ends once, when its time has come; that is foreseen when it is made."""
    service, clock = run.crossings.service, run.crossings.clock
    for thing in service.things:
        if thing.ours and not thing.foreseen:
            thing.foreseen = True
            clock.at(
                thing.at + BECOMES_SECONDS, partial(service.become, thing, case.becomes, thing.at + BECOMES_SECONDS)
            )


def _finally(service: Service, case: Case, now: float) -> None:
    """What was left open becomes what it becomes."""
    if not case.turns:
        return
    for thing in service.things:
        if thing.ours and case.nature.states[thing.state] == "open":
            service.effects.append(Effect(now, thing.made.wire, thing.made.account, thing.made.content, thing.id))


def _unsafe(run: Run, case: Case) -> list[str]:
    service, sent = run.crossings.service, run.crossings.sent
    happened = {effect.wire for effect in service.effects if effect.wire}
    found = []
    if len(happened) > 1:
        found.append("second_effect")
    if len(sent) > run.begun:
        found.append("write_without_record")
    retention = case.nature.key.retention
    for wire in sent[1:]:
        age = wire.at - sent[0].at
        if wire.basis == Basis.SAME_KEY_REPLAY and not isinstance(retention, str) and age >= retention:
            found.append("replay_after_retention")
    if any(_false_success(run, stood) for stood in run.stood):
        found.append("mismatch_told_as_success" if case.other else "false_success")
    if any(stood.outcome is Outcome.ACCEPTED and _of_nothing(run) for stood in run.stood):
        found.append("false_acceptance")
    if any(_false_rejection(stood, happened) for stood in run.stood):
        found.append("false_rejection")
    if not run.settled_in_time:
        found.append("never_ends")
    return sorted(set(found))


def _false_success(run: Run, stood: Stood) -> bool:
    if stood.outcome is not Outcome.SUCCEEDED or stood.contradicted:
        return False
    service = run.crossings.service
    if run.effect_at(stood.seq).startswith("accepted by"):
        return _of_nothing(run)
    if run.crossings.alike and not _of_nothing(run):
        return False
    return not any(effect.wire and effect.at <= stood.at for effect in service.effects)


def _of_nothing(run: Run) -> bool:
    """Nothing of ours ever reached the service, and what it was answered shows that."""
    if any(thing.ours for thing in run.crossings.service.things):
        return False
    # Where the answer cannot be told from ours only the key says whose it is, and nobody else has the ledger's own.
    return not (run.crossings.alike and own_key(run.crossings.contract))


def _false_rejection(stood: Stood, happened: set[int]) -> bool:
    """It is said that nothing happened, and something did, or will, of what had left by then."""
    return stood.outcome is Outcome.REJECTED and any(wire <= stood.attempts for wire in happened)


def own_key(contract: Contract) -> bool:
    """The key that is sent is the ledger's own: drawn by chance, and never used for anything else."""
    return any(f"{{{word}}}" in repr(contract.request) for word in ("provider_key", "provider_uuid"))
