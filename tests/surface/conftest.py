"""The real command in processes of its own, against real files and a provider that records every effect."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pty
import select
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from counterfoil.domain.identifier import row_number
from counterfoil.lab.ground_truth import EFFECTS, WIRE
from counterfoil.lab.journal import read
from counterfoil.lab.processes import Child, start_provider
from counterfoil.store.rows import EVENTS

SECONDS = 60
"""How long one command may take; most need half a second."""

AUTHORIZATION = "Bearer lab-secret"

ACTIONS = """
actor: agent:test
actions:
"""
ACTION = """
  {name}:
    contract: {contract}
    base_url: http://127.0.0.1:{port}
    account: acct_lab
    owner: front-desk
    authoriser: front-desk-lead
    secrets: {{/headers/authorization: "env:LAB_AUTH"}}
"""


@dataclass(frozen=True)
class Said:
    """What one command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON object on standard output, which holds nothing else."""
        assert self.out.count("\n") == 1, self
        return json.loads(self.out)

    @property
    def lines(self):
        """Every JSON line on standard output."""
        return [json.loads(line) for line in self.out.splitlines()]


class Commands:
    """A folder in which commands are run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("COUNTERFOIL_")}
        self.env |= {"LAB_AUTH": AUTHORIZATION, "COLUMNS": "200"}
        self.started: list[subprocess.Popen] = []

    def __call__(self, *words, **options) -> Said:
        """Run a command to its end."""
        process = self.start(*words, **options)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return Said(process.returncode, out, err)

    def start(self, *words, env=None, **options):
        """Start a command and return its process; it ends with the test at the latest."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        argv = [sys.executable, "-m", "counterfoil.cli", *map(str, words)]
        process = subprocess.Popen(argv, cwd=self.folder, env={**self.env, **(env or {})}, **{**pipes, **options})
        self.started.append(process)
        return process

    def in_terminal(self, *words, typed="", env=None, until=""):
        """Run a command on a terminal of its own, type, and return its exit code and all it showed."""
        ours, theirs = pty.openpty()
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
        process = self.start(*words, env={"TERM": "xterm", **(env or {})}, **streams)
        os.close(theirs)
        with contextlib.closing(os.fdopen(ours, "r+b", buffering=0)) as screen:
            shown = _talk(screen, typed, until)
        return process.wait(SECONDS), shown

    def close(self):
        """End what a failed test left running."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def write(self, name, *lines):
        """Write a file of intents; text stands as it is, everything else as JSON."""
        path = self.folder / name
        path.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines), encoding="utf-8")
        return path


def _talk(screen, typed, until):
    """Type, or do what is to be done first and type what it returns, once the terminal shows what is waited for."""
    shown, deadline = b"", time.monotonic() + SECONDS
    pending = typed
    while select.select([screen], [], [], max(0.0, deadline - time.monotonic()))[0]:
        try:
            more = screen.read(65536)
        except OSError:
            break  # nobody has the other side open any more
        if not more:
            break
        shown += more
        if pending and until.encode() in shown:
            screen.write((pending() if callable(pending) else pending).encode())
            pending = ""
    return shown.decode(errors="replace")


class Shop(Commands):
    """A folder of commands, with a provider that records every effect on disk before it answers."""

    def __init__(self, folder: Path, child: Child) -> None:
        super().__init__(folder)
        self.child, self.port = child, child.port
        self.actions()

    def actions(self, **contracts):
        """Write `lab.yaml`; default: an action for each of the laboratory's contracts, by the contract's name."""
        named = contracts or {name: name for name in ("lab.key", "lab.lookup", "lab.nothing")}
        entries = [ACTION.format(name=n, contract=c, port=self.port) for n, c in named.items()]
        (self.folder / "lab.yaml").write_text(ACTIONS + "".join(entries), encoding="utf-8")

    def intents(self, count, action="lab.lookup", *, name="lab.jsonl"):
        """Write a file of so many intents beside its actions file."""
        return self.write(name, *({"action": action, "key": f"k{n}", "payload": {"n": n}} for n in range(count)))

    def faults(self, *rules):
        """Put rules in force."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            connection.request("POST", "/_lab/faults", json.dumps(rules))
            assert connection.getresponse().status == 200

    def until_sent(self, count):
        """Wait until the provider has received so many sends."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            with contextlib.closing(connection):
                connection.request("GET", "/_lab/truth")
                if json.loads(connection.getresponse().read())["sends"] >= count:
                    return
        pytest.fail(f"the provider never received {count} sends")

    def effects(self):
        """The payloads of everything that really happened, from the disk."""
        return [entry["payload"]["n"] for entry in read(self.folder / "truth" / EFFECTS)]

    def sends(self):
        """How many writes really arrived, from the disk."""
        return self._arrived("send")

    def looks(self):
        """How many reads really arrived, from the disk."""
        return self._arrived("look")

    def spoil(self, operation, *, seq):
        """Write over the record of an event behind the product's back, and make whatever is unresolved due."""
        store = sqlite3.connect(self.folder / "receipts.db", isolation_level=None)
        with contextlib.closing(store):
            store.execute("DROP TRIGGER event_is_final")
            store.execute("UPDATE event SET record = x'7b' WHERE id = ?", (row_number(operation) * EVENTS + seq,))
            store.execute("UPDATE operation SET due_at = 0 WHERE unresolved > 0")

    def _arrived(self, act):
        return sum(entry["act"] == act for entry in read(self.folder / "truth" / WIRE))


@pytest.fixture
def commands(tmp_path) -> Iterator[Commands]:
    """Commands in a folder of their own, with nothing to talk to."""
    with contextlib.closing(Commands(tmp_path)) as made:
        yield made


@pytest.fixture
def shop(tmp_path) -> Iterator[Shop]:
    """Commands, and a provider that ends with the test."""
    with start_provider(tmp_path / "truth") as child, contextlib.closing(Shop(tmp_path, child)) as made:
        yield made
