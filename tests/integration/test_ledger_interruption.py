"""Interrupted calls: what is known is recorded, shielded, and the interruption goes on; a thread answers late."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from tests.crash.world import World

from counterfoil.domain.answer import Replied, Silent
from counterfoil.domain.audit import audit
from counterfoil.domain.command import Claim
from counterfoil.domain.errors import NotRecorded, StoreBusy, StoreUnsafe
from counterfoil.domain.event import attempts_of
from counterfoil.domain.words import Dispatch, Finding, Outcome, Standing
from counterfoil.runtime import executor as executing

WHO = {"owner": "payments", "authoriser": "payments-lead"}
SECONDS = 30
"""How long a test waits for anything; a run needs milliseconds."""
DONE = Replied(status=201, body=b'{"id":"ef_1","state":"done"}')


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "w", "lab.lookup")


@pytest.fixture
def ledger(world):
    ledger = world.open()
    yield ledger
    assert [found for history in ledger.store.histories() for found in audit(history)] == []
    ledger.close()


class Slow:
    """A provider whose send waits in its thread until it is let go on: before its first byte, or for its answer."""

    def __init__(self, answer=DONE, *, left=True):
        self.begun, self.go_on, self.answer, self.left = threading.Event(), threading.Event(), answer, left
        self.sent = 0

    def check(self, order):
        """Anything can be sent."""

    def send(self, order, flight):
        flight.may_have_left = self.left
        self.begun.set()
        assert self.go_on.wait(SECONDS)
        flight.may_have_left = True
        self.sent += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def slow(world, ledger, **said):
    """Put a slow provider in the place of the world's."""
    (registered,) = ledger.registry.values()
    registered.provider = provider = Slow(**said)
    return provider


async def until(event):
    """Wait for a thread without holding up the loop."""
    assert await asyncio.to_thread(event.wait, SECONDS)


async def sending(ledger, provider):
    """The task of a call whose thread has begun to send."""
    task = asyncio.ensure_future(ledger.acall(ledger.order()))
    await until(provider.begun)
    return task


