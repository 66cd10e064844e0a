"""A real calendar server that loses the answer to every third appointment it stores.

Radicale (``pip install Radicale``) runs behind Counterfoil's fault proxy: every request reaches it and every third
``PUT`` is performed, but nobody hears of it. Start it, then send it appointments from another terminal::

    python examples/calendar_server.py --delay 0.5
    counterfoil run examples/appointments.jsonl --concurrency 1

It prints ``ready http://127.0.0.1:5233``, then a line for every reply it loses, and runs until Ctrl+C or SIGTERM. With
``--delay`` every other answer waits that many seconds, so that there is time to kill the run by hand. The account is
``demo``; its password comes from ``COUNTERFOIL_DEMO_PASSWORD`` and is ``demo-password`` when nothing is set.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from counterfoil.lab.ground_truth import WIRE
from counterfoil.lab.journal import read
from counterfoil.lab.processes import Child, NotReady, free_port, module, start_proxy, wait_until_listening
from counterfoil.lab.tether import stop_event

PORT = 5233
"""Next to Radicale's own 5232, so that both can run on one machine."""

USER = "demo"
PASSWORD_VARIABLE, DEMO_PASSWORD = "COUNTERFOIL_DEMO_PASSWORD", "demo-password"

COLLECTION = "/demo/appointments/"
EVERY_THIRD = {"method": "PUT", "every": 3, "behaviour": "lose_reply"}

_MAKE_CALENDAR = b"""<?xml version="1.0" encoding="utf-8"?>
<D:mkcol xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:set><D:prop>
<D:resourcetype><D:collection/><C:calendar/></D:resourcetype><D:displayname>Appointments</D:displayname>
</D:prop></D:set></D:mkcol>
"""
_CREATED, _EXISTS = 201, 405  # extended MKCOL (RFC 5689); Radicale answers 405 where something stands already
_ANSWER_SECONDS = 10
_WATCH_SECONDS = 0.2  # soon enough for people to see which reply it was
_ATTEMPTS = 3  # another program may take a free port between finding it and using it


class CannotStart(RuntimeError):
    """The example cannot run; nothing of it is left running."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to end; the exit code is 0 after an ordinary end and 2 when serving could not begin."""
    parser = argparse.ArgumentParser(
        prog="calendar_server.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=PORT, help=f"where to listen (default {PORT}, 0 picks a free one)")
    parser.add_argument(
        "--delay", type=float, default=0.0, metavar="SECONDS", help="hold back each other answer to a PUT"
    )
    parser.add_argument("--folder", type=Path, help="keep calendar and wire.jsonl here (default: until the end only)")
    parser.add_argument("--parent-pipe", action="store_true", help="end when standard input ends")
    asked = parser.parse_args(arguments)
    stop = stop_event(parent_pipe=asked.parent_pipe)
    password = os.environ.get(PASSWORD_VARIABLE, DEMO_PASSWORD)
    try:
        with contextlib.ExitStack() as house:
            folder = asked.folder or Path(house.enter_context(tempfile.TemporaryDirectory(prefix="calendar-")))
            port = house.enter_context(radicale(folder, password))
            make_collection(port, password)
            proxy = house.enter_context(
                start_proxy(port, "--folder", str(folder), rules=rules(asked.delay), port=asked.port)
            )
            print(f"ready http://127.0.0.1:{proxy.port}", flush=True)
            said = 0
            while not stop.wait(_WATCH_SECONDS):
                said = say_lost(folder / WIRE, said)
    except (CannotStart, NotReady, OSError) as reason:
        print(f"the calendar server cannot start: {reason}", file=sys.stderr)
        return 2
    return 0


def rules(delay_seconds: float) -> list[dict[str, Any]]:
    """What the proxy does to a PUT: every third reply is lost, and the others wait where that is asked for."""
    slow = {"method": "PUT", "behaviour": "delay_reply", "seconds": delay_seconds}
    return [EVERY_THIRD, slow] if delay_seconds > 0 else [EVERY_THIRD]


def say_lost(wire: Path, said: int) -> int:
    """Print each PUT whose reply the proxy lost since the last time; return how many PUTs there were.

    Args:
        wire: the proxy's record of what passed.
        said: what was returned the last time.
    """
    puts = [entry for entry in read(wire) if entry["method"] == "PUT"]
    for number, entry in enumerate(puts[said:], start=said + 1):
        if entry["lost"]:
            print(f"lost the reply of PUT {number}: {entry['path']}", flush=True)
    return len(puts)


@contextlib.contextmanager
def radicale(folder: Path, password: str) -> Iterator[int]:
    """Run Radicale on a free port of the loopback, with its calendars in a folder.

    Args:
        folder: where calendars and the one account stand.
        password: what opens the account; it stands on no command line.
    """
    if find_spec("radicale") is None:
        raise CannotStart("Radicale is not installed; `pip install Radicale` brings it")
    folder.mkdir(parents=True, exist_ok=True)
    accounts = folder / "accounts"
    accounts.touch(mode=0o600)
    accounts.write_text(f"{USER}:{password}\n", "utf-8")
    child, port = _listening(folder, accounts)
    with child:
        yield port


def _listening(folder: Path, accounts: Path) -> tuple[Child, int]:
    for remaining in reversed(range(_ATTEMPTS)):
        port = free_port()
        # On a tether: Radicale knows nothing of this process, and must not outlive it.
        child = Child(
            module("counterfoil.lab.tether", "radicale", *_options(folder, accounts, port)), ready_seconds=None
        )
        try:
            wait_until_listening(child, port)
        except NotReady:
            if not remaining:
                raise
        else:
            return child, port
    raise CannotStart("no free port was found")


def _options(folder: Path, accounts: Path, port: int) -> list[str]:
    return [
        "--config=",  # nothing of this machine's own configuration
        f"--server-hosts=127.0.0.1:{port}",
        f"--storage-filesystem-folder={folder / 'calendars'}",
        "--auth-type=htpasswd",
        f"--auth-htpasswd-filename={accounts}",
        "--auth-htpasswd-encryption=plain",
        "--auth-delay=0",
        "--web-type=none",
        "--logging-level=error",
    ]


def make_collection(port: int, password: str) -> None:
    """Create the calendar that the appointments go into, unless it stands there."""
    secret = base64.b64encode(f"{USER}:{password}".encode()).decode("ascii")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_SECONDS)
    try:
        headers = {"Authorization": f"Basic {secret}", "Content-Type": "application/xml; charset=utf-8"}
        connection.request("MKCOL", COLLECTION, _MAKE_CALENDAR, headers)
        status = connection.getresponse().status
    finally:
        connection.close()
    if status not in {_CREATED, _EXISTS}:
        raise CannotStart(f"Radicale answered {status} to the creation of {COLLECTION}")


if __name__ == "__main__":
    sys.exit(main())
