"""Group commit, leader and followers: the first caller commits for everyone who queued meanwhile.

Leadership is a plain lock held by `with`, so an exception raised anywhere in the leader, Ctrl+C included, releases
it. A command leaves the queue only when its answer is known: whoever leads next finds everything that is undecided.
Followers sleep each on a lock of their own. The leader wakes the first whose answer stands, each of them the next, and
the last names the next leader: by then the others have queued again, so batches are large. All of that is only haste.
A follower that nobody wakes looks for itself. A lone caller takes a free lock, commits and returns: no thread, no wait.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import asyncio  # at run time only where a loop runs: a blocking caller never pays for it

C = TypeVar("C")
R = TypeVar("R")

BATCH_MAX = 512
"""Commands in one transaction: bounds how long the last of them waits for its fsync."""


PATIENCE_SECONDS = 0.05
"""How long a follower sleeps before it looks for itself: far above a commit, far below a person's notice."""


class Job(Generic[C, R]):
    """One command on its way to the disk, and then its answer."""

    # Defaults of the class: a lone caller's job sets no more than its command.
    reply: R | None = None
    error: Exception | None = None
    decided = False
    """The reply or the error stands: the command must not be written again."""
    done = False
    """It has left the queue."""
    loop: asyncio.AbstractEventLoop | None = None
    future: asyncio.Future[None] | None = None
    wait: threading.Lock | None = None
    """Held while its caller waits; released to say: your answer stands, or: lead."""
    next: Job[C, R] | None = None
    """Whom to wake once awake."""

    def __init__(self, command: C) -> None:
        self.command = command

    def succeed(self, reply: R) -> None:
        """Answer with what is durable now."""
        self.reply = reply
        self.decided = True

    def fail(self, error: Exception) -> None:
        """Answer with the error that concerns this command alone."""
        self.error = error
        self.decided = True

    def answer(self) -> R:
        """The reply, or the error the store raised for this command alone."""
        if self.error is not None:
            raise self.error
        return self.reply  # type: ignore[return-value]