async def cancelled(task):
    """Cancel a task; it ends as cancelled."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def queued(pool):
    """Wait until something waits for a thread of this pool."""
    async with asyncio.timeout(SECONDS):
        while pool._work_queue.empty():  # noqa: ASYNC110 - a pool tells nobody
            await asyncio.sleep(0)


async def queueing(ledger, busy):
    """The task of a call whose send waits for the only thread, and what has that thread until `busy` is set."""
    loop, pool = asyncio.get_running_loop(), ThreadPoolExecutor(max_workers=1)
    loop.set_default_executor(pool)
    ledger._drawer.draw()
    ledger._drawn_in = os.getpid()  # so that nothing but the send needs a thread
    blocker = loop.run_in_executor(None, busy.wait, SECONDS)
    task = asyncio.ensure_future(ledger.acall(ledger.order()))
    await queued(pool)
    return task, blocker


def attempt_of(ledger):
    (operation,) = ledger.store.operations(limit=9)
    return attempts_of(ledger.history(operation.id).events)[0][-1]


def settled(ledger):
    """The one receipt, once its late answer has been recorded."""
    done = threading.Event()
    for _ in range(SECONDS * 100):
        (operation,) = ledger.store.operations(limit=9)
        if not operation.unresolved or done.wait(0.01):
            break
    return ledger.get(operation.id)


# -- blocking --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
@pytest.mark.parametrize("kind", ["function", "lab.lookup"])
def test_an_interrupted_send_is_unknown(tmp_path, kind, interruption):
    """R41: whatever cuts a send short, the receipt says unknown and the interruption is what its caller gets."""
    world = World(tmp_path / "w", kind)
    ledger = world.open()

    def cut(order, flight):
        flight.may_have_left = True
        world.truth.arrive(order.provider_key, {"amount": 10})
        raise interruption

    world.provider.send = cut
    with pytest.raises(interruption):
        world.call(ledger)
    receipt = world.call(ledger)
    assert (receipt.outcome, receipt.standing) == (Outcome.UNKNOWN, Standing.UNRESOLVED)
    assert len(world.truth.requests) == 1
    ledger.close()


def test_an_interruption_before_the_first_byte_is_not_sent(world, ledger):
    """Provably nothing left: the same call may be made again, and is."""
    send = world.provider.send

    def cut(order, flight):
        raise KeyboardInterrupt

    world.provider.send = cut
    with pytest.raises(KeyboardInterrupt):
        world.call(ledger)
    world.provider.send = send
    assert attempt_of(ledger).finding is Finding.NOT_SENT
    assert world.call(ledger).outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupted_claim_sends_nothing(world, ledger, monkeypatch, when):
    """Ctrl+C while the claim is written: it does not stand, or stands as not_sent; nothing left either way."""
    write = ledger.store.write

    def cut(command):
        monkeypatch.setattr(ledger.store, "write", write)
        if when == "after":
            write(command)
        raise KeyboardInterrupt

    monkeypatch.setattr(ledger.store, "write", cut)
    with pytest.raises(KeyboardInterrupt):
        world.call(ledger)
    assert world.provider.sent == 0
    assert ledger.store.unresolved() == []
    assert world.call(ledger).outcome is Outcome.SUCCEEDED


def test_an_interrupted_record_is_not_lost(world, ledger, monkeypatch):
    """Ctrl+C while the answer is written: it is on record all the same, and the interruption goes on."""
    write, commands = ledger.store.write, []

    def cut(command):
        commands.append(type(command).__name__)
        if commands == ["Claim", "Settle"]:
            raise KeyboardInterrupt
        return write(command)

    monkeypatch.setattr(ledger.store, "write", cut)
    with pytest.raises(KeyboardInterrupt):
        world.call(ledger)
    assert world.call(ledger).expect() == {"id": "ef_1", "state": "done"}
    assert world.provider.sent == 1


# -- on an event loop ------------------------------------------------------------------------------------------------


def test_a_cancelled_function_is_unknown(ledger):
    """R40: an awaited function that is cancelled may have done it: recorded before the cancellation goes on."""
    begun = asyncio.Event()

    @ledger.action(key=lambda order: order, **WHO)
    async def pay(order):
        begun.set()
        await asyncio.get_running_loop().create_future()

    async def main():
        task = asyncio.ensure_future(pay("o-1"))
        await begun.wait()
        await cancelled(task)
        return await pay("o-1")

    receipt = asyncio.run(main())
    assert (receipt.outcome, receipt.standing) == (Outcome.UNKNOWN, Standing.UNRESOLVED)


def test_a_cancelled_thread_goes_on_and_its_answer_settles(world, ledger):
    """Cancelled while its thread still sends: unknown and not quiet; what the thread then hears is evidence."""
    provider = slow(world, ledger)

    async def main():
        await cancelled(await sending(ledger, provider))
        attempt = attempt_of(ledger)
        assert (attempt.finding, attempt.quiesced) == (Finding.UNKNOWN, False)
        (operation,) = ledger.store.unresolved()
        worked = await asyncio.to_thread(ledger.work, operation.id)
        assert worked.outcome is Outcome.UNKNOWN
        assert not attempt_of(ledger).quiesced  # its thread is alive and may still write
        provider.go_on.set()

    asyncio.run(main())
    receipt = settled(ledger)
    assert (receipt.outcome, receipt.operation.settled_by) == (Outcome.SUCCEEDED, "succeeded:late_answer")
    assert (receipt.expect(), provider.sent) == ({"id": "ef_1", "state": "done"}, 1)
    assert attempt_of(ledger).quiesced


def test_a_thread_that_has_not_written_yet_is_not_called_not_sent(world, ledger):
    """Cancelled while its thread still connects: the thread may write any moment, so nothing is freed."""
    provider = slow(world, ledger, left=False)

    async def main():
        await cancelled(await sending(ledger, provider))
        again = await ledger.acall(ledger.order())
        assert (again.outcome, again.standing) == (Outcome.UNKNOWN, Standing.UNRESOLVED)
        provider.go_on.set()

    asyncio.run(main())
    assert settled(ledger).outcome is Outcome.SUCCEEDED
    assert provider.sent == 1


def test_a_thread_whose_connection_failed_says_so_late(world, ledger):
    """A late not_sent is evidence too: the operation is free again, and the same call dispatches."""
    provider = slow(world, ledger, left=False, answer=Silent(may_have_left=False, reason="connect_failed"))

    async def main():
        await cancelled(await sending(ledger, provider))
        provider.go_on.set()

    asyncio.run(main())
    assert settled(ledger).dispatch is Dispatch.NOT_STARTED
    provider.answer = DONE
    assert world.call(ledger).outcome is Outcome.SUCCEEDED


def test_a_send_that_never_began_is_not_sent(world, ledger):
    """Cancelled while every thread is busy: nothing leaves afterwards, and that is what the receipt says."""
    busy = threading.Event()

    async def main():
        task, blocker = await queueing(ledger, busy)
        await cancelled(task)
        busy.set()
        await blocker

    asyncio.run(main())
    assert world.provider.sent == 0
    assert attempt_of(ledger).finding is Finding.NOT_SENT
    assert world.call(ledger).outcome is Outcome.SUCCEEDED


def test_a_send_that_stood_in_a_queue_for_too_long_is_not_made(world, ledger):
    """R19, R23: begun after its deadline it writes nothing, whoever still waits for it; the same call may dispatch."""
    busy = threading.Event()

    async def main():
        task, _ = await queueing(ledger, busy)
        world.now += 11.0
        busy.set()
        return await task

    receipt = asyncio.run(main())
    assert (receipt.dispatch, world.provider.sent) == (Dispatch.NOT_STARTED, 0)
    assert world.call(ledger).outcome is Outcome.SUCCEEDED


def test_a_process_that_was_paused_before_its_send_makes_none(world, ledger, monkeypatch):
    """Woken after its deadline, between the claim and the first byte: not sent, in both worlds."""
    write = ledger.store.write

    def paused(command):
        reply = write(command)
        world.now += 11.0 if type(command).__name__ == "Claim" else 0.0
        return reply

    with monkeypatch.context() as patched:
        patched.setattr(ledger.store, "write", paused)
        assert world.call(ledger).dispatch is Dispatch.NOT_STARTED

    @ledger.action(key=lambda order: order, **WHO)
    async def pay(order):
        world.provider.sent += 1

    awrite = ledger.store.awrite

    async def apaused(command):
        reply = await awrite(command)
        world.now += 31.0 if type(command).__name__ == "Claim" else 0.0
        return reply

    async def main():
        with monkeypatch.context() as patched:
            patched.setattr(ledger.store, "awrite", apaused)
            return await pay("o-1")

    assert asyncio.run(main()).dispatch is Dispatch.NOT_STARTED
    assert world.provider.sent == 0


def test_a_thread_that_breaks_is_no_longer_in_hand(world, ledger):
    """An adapter that raises after its caller has gone leaves unknown, and its thread is known to be over."""
    provider = slow(world, ledger, answer=RuntimeError("a defect"))

    async def main():
        await cancelled(await sending(ledger, provider))
        provider.go_on.set()

    asyncio.run(main())
    (operation,) = ledger.store.unresolved()
    assert ledger._roster.in_hand == ledger._executor.detached == set()
    ledger.work(operation.id)
    assert attempt_of(ledger).quiesced
    assert attempt_of(ledger).finding is Finding.UNKNOWN


def test_a_late_answer_the_store_cannot_take_is_spooled(world, ledger, monkeypatch):
    """Nobody is left to be told: the thread's answer waits beside the store until it is drained."""
    provider = slow(world, ledger)
    monkeypatch.setattr(executing, "INSIST_FIRST_SECONDS", 0.001)

    async def main():
        await cancelled(await sending(ledger, provider))

        def away(command):
            raise StoreBusy("away")

        with monkeypatch.context() as patched:
            patched.setattr(ledger.store, "write", away)
            provider.go_on.set()
            await asyncio.get_running_loop().shutdown_default_executor()

    asyncio.run(main())
    assert ledger.store.unresolved()
    assert ledger.drain() == 1
    assert settled(ledger).operation.settled_by == "succeeded:late_answer"


