"""The two connections of a process to a database, one that writes and one that reads; each made anew when needed."""

from __future__ import annotations

import os

from counterfoil.domain.errors import StoreUnsafe
from counterfoil.store.connecting import Address, reach
from counterfoil.store.session import Session


class Connections:
    """Both of them; whoever uses one holds the lock that belongs to it.

    Args:
        to: where the database is.
    """

    def __init__(self, to: Address) -> None:
        self._to = to
        self._pid = os.getpid()
        self._writer: Session | None = None
        self._reader: Session | None = None

    def writing(self) -> Session:
        """The one that writes, of which the server has not hung up meanwhile."""
        self._same_process()
        if self._writer is not None and self._writer.gone():
            self.drop_writer()
        if self._writer is None:
            self._writer = reach(self._to, writes=True)
        return self._writer

    def looking(self) -> Session:
        """The one that reads, likewise."""
        self._same_process()
        if self._reader is not None and self._reader.gone():
            self.drop_reader()
        if self._reader is None:
            self._reader = reach(self._to, writes=False)
        return self._reader

    def drop_writer(self) -> None:
        """Hang up: the server rolls back whatever was open."""
        session, self._writer = self._writer, None
        if session is not None:
            session.close()

    def drop_reader(self) -> None:
        """The same of the one that reads."""
        session, self._reader = self._reader, None
        if session is not None:
            session.close()

    def hang_up(self) -> None:
        """Drop both."""
        self.drop_writer()
        self.drop_reader()

    def forked(self) -> None:
        """In a forked child, before which both were dropped."""
        self._pid = os.getpid()

    def _same_process(self) -> None:
        if os.getpid() != self._pid:
            said = "was opened before a fork that Python did not see; open it in the child"
            raise StoreUnsafe(self._to.name, said)
