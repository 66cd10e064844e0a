"""Mutants of the claim: what must be durable, and decided, before a byte leaves."""

from __future__ import annotations

from typing import Any

from counterfoil.domain.words import Basis


def _performing(changes: Any) -> None:
    """Put something around whatever the executor performs, in the product's and in a world's."""
    from counterfoil.runtime.executor import Executor

    perform = Executor.perform
    changed: Any = Executor
    changed.perform = lambda self, effect: changes(self, effect, perform)


def send_before_record() -> None:
    """Send first and write the receipt after it."""
    from counterfoil.domain.command import Claim
    from counterfoil.domain.payload import SALT_BYTES
    from counterfoil.plans.effects import Flight, Send
    from counterfoil.ports.provider import SendOrder

    early: dict[str, Any] = {}

    def changes(self: Any, effect: Any, perform: Any) -> Any:
        if isinstance(effect, Claim):
            action = self.registered(effect.intent.action).action
            order = SendOrder(
                account=effect.intent.account, destination=effect.intent.destination, payload=effect.body[SALT_BYTES:],
                provider_key=effect.id, deadline_seconds=action.contract.send_deadline_seconds,
            )  # fmt: skip
            early[effect.id] = self.registered(effect.intent.action).provider.send(order, Flight())
        elif isinstance(effect, Send) and effect.operation in early:
            return early.pop(effect.operation)
        return perform(self, effect)

    _performing(changes)


def send_despite_lost_ack() -> None:
    """Send although nobody said that the claim stands."""
    from counterfoil.domain.command import Claim, Claimed
    from counterfoil.domain.errors import Unavailable

    def changes(self: Any, effect: Any, perform: Any) -> Any:
        try:
            return perform(self, effect)
        except Unavailable:
            if not isinstance(effect, Claim):
                raise
            return Claimed(at=self._store.now(), head=b"")

    _performing(changes)


def new_key_per_attempt() -> None:
    """Give each attempt a provider key of its own."""
    from counterfoil.plans import dispatch

    send = dispatch.send
    changed: Any = dispatch

    def sent(order: Any, draw: Any, holder: Any, *given: Any, provider_key: str) -> Any:
        return send(order, draw, holder, *given, provider_key=f"{provider_key}-{holder.number}")

    changed.send = sent


def recovery_makes_ready() -> None:
    """Take what a dead worker left for what never left."""
    import msgspec

    from counterfoil.domain.words import Finding
    from counterfoil.plans import recover

    left = recover._left  # noqa: SLF001 - a mutant replaces what nobody may call
    changed: Any = recover

    def found(attempt: Any) -> Any:
        evidence = yield from left(attempt)
        return evidence and msgspec.structs.replace(evidence, finding=Finding.NOT_SENT, quiesced=True)

    changed._left = found  # noqa: SLF001 - likewise


def recovery_ignores_hand() -> None:
    """Take every worker for dead, the one that is sending right now too."""
    from counterfoil.plans import recover
    from counterfoil.plans.effects import Hand

    left = recover._left  # noqa: SLF001 - a mutant replaces what nobody may call
    changed: Any = recover

    def found(attempt: Any) -> Any:
        plan = left(attempt)
        effect = next(plan)
        assert isinstance(effect, Hand)  # noqa: S101 - the first thing it asks
        yield effect
        reply: Any = recover.DEAD
        while True:
            try:
                effect = plan.send(reply)
            except StopIteration as stop:
                return stop.value
            reply = yield effect

    changed._left = found  # noqa: SLF001 - likewise


def alive_is_in_hand() -> None:
    """Wait for a worker for as long as its process lives, whatever its deadline was."""
    from counterfoil.plans import recover
    from counterfoil.plans.effects import Hand

    left = recover._left  # noqa: SLF001 - a mutant replaces what nobody may call
    changed: Any = recover

    def found(attempt: Any) -> Any:
        hand = yield Hand(attempt)
        if hand == "alive":
            return None
        plan = left(attempt)
        next(plan)
        try:
            effect = plan.send(hand)
            while True:
                effect = plan.send((yield effect))
        except StopIteration as stop:
            return stop.value

    changed._left = found  # noqa: SLF001 - likewise


def claim_ignores_state() -> None:
    """Claim whatever is asked for, whatever stands there."""
    from counterfoil.domain import rules
    from counterfoil.domain.retry import RetryDecision
    from counterfoil.domain.words import AttemptClass
    from counterfoil.plans import dispatch

    changed: Any = rules
    plans: Any = dispatch
    changed.decide_retry = lambda *_, **__: RetryDecision(
        allowed=True, basis=Basis.NOT_SENT, attempt_class=AttemptClass.AFTER_NOT_SENT
    )
    plans.may_dispatch = lambda *_: True


def loser_goes_on() -> None:
    """Go on where a further attempt was declined, as if it had been claimed."""
    import msgspec

    from counterfoil.domain.command import Amend, Amended, Declined
    from counterfoil.domain.event import EventKind

    def changes(self: Any, effect: Any, perform: Any) -> Any:
        reply = perform(self, effect)
        if not (isinstance(effect, Amend) and effect.policy is not None and isinstance(reply, Declined)):
            return reply
        history = self._store.load(effect.operation)
        begun = [n for n, event in enumerate(history.events, start=1) if event.kind is EventKind.BEGUN]
        return Amended(history=msgspec.structs.replace(history, events=history.events[: begun[-1]])) if begun else reply

    _performing(changes)