def test_an_answer_in_the_moment_of_cancellation_is_kept(world, ledger):
    """The thread has answered and the loop has not noticed yet: the answer is recorded, not the cancellation."""
    provider = slow(world, ledger)

    async def main():
        task = await sending(ledger, provider)
        waits = []
        end = executing._Wait.end

        def ended(wait, answer):
            over = end(wait, answer)
            waits.append(answer)
            return over

        executing._Wait.end = ended
        try:
            provider.go_on.set()
            while not waits:
                pass  # the loop is held up on purpose: the answer is there and nobody has looked
            await cancelled(task)
        finally:
            executing._Wait.end = end

    asyncio.run(main())
    (operation,) = ledger.store.operations(limit=9)
    assert operation.settled_by == "succeeded:answer"
    assert provider.sent == 1
    assert (ledger._executor.detached, ledger._roster.in_hand) == (set(), set())


@pytest.mark.parametrize("awaited", [False, True], ids=["blocking", "awaited"])
def test_an_answer_an_unsafe_store_refuses_is_spooled(ledger, monkeypatch, awaited):
    """The file was replaced after the claim: the answer is insisted on and spooled, never dropped."""
    monkeypatch.setattr(executing, "INSIST_FIRST_SECONDS", 0.0)
    write, awrite = ledger.store.write, ledger.store.awrite

    def refused(command):
        if not isinstance(command, Claim):
            raise StoreUnsafe(str(ledger.store.path), "was removed or replaced")
        return write(command)

    async def arefused(command):
        return await awrite(command) if isinstance(command, Claim) else refused(command)

    async def apay(order):
        return {"id": order}

    def pay(order):
        return {"id": order}

    guarded = ledger.action(apay if awaited else pay, name="pay", key=lambda order: order, **WHO)
    with monkeypatch.context() as patched:
        patched.setattr(ledger.store, "write", refused)
        patched.setattr(ledger.store, "awrite", arefused)
        with pytest.raises(NotRecorded) as caught:
            asyncio.run(guarded("o-1")) if awaited else guarded("o-1")
    assert caught.value.spooled
    assert ledger.drain() == 1
    assert ledger.get(caught.value.operation).outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("repeats", [1, 50])
