"""Group commit without a disk: who leads, who follows, who is told, and what an interruption may break (nothing)."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from counterfoil.store import commit
from counterfoil.store.commit import BATCH_MAX, GroupCommit

PATIENT = 20
"""Seconds that nothing here comes near, however slow the machine."""


class Disk:
    """A place that keeps batches, and can be told to wait, to fail for one command or to be interrupted."""

    def __init__(self):
        self.batches: list[list[object]] = []
        self.kept: list[object] = []
        self.interrupt = None
        self.entered, self.go = threading.Event(), threading.Event()
        self.go.set()

    def write(self, jobs):
        """Decide each job; a command twice on the disk is found there."""
        self.entered.set()
        assert self.go.wait(PATIENT)
        commands = [job.command for job in jobs]
        self.batches.append(commands)
        if self.interrupt is not None:
            self.interrupt(jobs)
        for job in jobs:
            if isinstance(job.command, Exception):
                job.fail(job.command)
            else:
                if job.command not in self.kept:
                    self.kept.append(job.command)
                job.succeed(("kept", job.command))

    def pause(self):
        """Hold the next leader inside its write."""
        self.entered.clear()
        self.go.clear()


@pytest.fixture
def disk():
    """A disk of this test."""
    return Disk()


@pytest.fixture
def group(disk):
    """The group that writes to it; when the test is over its thread has ended."""
    made = GroupCommit(disk.write)
    yield made
    made.close()
    assert not [t for t in threading.enumerate() if t.name == "counterfoil-commit"]


class Caller(threading.Thread):
    """One blocking caller, and what it was answered."""

    def __init__(self, group, *commands):
        super().__init__()
        self.group, self.commands, self.answers = group, commands, []

    def run(self):
        for command in self.commands:
            try:
                self.answers.append(self.group.submit(command))
            except BaseException as error:  # noqa: BLE001 - an answer like another
                self.answers.append(error)


def together(group, disk, callers):
    """Let all of them queue behind a leader that is held inside its write, then let it go."""
    disk.pause()
    leader = Caller(group, "leader")
    leader.start()
    assert disk.entered.wait(PATIENT)
    for caller in callers:
        caller.start()
    queued(group, 1 + len(callers))
    disk.go.set()
    for caller in [leader, *callers]:
        caller.join(PATIENT)
    assert not any(caller.is_alive() for caller in [leader, *callers])
    return leader


def queued(group, count):
    """Watch until so many commands wait."""
    end = time.monotonic() + PATIENT
    while len(group._queue) < count:
        assert time.monotonic() < end, len(group._queue)


def test_a_lone_caller_starts_no_thread(group, disk):
    """It takes the free lock, writes one batch of one, and returns."""
    before = threading.active_count()
    assert [group.submit(i) for i in range(3)] == [("kept", i) for i in range(3)]
    assert disk.batches == [[0], [1], [2]]
    assert threading.active_count() == before


def test_those_who_queue_meanwhile_share_one_batch(group, disk):
    """Sixty-three callers behind one leader cost one more batch, and each gets its own answer."""
    callers = [Caller(group, i) for i in range(63)]
    together(group, disk, callers)
    assert [caller.answers for caller in callers] == [[("kept", i)] for i in range(63)]
    assert sorted(len(batch) for batch in disk.batches) == [1, 63]


def test_a_batch_has_a_limit(group, disk, monkeypatch):
    """More than a batch holds is written in several, in order, and everybody is answered."""
    monkeypatch.setattr(commit, "BATCH_MAX", 4)
    callers = [Caller(group, i) for i in range(10)]
    together(group, disk, callers)
    assert [caller.answers for caller in callers] == [[("kept", i)] for i in range(10)]
    assert max(len(batch) for batch in disk.batches) == 4
    assert BATCH_MAX == 512


def test_an_error_is_its_own_callers_alone(group, disk):
    """One command of a batch fails: its caller gets that very error, the others their answers."""
    wrong = ValueError("mine")
    callers = [Caller(group, wrong if i == 5 else i) for i in range(10)]
    together(group, disk, callers)
    assert [caller.answers[0] for caller in callers] == [wrong if i == 5 else ("kept", i) for i in range(10)]


def test_many_callers_in_a_hurry_are_each_answered_once(group, disk):
    """Thirty-two callers, a hundred commands each, one after the other: every answer is its command's own."""
    callers = [Caller(group, *[(i, k) for k in range(100)]) for i in range(32)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(PATIENT)
    assert [caller.answers for caller in callers] == [[("kept", (i, k)) for k in range(100)] for i in range(32)]
    assert len(disk.kept) == 3200
    assert sum(len(batch) for batch in disk.batches) == 3200


# -- interruption ------------------------------------------------------------------------------------------------------


def interrupt_once(disk, *, after):
    """The next batch is interrupted once so many of its jobs are decided."""

    def interrupt(jobs):
        disk.interrupt = None
        for job in jobs[:after]:
            if job.command not in disk.kept:
                disk.kept.append(job.command)
            job.succeed(("kept", job.command))
        raise KeyboardInterrupt

    disk.interrupt = interrupt


@pytest.mark.parametrize("decided", [0, 1, 3, 8])
def test_an_interrupted_leader_leaves_nobody_waiting(group, disk, decided):
    """Wherever in the batch it came: the undecided are written again, and all but the leader are answered."""
    callers = [Caller(group, i) for i in range(8)]
    disk.pause()
    leader = Caller(group, "leader")
    leader.start()
    assert disk.entered.wait(PATIENT)
    for caller in callers:
        caller.start()
    queued(group, 9)
    interrupt_once(disk, after=decided)
    disk.go.set()
    for caller in [leader, *callers]:
        caller.join(PATIENT)
    answers = [caller.answers[0] for caller in [leader, *callers]]
    assert [type(a) for a in answers].count(KeyboardInterrupt) == 1
    assert {a for a in answers if type(a) is tuple} <= {("kept", c) for c in disk.kept}
    assert sorted(map(str, disk.kept)) == sorted(map(str, ["leader", *range(8)]))


def test_the_interrupted_callers_own_command_is_kept(group, disk):
    """Its write is decided before the interruption is raised: nothing is on its way any more."""
    interrupt_once(disk, after=0)
    with pytest.raises(KeyboardInterrupt):
        group.submit("mine")
    assert disk.kept == ["mine"]
    assert group.submit("next") == ("kept", "next")


def test_an_interrupted_leader_does_not_lead_for_ever(group, disk):
    """Others never stop queueing: it finishes for those who waited when it was interrupted, and is let go."""
    over = threading.Event()

    def hurry():
        while not over.is_set():
            group.submit("again")

    others = [threading.Thread(target=hurry) for _ in range(16)]
    leader = Caller(group, "mine")
    disk.pause()
    leader.start()
    assert disk.entered.wait(PATIENT)
    for thread in others:
        thread.start()
    queued(group, 17)
    interrupt_once(disk, after=0)
    disk.go.set()
    leader.join(PATIENT)
    assert not leader.is_alive()
    assert isinstance(leader.answers[0], KeyboardInterrupt)
    over.set()
    for thread in others:
        thread.join(PATIENT)
        assert not thread.is_alive()


# -- event loops -------------------------------------------------------------------------------------------------------


def test_tasks_share_a_batch_and_one_wake_up(group, disk, monkeypatch):
    """Sixty-four tasks cost few batches, and their loop is told once for each."""
    told = []
    real = commit._tell
    monkeypatch.setattr(commit, "_tell", lambda loop, jobs: (told.append(len(jobs)), real(loop, jobs)))

    async def run():
        return await asyncio.gather(*[group.submit_async(i) for i in range(64)])

    assert asyncio.run(run()) == [("kept", i) for i in range(64)]
    assert len(disk.batches) <= 8
    assert sum(told) == 64
    assert len(told) == len(disk.batches)


def test_the_loop_never_writes_itself(group, disk):
    """Whatever a task asks for is written by another thread."""
    writers = set()
    disk.interrupt = lambda jobs: writers.add(threading.current_thread().name)

    async def run():
        await asyncio.gather(*[group.submit_async(i) for i in range(8)])

    asyncio.run(run())
    assert writers == {"counterfoil-commit"}


def test_threads_and_tasks_at_once_are_each_answered_once(group, disk):
    """Two event loops and sixteen blocking callers share one disk."""
    callers = [Caller(group, *[("t", i, k) for k in range(50)]) for i in range(16)]
    results = {}

    async def task(name, i):
        return [await group.submit_async((name, i, k)) for k in range(50)]

    async def tasks(name):
        return await asyncio.gather(*[task(name, i) for i in range(16)])

    loops = [threading.Thread(target=lambda n=n: results.update({n: asyncio.run(tasks(n))})) for n in "ab"]
    for thread in [*callers, *loops]:
        thread.start()
    for thread in [*callers, *loops]:
        thread.join(PATIENT)
    assert [c.answers for c in callers] == [[("kept", ("t", i, k)) for k in range(50)] for i in range(16)]
    for name in "ab":
        assert results[name] == [[("kept", (name, i, k)) for k in range(50)] for i in range(16)]
    assert len(disk.kept) == 3 * 16 * 50


def test_a_cancelled_task_learns_of_it_when_its_write_is_done(group, disk):
    """However often it is cancelled meanwhile: first the write is durable, then CancelledError is raised."""
    disk.pause()

    async def run():
        task = asyncio.create_task(group.submit_async("mine"))
        await asyncio.to_thread(disk.entered.wait, PATIENT)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
        assert disk.kept == []
        disk.go.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert disk.kept == ["mine"]

    asyncio.run(run())


def test_r55_a_thousand_cancels_leak_nothing(group, disk):
    """Every cancelled write is done, nothing waits in the queue, and one thread has served them all."""

    async def run():
        before = threading.active_count()
        for k in range(20):
            tasks = [asyncio.create_task(group.submit_async((k, i))) for i in range(50)]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert {type(result) for result in results} <= {asyncio.CancelledError, tuple}
        assert threading.active_count() == before + 1
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
    group.close()
    assert len(disk.kept) == 1000
    assert len(group._queue) == 0


def test_a_loop_that_is_gone_hangs_nobody(group, disk):
    """Its callers cannot be told any more; their writes are done, and so are everybody else's."""
    loop = asyncio.new_event_loop()
    disk.pause()
    task = loop.create_task(group.submit_async("gone"))
    loop.run_until_complete(asyncio.sleep(0))
    assert disk.entered.wait(PATIENT)
    caller = Caller(group, "here")
    caller.start()
    queued(group, 2)
    loop.close()
    disk.go.set()
    caller.join(PATIENT)
    assert caller.answers == [("kept", "here")]
    assert disk.kept == ["gone", "here"]
    task._log_destroy_pending = False
    task.get_coro().close()


def test_a_task_whose_telling_was_lost_is_freed_by_cancelling(group, disk, monkeypatch):
    """Ctrl+C in the loop's own thread may lose the call that tells it: what is decided needs no telling."""
    lost = threading.Event()
    monkeypatch.setattr(commit, "_tell", lambda loop, jobs: lost.set())

    async def run():
        task = asyncio.create_task(group.submit_async("mine"))
        await asyncio.to_thread(lost.wait, PATIENT)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.shield(task), PATIENT)

    asyncio.run(run())
    assert disk.kept == ["mine"]


