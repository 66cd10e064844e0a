"""The stage of virtual processes: one goes at a time, the clock goes where the next is due, and the dead do nothing."""

from __future__ import annotations

import pytest

from counterfoil.lab.world.memory import MemorySpool
from counterfoil.lab.world.stage import EPOCH, Crashed, Process, Stage


class Play:
    """A stage on which whoever is first goes first, and what happened on it, when."""

    def __init__(self, choose=lambda _: 0):
        self.stage = Stage(choose)
        self.said = []

    def process(self, name, *seconds, host="near"):
        """A process that says its name after each of these many seconds."""
        process = Process(self.stage, name, host)

        def program():
            for each in seconds:
                self.stage.pass_time(each)
                self.said.append((name, self.stage.now - EPOCH))

        process.spawn(program)
        return process


def test_time_passes_for_all_alike():
    """Nobody waits in real time: the clock goes to whatever is due next, and processes take turns by it."""
    play = Play()
    play.process("a", 1.0, 3.0)
    play.process("b", 2.0)
    play.stage.run(EPOCH + 10.0)
    assert play.said == [("a", 1.0), ("b", 2.0), ("a", 4.0)]
    assert (play.stage.now, play.stage.idle()) == (EPOCH + 10.0, True)


@pytest.mark.parametrize(("picks", "first"), [(0, "a"), (1, "b")])
def test_who_goes_of_those_whose_time_has_come_is_chosen(picks, first):
    """The same moment for two is a choice; what is due later is none."""
    asked = []
    play = Play(lambda of: asked.append(of) or min(picks, of - 1))
    for name in ("a", "b"):
        play.process(name, 1.0)
    play.process("late", 50.0)
    play.stage.run(EPOCH + 10.0)
    assert play.said[0] == (first, 1.0)
    assert 3 in asked


def test_the_dead_do_nothing_more():
    """Not even their own handlers see more of it than that they ended."""
    play = Play()
    seen = []
    process = Process(play.stage, "a", "near")

    def program():
        try:
            play.stage.pass_time(5.0)
        except Exception:  # noqa: BLE001 - what a product would write
            seen.append("handled")
        seen.append("went on")

    process.spawn(program)
    play.stage.at(EPOCH + 1.0, process.crash)
    play.stage.run(EPOCH + 10.0)
    assert (seen, play.stage.errors) == ([], [])


def test_a_stopped_process_wakes_later_and_goes_on():
    """As by SIGSTOP: alive, and everybody else goes on meanwhile."""
    play = Play()
    stopped = play.process("a", 1.0)
    play.process("b", 2.0)
    play.stage.run(EPOCH + 0.5)
    stopped.stopped_until = EPOCH + 5.0
    play.stage.run(EPOCH + 10.0)
    assert play.said == [("b", 2.0), ("a", 5.0)]


def test_a_night_stops_every_host_and_nothing_that_is_on_its_way():
    """Hosts sleep; the world does not."""
    play = Play()
    play.process("a", 1.0)
    play.stage.asleep_until = EPOCH + 100.0
    play.stage.at(EPOCH + 3.0, lambda: play.said.append(("the world", play.stage.now - EPOCH)))
    play.stage.run(EPOCH + 200.0)
    assert play.said == [("the world", 3.0), ("a", 101.0)]


def test_what_ends_a_program_by_itself_is_told():
    """A world does not end because something in it failed; it says so."""
    play = Play()
    process = Process(play.stage, "a", "near")

    def program():
        raise ValueError("no")

    process.spawn(program)
    play.process("b", 1.0)
    play.stage.run(EPOCH + 10.0)
    (told,) = play.stage.errors
    assert (told[0], str(told[1])) == ("a", "no")
    assert play.said == [("b", 1.0)]


def test_the_end_ends_whatever_still_waits():
    """Whoever sleeps past the end dies there."""
    play = Play()
    seen = []
    process = Process(play.stage, "a", "near")

    def program():
        try:
            play.stage.pass_time(100.0)
        except Crashed:
            seen.append("crashed")
            raise

    process.spawn(program)
    play.stage.run(EPOCH + 10.0)
    play.stage.end()
    assert (seen, process.dead, play.stage.idle()) == (["crashed"], True, True)


def test_what_is_spooled_never_has_the_name_of_something_else():
    """What somebody still has in hand under a name is that one; what is spooled later is not taken with it."""
    kept = []
    spool = MemorySpool(kept, lambda _: None)
    for record in (b"first", b"second"):
        spool.put("op_1", record, None)
    spool.taken(next(spool.waiting())[0])
    spool.put("op_1", b"third", None)
    assert len({name for name, *_ in kept}) == 2
    spool.taken(next(spool.waiting())[0])
    assert [record for _, _, record, _ in kept] == [b"third"]
