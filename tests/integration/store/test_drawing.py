"""Drawing: no id, token or salt comes twice, in however many threads and processes."""

from __future__ import annotations

import json
import os
import threading

import pytest

from counterfoil.domain.identifier import row_number
from counterfoil.domain.payload import SALT_BYTES
from counterfoil.runtime import drawing
from counterfoil.runtime.drawing import Drawer

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12: of threads and forks


@pytest.fixture
def drawer():
    """One process's draws."""
    return Drawer(lambda: "w_0123456789ab")


def test_a_draw_is_whole(drawer):
    """The id holds the number, the token names the worker, two salts are there and the jitter is a share."""
    draw = drawer.draw()
    assert row_number(draw.id) == draw.n
    assert draw.worker == "w_0123456789ab"
    assert draw.token.startswith("w_0123456789ab.")
    assert len(draw.salts) == 2 * SALT_BYTES
    assert 0 <= draw.jitter <= 1


def test_numbers_rise_even_when_the_clock_goes_back(drawer, monkeypatch):
    """Later calls stand after earlier ones, also within a millisecond and over a clock that is set back."""
    times = [1_800_000_000.0] * 300 + [1_700_000_000.0] * 300 + [1_800_000_001.0]
    monkeypatch.setattr(drawing.time, "time", lambda: times.pop(0))
    numbers = [drawer.draw().n for _ in range(601)]
    assert numbers == sorted(set(numbers))


def test_threads_draw_different_things(drawer):
    """Sixteen threads: every number, id, token and salt is different, and each half of the salts too."""
    draws = []

    def run():
        draws.extend([drawer.draw() for _ in range(300)])

    threads = [threading.Thread(target=run) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for what in (
        [draw.n for draw in draws],
        [draw.id for draw in draws],
        [draw.token for draw in draws],
        [half for draw in draws for half in (draw.salts[:SALT_BYTES], draw.salts[SALT_BYTES:])],
    ):
        assert len(what) == len(set(what))


def test_a_forked_child_draws_other_things(drawer):
    """What the parent would draw next is not what the child draws: no nonce and no salt is shared."""
    drawer.draw()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writing, json.dumps([[d.id[15:], d.salts.hex()] for d in (drawer.draw() for _ in range(20))]).encode())
        os._exit(0)
    os.close(writing)
    mine = [[d.id[15:], d.salts.hex()] for d in (drawer.draw() for _ in range(200))]
    with os.fdopen(reading) as pipe:
        theirs = json.load(pipe)
    os.waitpid(pid, 0)
    assert not {part for draw in mine for part in draw} & {part for draw in theirs for part in draw}


def test_a_fork_while_a_number_is_drawn_hangs_no_child(drawer):
    """Another thread holds the guard at that moment: the child has one of its own."""
    with drawer._guard:
        pid = os.fork()
        if pid == 0:
            os._exit(0 if drawer._guard.acquire(timeout=5) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