def test_cancelling_again_and_again_loses_no_record(world, ledger, repeats):
    """A task that is cancelled at every step, also while it records, still records before it ends."""
    provider = slow(world, ledger)

    async def main():
        task = await sending(ledger, provider)
        for _ in range(repeats):
            task.cancel()
            await asyncio.sleep(0)  # one step of the task
        async with asyncio.timeout(SECONDS):
            while not task.done():
                task.cancel()
                await asyncio.sleep(0)
        assert attempt_of(ledger).finding is Finding.UNKNOWN
        provider.go_on.set()

    asyncio.run(main())
    assert settled(ledger).outcome is Outcome.SUCCEEDED


def test_a_level_cancelling_scope_loses_no_record(ledger):
    """Anyio cancels every await of a scope that was left: the outcome is on record when the scope has ended."""
    begun = anyio.Event()

    @ledger.action(key=lambda order: order, **WHO)
    async def pay(order):
        begun.set()
        await anyio.sleep_forever()

    async def call():
        await pay("o-1")

    async def main():
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await begun.wait()
            group.cancel_scope.cancel()
        return [operation.outcome for operation in ledger.store.operations(limit=9)]

    assert anyio.run(main) == [Outcome.UNKNOWN]


def test_a_cancelled_insistence_is_awaited(ledger, monkeypatch):
    """While the store is asked again for an answer it would not take, every cancellation waits for that to end."""
    busy = threading.Event()
    monkeypatch.setattr(executing, "INSIST_FIRST_SECONDS", 0.0)
    awrite = ledger.store.awrite

    async def refuse_answers(command):
        if type(command).__name__ != "Claim":
            raise StoreBusy("away")
        return await awrite(command)

    monkeypatch.setattr(ledger.store, "awrite", refuse_answers)

    @ledger.action(key=lambda order: order, **WHO)
    async def pay(order):
        asyncio.get_running_loop().run_in_executor(None, busy.wait, SECONDS)
        return {"id": "re_1"}

    async def main():
        pool = ThreadPoolExecutor(max_workers=1)
        asyncio.get_running_loop().set_default_executor(pool)
        task = asyncio.ensure_future(pay("o-1"))
        await queued(pool)
        for _ in range(50):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        busy.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    (operation,) = ledger.store.operations(limit=9)
    assert operation.outcome is Outcome.SUCCEEDED


def test_a_loop_that_is_thrown_away_leaves_unknown(ledger):
    """Without anybody to drive it on, a started call is no longer in hand and reads as unknown."""
    begun = []

    @ledger.action(key=lambda order: order, **WHO)
    async def pay(order):
        begun.append(order)
        await asyncio.get_running_loop().create_future()

    loop = asyncio.new_event_loop()
    try:
        calling = pay("o-1")
        task = loop.create_task(calling)
        while not begun:
            loop.run_until_complete(asyncio.sleep(0))
        with contextlib.suppress(RuntimeError):  # it cannot record without a loop, and nobody is left to be told
            calling.close()
        task._log_destroy_pending = False
    finally:
        loop.close()
    (operation,) = ledger.store.unresolved()
    assert ledger.get(operation.id).outcome is Outcome.UNKNOWN
    ledger.work(operation.id)
    assert attempt_of(ledger).quiesced