class GroupCommit(Generic[C, R]):
    """Serialises commands into durable batches.

    Args:
        write: makes a batch durable and decides each job. It raises only what interrupted it (KeyboardInterrupt,
            SystemExit): the undecided part of the batch is then written again, and commands recognise themselves.
    """

    def __init__(self, write: Callable[[list[Job[C, R]]], None]) -> None:
        self._write = write
        self.forget()

    def forget(self) -> None:
        """Start empty. In a forked child: the parent's queue, lock and thread do not exist here."""
        self._queue: deque[Job[C, R]] = deque()
        self.lead = threading.Lock()
        """Held while a batch is written: whoever holds it owns the connection."""
        self._hiring = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake: SimpleQueue[bool] = SimpleQueue()
        """Of that thread alone: True, there is something to commit; False, it is to end."""
        self._owed = False
        self._busy = False
        """A batch is being written, or its followers are being woken: a hint to queue and sleep, no more."""

    def submit(self, command: C) -> R:
        """Make one command durable; return its reply or raise its error.

        An interruption while waiting is kept until the answer is known, then raised: a write that may already be
        on its way is never abandoned.
        """
        job: Job[C, R] = Job(command)
        queue = self._queue
        try:
            if self._busy or queue:
                self._follow(job)
            else:
                queue.append(job)
            if not job.done:
                with self.lead:
                    if len(queue) == 1 and queue[0] is job and job.wait is None:  # a lone caller, written out
                        self._busy = True
                        self._write([job])
                        job.done = True
                        queue.popleft()
                    elif not job.done:
                        self._commit()
                if job.next is None and not queue:  # nobody to wake: the ordinary case
                    self._busy = False
                else:
                    self._pass_on(job)
        except BaseException:
            # Its followers too: none of them is to wait for a leader that is on its way out.
            self._finish(list(self._queue))
            self._pass_on(job)
            raise
        if not job.done:  # more than a batch was queued before it
            self._finish([job])
            self._pass_on(job)
        if job.error is not None:
            raise job.error
        return job.reply  # type: ignore[return-value]

    def _follow(self, job: Job[C, R]) -> None:
        """Queue behind a leader and sleep until the answer stands, or until it is this caller's turn to lead."""
        job.wait = wait = threading.Lock()
        wait.acquire()
        self._queue.append(job)
        # The patience is for a chain that an interruption broke: whoever wakes by it looks for itself.
        wait.acquire(timeout=PATIENCE_SECONDS)
        if job.done:
            self._pass_on(job)

    def _pass_on(self, job: Job[C, R]) -> None:
        """Wake the next of those whose answer stands; the last of them, or a leader without any, names a leader."""
        if job.next is not None:
            _release(job.next)
        else:
            self._name_leader()

    def _name_leader(self) -> None:
        """Wake whoever is first in the queue to lead, a caller or the thread that leads for event loops."""
        self._busy = False
        try:
            head = self._queue[0]
        except IndexError:
            return
        if head.loop is not None:
            self._wake_thread()
        else:
            self._busy = True
            _release(head)

    def _finish(self, jobs: list[Job[C, R]]) -> None:
        """Lead until these are answered, whatever else interrupts: one interruption is raised already."""
        while not all(job.done for job in jobs):
            with contextlib.suppress(BaseException), self.lead:
                self._commit()

    async def submit_async(self, command: C) -> R:
        """The same from an event loop: a thread of the store's own leads, one wake-up per batch and loop.

        Cancellation is kept until the answer is known, then raised.
        """
        import asyncio

        job: Job[C, R] = Job(command)
        job.loop = loop = asyncio.get_running_loop()
        job.future = loop.create_future()
        self._queue.append(job)
        self._wake_thread()
        interruption: asyncio.CancelledError | None = None
        while not job.decided:  # not: until told. Whoever was to tell may have been interrupted
            try:
                await job.future
            except asyncio.CancelledError as error:
                interruption = error
                job.future = loop.create_future()
        if interruption is not None:
            raise interruption
        return job.answer()

    def close(self) -> None:
        """Stop the thread, after what is queued has been written."""
        with self._hiring:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._wake.put(False)  # noqa: FBT003 - the only two words this queue knows
        if thread is not None:
            thread.join()
        while self._queue:
            with self.lead:
                self._commit()
        self._busy = False

    def _wake_thread(self) -> None:
        # The thread clears the flag before it looks at the queue: a race costs a superfluous wake-up, never a
        # lost one.
        if self._owed:
            return
        with self._hiring:
            if self._thread is None:
                wake: SimpleQueue[bool] = SimpleQueue()
                thread = threading.Thread(target=self._run, args=(wake,), name="counterfoil-commit", daemon=True)
                thread.start()  # where no thread can be had this raises, and the next caller tries again
                self._thread, self._wake = thread, wake
            self._owed = True
            self._wake.put(True)  # noqa: FBT003

    def _run(self, wake: SimpleQueue[bool]) -> None:
        while wake.get():
            self._owed = False
            while self._queue:
                with self.lead:
                    chained = self._commit()
                if not chained:  # no caller is being woken who would do it
                    self._name_leader()

    def _commit(self) -> bool:
        """Write and answer one batch; the lock is held. True when followers are being woken."""
        queue = self._queue
        self._busy = True
        self._answer_decided()
        batch = list(queue)[:BATCH_MAX]
        try:
            if batch:
                self._write(batch)
        finally:
            chained = self._answer_decided()
        return chained

    def _answer_decided(self) -> bool:
        """Tell those whose answer stands, in order; an interruption here leaves the rest to the next leader.

        True when there is a follower among them: woken, it wakes the next.
        """
        queue = self._queue
        loops: dict[asyncio.AbstractEventLoop, list[Job[C, R]]] = {}
        decided = 0
        last: Job[C, R] | None = None
        first: Job[C, R] | None = None
        for job in list(queue):
            if not job.decided:
                break
            decided += 1
            if job.loop is not None:
                loops.setdefault(job.loop, []).append(job)
            elif job.wait is not None:
                if last is None:
                    first = job
                else:
                    last.next = job
                last = job
        for loop, jobs in loops.items():
            _tell(loop, jobs)
        for _ in range(decided):
            queue[0].done = True
            queue.popleft()
        if first is None:
            return False
        _release(first)
        return True


def _release(job: Job[C, R]) -> None:
    """Wake a follower; one that was woken already, as leader and as answered, sleeps no more."""
    if job.wait is not None:
        with contextlib.suppress(RuntimeError):
            job.wait.release()


def _tell(loop: asyncio.AbstractEventLoop, jobs: list[Job[C, R]]) -> None:
    try:
        loop.call_soon_threadsafe(_resolve, jobs)
    except RuntimeError:
        return  # the loop is closed: its callers are gone, their receipts are durable


def _resolve(jobs: list[Job[C, R]]) -> None:
    for job in jobs:
        if job.future is not None and not job.future.done():
            job.future.set_result(None)
