"""Two callers of one operation in a database: one stops before each of its statements while the other goes through.

``python -m counterfoil.lab.mutants.racing`` starts a server, and prints one line of JSON: how many races there were and
which operations were sent more than once. Both callers ask again for what was not sent the first time, so that either
may send it, and only one of them must.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from contextlib import closing
from typing import Any

import psycopg

import counterfoil
from counterfoil.lab.database import server
from counterfoil.lab.interleaving import Actor
from counterfoil.runtime.ledger import Ledger

WHO = {"owner": "payments", "authoriser": "lea"}


class Race:
    """Two callers and what they sent.

    Args:
        url: of the database.
    """

    def __init__(self, url: str) -> None:
        self.sent: Counter[str] = Counter()
        self._fails = True
        self._ledgers = [counterfoil.open(url, actor="agent:race") for _ in range(2)]
        self._calls = [self._guarded(ledger) for ledger in self._ledgers]
        for number, call in enumerate(self._calls):  # both are known as workers, and their statements are prepared
            call(f"before-{number}")
        self.sent.clear()

    def _guarded(self, ledger: Ledger) -> Any:
        def pay(order: str) -> str:
            if self._fails:
                raise counterfoil.NotSent("nobody is there")
            self.sent[order] += 1
            return order

        return ledger.action(pay, key=lambda order: order, **WHO)

    def run(self, order: str, steps: int, observer: psycopg.Connection) -> bool:
        """Let the one go so many statements far, then the other to its end, then the one; whether it got so far."""
        self._fails = True
        self._calls[0](order)
        self._fails = False
        one, other = (
            Actor(ledger.store, lambda _, call=call: call(order))  # type: ignore[arg-type, misc]
            for ledger, call in zip(self._ledgers, self._calls, strict=True)
        )
        try:
            for _ in range(steps):
                if one.ready(observer):
                    one.step()
            on_its_way = one.ready(observer)
            other.let_go()
            while not other.done and not other.waits(observer):
                pass
        finally:
            one.join()
            other.join()
        return on_its_way

    def close(self) -> None:
        """Hang up."""
        for ledger in self._ledgers:
            ledger.close()


def raced(url: str) -> dict[str, Any]:
    """Stop the one before each of its statements in turn; say which operations were sent more than once."""
    with closing(Race(url)) as race, psycopg.connect(url, autocommit=True) as observer:
        races = 0
        for steps in itertools.count():
            races += 1
            if not race.run(f"order-{steps}", steps, observer):
                break
        return {"races": races, "sent": dict(race.sent), "twice": [o for o, n in race.sent.items() if n > 1]}


def main() -> None:
    """Race, and tell."""
    with server() as made:
        told = raced(made.url())
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
