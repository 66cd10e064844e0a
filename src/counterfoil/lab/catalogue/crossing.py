"""The provider's end of the product: a contract's requests cross to a service, as far as the script lets them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from counterfoil.domain.answer import Answer, Replied, Silent
from counterfoil.domain.contract import Contract
from counterfoil.domain.errors import PayloadRefused
from counterfoil.domain.reading import Sought, named, requests_of, seek
from counterfoil.domain.template import LookTemplate, Names, Rendered, RequestTemplate, render
from counterfoil.lab.behaviour.asked import Asked, read
from counterfoil.lab.behaviour.service import PLAIN, Fate, Service, Thing
from counterfoil.lab.behaviour.showing import CLEAR, NOT_THERE, Sight, show
from counterfoil.lab.catalogue.clock import Clock
from counterfoil.ports.provider import Flight, LookOrder, SendOrder

ANSWER_SECONDS = 0.2
"""From a write to its answer, where it comes."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """What becomes of one write on its way there and back."""

    arrives: tuple[float, ...] = (0.0,)
    """Seconds from the write to each arrival of it; none: it is lost."""
    answered: bool = True
    """What the last arrival is answered comes back."""
    fate: Fate = PLAIN
    reset: bool = False
    """The connection breaks at once, where an answer would have come."""
    instead: Replied | None = None
    """Something in between answers this."""


@dataclass(slots=True)
class Wire:
    """One write that left."""

    at: float
    basis: str = ""


@dataclass(slots=True)
class Crossings:
    """One operation's traffic with one service.

    Args:
        contract: says what is sent and asked.
        service: the provider.
        clock: the virtual time.
        script: what becomes of each write in turn; those after it go well.
        sight: what becomes of looks.
    """

    contract: Contract
    service: Service
    clock: Clock
    script: tuple[Crossing, ...] = ()
    sight: Sight = CLEAR
    before: Callable[[Crossings, Asked], None] | None = None
    """What somebody else does before our first write arrives."""
    sent: list[Wire] = field(default_factory=list)
    alike: bool = False
    """What came back of somebody else's is, byte for byte, what ours would have been answered."""
    astray: list[str] = field(default_factory=list)
    """Requests that the provider has no route for: the contract asks for something that is not there."""

    # -- the adapter's part ------------------------------------------------------------------------------------------

    def check(self, order: SendOrder) -> None:
        """Refuse what the contract cannot send."""
        self._rendered(order)

    def form(self, order: SendOrder) -> bytes:
        """What would be written."""
        return self._rendered(order).body

    def send(self, order: SendOrder, flight: Flight) -> Answer:
        """Write once."""
        return self._write(self._rendered(order), order, flight, wire=len(self.sent) + 1)

    def fence(self, order: SendOrder, flight: Flight, index: int) -> Answer:
        """Send a fence: it is nobody's effect."""
        template = self.contract.fences[index].request
        made = self.rendered(template, order.payload, order.provider_key, order.account)
        return self._write(made, order, flight, wire=0)

    def _write(self, made: Rendered, order: SendOrder, flight: Flight, *, wire: int) -> Answer:
        flight.may_have_left = True
        self.sent.append(Wire(self.clock.now))
        asked = self.asked(made, order.account, wire)
        script = self.script[len(self.sent) - 1] if len(self.sent) <= len(self.script) else Crossing()
        if asked is None:
            self.astray.append(f"{made.method} {made.target}")
            return Replied(status=404)
        if self.before is not None and len(self.sent) == 1:
            self.before(self, asked)
        return self._crossed(script, asked, order.deadline_seconds)

    def _crossed(self, script: Crossing, asked: Asked, seconds: float) -> Answer:
        began, heard = self.clock.now, list[tuple[Replied, float]]()
        for delay in script.arrives:
            self.clock.at(began + delay, lambda: heard.append(self._arrived(asked, script.fate)))
        self.clock.pass_time(ANSWER_SECONDS)
        if script.instead is not None:
            return script.instead
        if script.reset:
            return Silent(may_have_left=True, reason="reset")
        if script.answered and heard and heard[-1][1] <= began + seconds:
            return heard[-1][0]
        self.clock.pass_time(seconds - ANSWER_SECONDS)
        return Silent(may_have_left=True, reason="read_timeout")

    def _arrived(self, asked: Asked, fate: Fate) -> tuple[Replied, float]:
        bound, nature = self.service.nature.late_bound, self.service.nature
        late = self.clock.now - self.sent[0].at
        if isinstance(bound, float | int) and late > bound and nature.too_late is not None:
            return self.service.told(nature.too_late, asked, None), self.clock.now
        things = len(self.service.things)
        answer, ends = self.service.arrive(asked, self.clock.now, fate)
        if len(self.service.things) == things and self.service.things:
            self._compare(asked, answer)
        return answer, ends

    def _compare(self, asked: Asked, answer: Replied) -> None:
        """Nothing was made of it: see whether the answer shows that it speaks of something else."""
        last = self.service.things[-1]
        ours = Thing(last.id, last.key, asked, last.state, last.at)
        self.alike = self.service.told(self.service.nature.answers.done, asked, ours) == answer

    def look(self, order: LookOrder) -> tuple[Answer, ...]:
        """Make the reads of one look."""
        self.clock.pass_time(ANSWER_SECONDS)
        sought = Sought(account=order.account, payload=order.payload, names=order.names)
        look = self.contract.looks[order.look]
        names = named(look, sought)
        return tuple(self._read(template, order, names) for template in requests_of(look, sought))

    def _read(self, template: LookTemplate, order: LookOrder, names: Names) -> Answer:
        try:
            made = render(template, order.payload, names)
        except PayloadRefused:
            return Silent(may_have_left=False, reason="not_rendered")
        for shown in self.service.nature.looks:
            kind = "json" if shown.method == "POST" else "text"
            asked = (
                read(made, body=kind, account=order.account, route=shown.path) if made.method == shown.method else None
            )
            if asked is not None:
                return show(self.service, shown, asked, self.clock.now, self.sight)
        self.astray.append(f"{made.method} {made.target}")
        return Replied(status=NOT_THERE.status)

    # -- requests ----------------------------------------------------------------------------------------------------

    def asked(self, made: Rendered, account: str, wire: int = 0) -> Asked | None:
        """A rendered write as the provider reads it."""
        nature = self.service.nature
        if made.method != nature.method:
            return None
        return read(made, body=nature.body, account=account, route=nature.path, wire=wire)

    def rendered(self, template: RequestTemplate, payload: bytes, provider_key: str, account: str) -> Rendered:
        """One request of the contract for a payload."""
        names = seek(self.contract, account=account, payload=payload, names=Names(provider_key=provider_key)).names
        return render(template, payload, names)

    def _rendered(self, order: SendOrder) -> Rendered:
        assert self.contract.request is not None  # noqa: S101 - only such a contract is played
        return self.rendered(self.contract.request, order.payload, order.provider_key, order.account)
