"""Everything a provider can answer to our write or show of it, and what of a contract that leaves untested."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from counterfoil.domain.answer import Replied
from counterfoil.domain.body import parse
from counterfoil.domain.canonical import canonical
from counterfoil.domain.contract import Contract
from counterfoil.domain.judge import judge
from counterfoil.domain.reading import Reading, ReadingKind, compare, read, seek
from counterfoil.domain.template import Names, uses
from counterfoil.lab.behaviour.asked import Asked, differing
from counterfoil.lab.behaviour.model import Behaviour, Told
from counterfoil.lab.behaviour.natures import natures
from counterfoil.lab.behaviour.service import Service, Thing
from counterfoil.lab.behaviour.showing import CLEAR, OUTSIDER, Sight
from counterfoil.lab.catalogue.clock import Clock
from counterfoil.lab.catalogue.crossing import Crossings
from counterfoil.lab.catalogue.scenarios import BETWEEN
from counterfoil.ports.provider import LookOrder

KEY = "op_00112233445566778899aabbccddeeff"
"""Of the form of the ledger's own, so that it has a UUID too."""
NOTHING = "nothing"
"""What is concluded of a candidate, of somebody else's and of a look that says nothing."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer that may come back."""

    answer: Replied
    did_nothing: bool = False
    """It only ever answers a request that had no effect, nor any copy of it."""


def others(behaviour: Behaviour, asked: Asked) -> list[Asked]:
    """Everybody else's requests: ours, each with one thing different."""
    return [differing(asked, *one) for one in behaviour.played.differs.items()]


def replies(behaviour: Behaviour, asked: Asked) -> Iterator[Reply]:
    """Every answer there can be to our write: in each state, of ours and of each other's, and from between."""
    service, answers = Service(behaviour), behaviour.answers
    shown = behaviour.key.at != "none" and behaviour.key.other in ("replay", "current", "unknown")
    for made in (asked, *others(behaviour, asked)):
        for state in behaviour.states:
            thing = Thing("id_1", service.key_of(asked), made, state, 0.0)
            for told in _given(*((answers.done, answers.replayed) if made is asked or shown else ())):
                yield Reply(service.told(told, asked, thing))
            for told in _given(answers.again, answers.busy):
                yield Reply(service.told(told, asked, thing))
            for told in _given(answers.mismatch):
                yield Reply(service.told(told, asked, thing), did_nothing=True)
    for told in (*answers.refusals, *_given(behaviour.too_late)):
        yield Reply(service.told(told, asked, None), did_nothing=True)
    for told in answers.errors:
        yield Reply(service.told(told, asked, None))
    yield from map(Reply, BETWEEN)


def _given(*told: Told | None) -> tuple[Told, ...]:
    return tuple(one for one in told if one is not None)


def readings(contract: Contract, index: int, behaviour: Behaviour) -> list[str]:
    """What one look concludes of each thing that may be there instead of ours: others', in other states, elsewhere."""
    return [_concluded(reading) for reading in _readings(contract, index, behaviour)]


def _concluded(reading: Reading) -> str:
    """What is only shown to people, and never counted, is all one."""
    if reading.kind is ReadingKind.FOUND or reading.reason == "duplicate_suspected":
        return "found"
    return reading.kind.value if reading.kind in (ReadingKind.ABSENT, ReadingKind.DUPLICATE) else NOTHING


def _readings(contract: Contract, index: int, behaviour: Behaviour) -> Iterator[Reading]:
    (nature,) = natures(behaviour)
    asked = asked_for(contract, nature)
    assert asked is not None  # noqa: S101 - a contract with no route is not looked at further
    for made in (asked, *others(nature, asked)):
        yield _read(contract, index, nature, made)
    for state in nature.states:
        yield _read(contract, index, nature, asked, state)
    yield _read(contract, index, nature, replace(asked, account=OUTSIDER), sight=Sight(outsider=True))


def _read(
    contract: Contract, index: int, nature: Behaviour, made: Asked, state: str = "", sight: Sight = CLEAR
) -> Reading:
    service = Service(nature)
    service.add(made, 1.0, state)
    crossings = Crossings(contract, service, Clock(), sight=sight)
    payload, account = canonical(nature.played.payload), nature.played.account
    names = Names(provider_key=KEY, external_id="id_1", control=nature.played.control, negative="cf-absent-1")
    sought = seek(contract, account=account, payload=payload, names=names)
    order = LookOrder(
        account=account, destination="", payload=payload, look=index, names=sought.names, deadline_seconds=30.0
    )
    return read(contract.looks[index], crossings.look(order), sought)


def asked_for(contract: Contract, behaviour: Behaviour) -> Asked | None:
    """Our write, as the provider reads it; None where it has no such route."""
    if contract.request is None:
        return None
    crossings = Crossings(contract, Service(behaviour), Clock())
    payload, account = canonical(behaviour.played.payload), behaviour.played.account
    return crossings.asked(crossings.rendered(contract.request, payload, KEY, account), account, 1)


def untested(contract: Contract, behaviour: Behaviour, asked: Asked) -> Iterator[str]:
    """What a contract concludes from, and nothing of the behaviour puts to the test."""
    payload = canonical(behaviour.played.payload)
    judged = [(judge(contract, one.answer, 1, "e", payload).rule, one) for one in replies(behaviour, asked)]
    for index, rule in enumerate(contract.answers):
        if rule.finding != "unknown" and not any(name == f"answers[{index}]" for name, _ in judged):
            yield f"answers[{index}] is reached by no answer of the behaviour"
        for where, there in rule.match.items():
            identity = contract.reference == f"payload{where}"  # another one there is another key
            if not identity and not _differs({where: there}, behaviour, asked, payload):
                yield f"answers[{index}].match {where}: nothing in `differs` is answered otherwise there"
    for index, look in enumerate(contract.looks):
        found = list(_readings(contract, index, behaviour))
        different = {where for reading in found for where in _unequal(reading)}
        hidden = any(reading.kind is ReadingKind.ABSENT for reading in found)
        compared = (*look.match.material, *(look.match.text.properties if look.match.text else ()))
        for where in compared:
            if where not in different and not (hidden and uses(look.request, f"payload{where}")):
                yield f"looks[{index}].match.material {where or 'payload'}: nothing in `differs` is shown otherwise"


def _unequal(reading: Reading) -> list[str]:
    return [where for where, said in reading.compared.items() if said != "equal"]


def _differs(match: dict[str, str], behaviour: Behaviour, asked: Asked, payload: bytes) -> bool:
    """Somebody else's request would be answered by another value there."""
    service = Service(behaviour)
    for made in others(behaviour, asked):
        thing = Thing("id_1", service.key_of(asked), made, next(iter(behaviour.states)), 0.0)
        document = parse(service.told(behaviour.answers.done, asked, thing).body)
        if document.ok and "different" in compare(match, payload, document.value).values():
            return True
    return False
