"""Every order of two sessions' statements, one by one; who waits for a lock, waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from counterfoil.lab.interleaving import Actor

if TYPE_CHECKING:
    import psycopg


def played(actors: Sequence[Actor], observer: psycopg.Connection, chosen: Sequence[int]) -> list[int]:
    """Run two actors to their end; return how many could have gone at each step, of whom the chosen one went.

    Args:
        actors: who acts.
        observer: sees who waits for whom.
        chosen: whose turn it is, step by step, among those who can go; after its end the first of them.
    """
    choices: list[int] = []
    try:
        while not all(actor.done for actor in actors):
            able = [actor for actor in actors if actor.ready(observer)]
            if able:  # else a lock was let go, and its waiter is on its way
                turn = chosen[len(choices)] if len(choices) < len(chosen) else 0
                choices.append(len(able))
                able[turn].step()
    finally:
        for actor in actors:
            actor.join()
    return choices


def schedules(play: Callable[[Sequence[int]], list[int]]) -> Iterator[list[int]]:
    """Every schedule there is, depth first; `play` runs one and says how many choices each of its steps had."""
    chosen: list[int] = []
    while True:
        choices = play(chosen)
        whole = chosen + [0] * (len(choices) - len(chosen))
        yield whole
        while whole and whole[-1] + 1 >= choices[len(whole) - 1]:
            whole.pop()
        if not whole:
            return
        chosen = [*whole[:-1], whole[-1] + 1]