def test_a_blocking_caller_does_not_sleep_behind_a_task(group, disk, monkeypatch):
    """After a task's write nobody leads any more: the next blocking caller leads at once, without patience."""
    monkeypatch.setattr(commit, "PATIENCE_SECONDS", 1.0)

    async def one(k):
        await group.submit_async(("task", k))

    start = time.monotonic()
    for k in range(30):
        asyncio.run(one(k))
        group.submit(("thread", k))
    assert time.monotonic() - start < 15


# -- beginning and end -------------------------------------------------------------------------------------------------


def test_closing_writes_what_is_queued(group, disk):
    """Nobody waits for it any more, and it is written all the same."""
    group._queue.append(commit.Job("left behind"))
    group.close()
    assert disk.kept == ["left behind"]


def test_after_closing_it_goes_on(group, disk):
    """A late answer is written even then: by its own thread, or by one that is started anew."""

    async def run(command):
        return await group.submit_async(command)

    assert asyncio.run(run(1)) == ("kept", 1)
    group.close()
    assert group.submit(2) == ("kept", 2)
    assert asyncio.run(run(3)) == ("kept", 3)


def test_closing_beside_tasks_loses_none_of_them(group, disk):
    """Another thread closes again and again while tasks write: each is answered."""
    over = threading.Event()

    def close():
        while not over.is_set():
            group.close()

    closer = threading.Thread(target=close)
    closer.start()

    async def run():
        return [await asyncio.wait_for(group.submit_async(k), PATIENT) for k in range(300)]

    assert asyncio.run(run()) == [("kept", k) for k in range(300)]
    over.set()
    closer.join(PATIENT)


def test_where_no_thread_can_be_had_the_next_caller_tries_again(group, disk, monkeypatch):
    """One task is told that no thread could be started; the next one starts it, and the first's write is done too."""
    real = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda self: (_ for _ in ()).throw(RuntimeError("no thread")))

    async def run(command):
        return await group.submit_async(command)

    with pytest.raises(RuntimeError, match="no thread"):
        asyncio.run(run(1))
    monkeypatch.setattr(threading.Thread, "start", real)
    assert asyncio.run(run(2)) == ("kept", 2)
    assert disk.kept == [1, 2]


def test_a_forked_child_starts_empty(group, disk):
    """What the parent's threads had queued, held or were waiting for is not the child's."""
    disk.pause()
    leader = Caller(group, "parent's")
    leader.start()
    assert disk.entered.wait(PATIENT)
    old = group.lead
    group.forget()
    disk.go.set()
    assert group.submit("child's") == ("kept", "child's")
    leader.join(PATIENT)
    assert old is not group.lead
