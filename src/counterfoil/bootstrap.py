"""The only module that knows every concrete class."""

from __future__ import annotations

import os
import threading

from counterfoil.domain.errors import BadValue
from counterfoil.runtime.given import checked_name, checked_text
from counterfoil.runtime.ledger import Ledger
from counterfoil.store.choosing import open_store


def open_ledger(  # noqa: PLR0913 - each is a word of its own at the door
    path: str | os.PathLike[str],
    *,
    actor: str = "",
    tenant: str = "default",
    run: str = "",
    conversation: str = "",
    fingerprint_key: bytes | None = None,
    production: bool = False,
    worker: bool = False,
    new: bool = True,
) -> Ledger:
    """Open a receipts file or database, made where it is new, and return its ledger.

    Args:
        path: the SQLite file, whose folder must exist, or the URL of a database: `postgresql://USER@HOST/DATABASE`.
        actor: the accountable principal of calls made here; default: the operating system's user.
        tenant: whose effects they are.
        run: the current run's id, for actions with `occurrence="run"`.
        conversation: the current conversation's id, likewise.
        fingerprint_key: keys the fingerprints (HMAC) where payload values could be guessed.
        production: refuse actions that name no owner and authoriser, where a developer is only warned.
        worker: recover and reconcile in a thread of this process.
        new: the tables of a database may be made where it has none; a file is made in any case.

    Raises:
        StoreUnsafe: it cannot be trusted with receipts; nothing is ever sent from it.
        StoreAway: nobody answers where the database should be.
        StoreTooNew: newer code wrote it.
    """
    checked_name("actor", actor, empty=True)
    for name, text in (("run", run), ("conversation", conversation)):
        checked_text(name, text, empty=True)
    checked_text("tenant", tenant)
    if fingerprint_key is not None and (type(fingerprint_key) is not bytes or not fingerprint_key):
        raise BadValue("fingerprint_key", "…", wanted="bytes that are not empty")
    scopes = {name: value for name, value in (("run", run), ("conversation", conversation)) if value}
    store = open_store(path, new=new)
    ledger = Ledger(
        store, actor=actor, tenant=tenant, scopes=scopes, fingerprint_key=fingerprint_key, production=production
    )
    if worker:
        from counterfoil.runtime.worker import Worker

        stop = threading.Event()
        thread = threading.Thread(target=Worker(ledger).run, args=(stop,), name="counterfoil-worker", daemon=True)
        ledger.on_close(stop.set, thread.join)
        thread.start()
    return ledger
