"""The guarded worker of one case: does what is due once, settles what it can, and says what came of it.

``python -m counterfoil.lab.real.worker SERVER PORT BESIDE`` is told of its key, its folder and its deadline by the
variables of `counterfoil-lab certify`. Its last word is the outcome; the word before it is the lifecycle.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

import counterfoil
from counterfoil import contracts
from counterfoil.domain.contract import Contract
from counterfoil.domain.schedule import REST, REVIEW
from counterfoil.lab.real.servers import CREDENTIAL, PASSWORD, REGION, USER
from counterfoil.runtime.guarded import GuardedHttp
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.worker import Worker

SETTLING_SECONDS = 25.0
POLL_SECONDS = 0.1
OWNED = {"account": "shop", "owner": "lab", "authoriser": "lab", "destination": "the server"}
_EVENT = (
    "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Counterfoil//Lab//EN", "BEGIN:VEVENT", "UID:{key}",
    "DTSTAMP:20270201T090000Z", "DTSTART:20270301T080000Z", "DTEND:20270301T083000Z", "SUMMARY:Delivery",
    "END:VEVENT", "END:VCALENDAR", "",
)  # fmt: skip

Act = tuple[GuardedHttp, Mapping[str, Any]]


def _smtp(ledger: Ledger, port: int, beside: str, key: str, within: Callable[[str], Contract]) -> Act:  # noqa: ARG001
    act = ledger.smtp("act", host="127.0.0.1", port=port, tls="none", contract=within("smtp.submission"), **OWNED)
    return act, {"from": "lab@example.org", "to": ["bob@example.org"], "subject": key, "text": "Once.\n"}


def _postgres(ledger: Ledger, port: int, beside: str, key: str, within: Callable[[str], Contract]) -> Act:  # noqa: ARG001
    act = ledger.sql(
        "act", contract=within("postgresql.statement"), **OWNED,
        url=f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=disable&gssencmode=disable",
        statement="INSERT INTO payments (who, reference) VALUES (%(who)s, %(provider_key)s)",
    )  # fmt: skip
    return act, {"who": key}


def _git(ledger: Ledger, port: int, beside: str, key: str, within: Callable[[str], Contract]) -> Act:
    url = f"git://127.0.0.1:{port}/shop.git"
    command = ["git", "push", "--quiet", url, "HEAD:refs/heads/{provider_key}"]
    act = ledger.process("act", command=command, folder=beside, contract=within("process.command"), **OWNED)
    return act, {"release": key}


def _radicale(ledger: Ledger, port: int, beside: str, key: str, within: Callable[[str], Contract]) -> Act:  # noqa: ARG001
    act = ledger.http(
        "act", base_url=f"http://127.0.0.1:{port}", contract=within("caldav.put_event"), **OWNED,
        secrets={"/headers/authorization": lambda: CREDENTIAL},
    )  # fmt: skip
    return act, {"collection": f"/{USER}/shop", "uid": key, "ics": "\r\n".join(_EVENT).format(key=key)}


def _moto(ledger: Ledger, port: int, beside: str, key: str, within: Callable[[str], Contract]) -> Act:  # noqa: ARG001
    act = ledger.s3(
        "act", base_url=f"http://127.0.0.1:{port}", region=REGION, contract=within("aws.s3.put_if_none_match"), **OWNED,
        access_key=USER, secret_key=lambda: PASSWORD,
    )  # fmt: skip
    return act, {"bucket": "shop", "key": key, "document": {"paid": key}}


ACTS = {"moto": _moto, "smtp": _smtp, "exim": _smtp, "postgres": _postgres, "git": _git, "radicale": _radicale}


def main() -> None:
    """Call twice, settle as a worker does, and say what stands there."""
    server, port, beside = sys.argv[1:]
    key, state = os.environ["COUNTERFOIL_LAB_KEY"], Path(os.environ["COUNTERFOIL_LAB_STATE"])
    deadline = float(os.environ["COUNTERFOIL_LAB_DEADLINE_SECONDS"])

    def within(name: str) -> Contract:
        return msgspec.structs.replace(contracts.load(name), send_deadline_seconds=deadline)

    with counterfoil.open(state / "receipts.db", actor="lab") as ledger:
        act, payload = ACTS[server](ledger, int(port), beside, key, within)
        receipt = act(payload, key=key)
        worker, until = Worker(ledger), time.monotonic() + SETTLING_SECONDS
        while time.monotonic() < until:
            worker.sweep()
            receipt = ledger.get(receipt.id)
            if not receipt.operation.unresolved or receipt.operation.step in (REVIEW, REST):
                break
            time.sleep(POLL_SECONDS)
        receipt = act(payload, key=key)  # whoever waited for it asks again
        print(receipt.id, receipt.lifecycle, receipt.outcome, flush=True)


if __name__ == "__main__":
    main()