def clock_before_claim() -> None:
    """Read the clock before the transaction, and judge by it inside."""
    from counterfoil.domain import rules

    claim_again = rules.claim_again
    changed: Any = rules
    clock: list[float] = []

    def claimed(*given: Any, **named: Any) -> Any:
        from counterfoil.store import sqlite

        read: Any = sqlite
        now, rule = getattr(read.time, "now", read.time.time)(), claim_again(*given, **named)
        clock.append(now)
        return lambda history, _: rule(history, max(now, history.events[-1].at))

    changed.claim_again = claimed


def retention_ignored() -> None:
    """Send again under a key that the provider may have forgotten."""
    from counterfoil.domain import retry

    changed: Any = retry
    changed._against_retention = lambda _: ()  # noqa: SLF001 - a mutant replaces what nobody may call


def short_retention_accepted() -> None:
    """Count a key's time without how long a request may be on its way."""
    import msgspec

    from counterfoil.domain import retry

    against = retry._against_retention  # noqa: SLF001 - a mutant replaces what nobody may call
    changed: Any = retry

    def judged(situation: Any) -> Any:
        at_once = situation.longest_delivery is not None
        seconds = -situation.contract.send_deadline_seconds
        return against(msgspec.structs.replace(situation, longest_delivery=seconds) if at_once else situation)

    changed._against_retention = judged  # noqa: SLF001 - likewise


def replay_in_flight() -> None:
    """Send again beside an attempt that nobody has reported on."""
    from counterfoil.domain import retry

    against = retry._against_replay  # noqa: SLF001 - a mutant replaces what nobody may call
    changed: Any = retry
    changed._against_replay = lambda *given, **named: tuple(  # noqa: SLF001 - likewise
        said for said in against(*given, **named) if said not in (retry.IN_FLIGHT, retry.NOT_QUIESCED)
    )


def no_deadline_before_write() -> None:
    """Write however long ago it was claimed."""
    from counterfoil.runtime import executor

    send = executor.Executor._send  # noqa: SLF001 - a mutant replaces what nobody may call
    changed: Any = executor.Executor

    import msgspec

    changed._send = lambda self, effect: send(self, msgspec.structs.replace(effect, deadline=float("inf")))  # noqa: SLF001


def select_then_update() -> None:
    """Claim by a read and a write of its own, at READ COMMITTED."""
    from counterfoil.store import locks, transaction

    write = transaction._write  # noqa: SLF001 - a mutant replaces what nobody may call
    place: Any = locks
    place.TAKE = b"SELECT $1::text[], $2::boolean[], $3::bigint[]"
    place.ROWS = b"SELECT n FROM operation WHERE n = ANY ($1::bigint[])"
    changed: Any = transaction
    changed._write = lambda db, history, *decided: write(  # noqa: SLF001 - likewise
        db, transaction.standing(db, history.operation.id), *decided
    )


def settle_not_fenced() -> None:
    """Write an outcome over whatever was written meanwhile."""
    import msgspec

    from counterfoil.domain.command import Settle
    from counterfoil.store import rows, sqlite, transaction

    settle = transaction.settle
    place: Any = sqlite

    def settled(db: Any, s: Settle, now: float) -> Any:
        found = rows.by_number(db, s.n)
        moved = found is not None and found.seq > s.seq and rows.history(db, found).events[-1].record != s.record
        if moved and found is not None:
            s = msgspec.structs.replace(s, seq=found.seq, head=rows.history(db, found).head)
        return settle(db, s, now)

    place._RUNS = {**place._RUNS, Settle: settled}  # noqa: SLF001 - a mutant replaces what nobody may call


def token_compared_loosely() -> None:
    """Take whatever stands where one's own word belongs for one's own."""
    from counterfoil.domain.command import Settled, Stale
    from counterfoil.store import rows, transaction

    changed: Any = transaction

    def before(db: Any, s: Any) -> Any:
        found = "SELECT at, hash FROM event WHERE id = ?"
        row = db.execute(found, (rows.event_id(s.n, s.seq + 1),)).fetchone()
        return Stale() if row is None else Settled(at=row[0], head=row[1])

    changed._settled_before = before  # noqa: SLF001 - a mutant replaces what nobody may call


def conflict_returns_receipt() -> None:
    """Answer another payload under a known key with the old receipt."""
    from counterfoil.domain.command import Existing
    from counterfoil.store import rows, transaction

    changed: Any = transaction

    def stands(db: Any, claim: Any) -> Any:
        intent = claim.intent
        found = rows.by_key(db, intent.tenant, intent.actor, intent.action, intent.key)
        return None if found is None else Existing(history=rows.history(db, found))

    changed._stands = stands  # noqa: SLF001 - a mutant replaces what nobody may call


def fingerprint_drops_field() -> None:
    """Leave a material field out of what two calls are compared by."""
    from counterfoil.domain import canonical
    from counterfoil.runtime import registered

    real = canonical.fingerprint
    changed: Any = registered

    class Dropping:
        """The canonical module, with a fingerprint that does not see amounts."""

        def __getattr__(self, name: str) -> Any:
            return getattr(canonical, name)

        @staticmethod
        def fingerprint(material: bytes, *, key: bytes | None = None) -> str:
            return real(material[: material.rindex(b",")], key=key)

    changed.canonical = Dropping()


def clock_goes_back() -> None:
    """Judge by the clock as it reads now, though a later time was judged by before."""
    from counterfoil.store import sqlite, transaction

    changed: Any = sqlite.SqliteStore
    changed.now = lambda self: self._clock()
    place: Any = transaction
    place.not_before = lambda _, now: now
