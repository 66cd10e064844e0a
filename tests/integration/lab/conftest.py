"""Real providers and proxies on the loopback, and a caller so plain that nothing is repeated behind its back."""

from __future__ import annotations

import contextlib
import http.client
import json
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from counterfoil.lab.ground_truth import EFFECTS, WIRE
from counterfoil.lab.journal import read
from counterfoil.lab.processes import Child, start_provider, start_proxy

SECONDS = 10
"""How long a test waits for anything; a run needs milliseconds."""

NAME_HEADER = {"key": "Idempotency-Key", "lookup": "X-Client-Reference", "nothing": "X-Client-Reference"}


@dataclass(frozen=True)
class Answer:
    """One whole answer."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


def ask(port, method, path, body=None, headers=None, *, timeout=SECONDS):
    """One request over a connection of its own; whatever the connection does instead is raised."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    with contextlib.closing(connection):
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        with contextlib.closing(reply):
            return Answer(reply.status, reply.headers, reply.read())


class Lab:
    """One running provider, spoken to by route and by name."""

    def __init__(self, child: Child, folder: Path) -> None:
        self.child, self.folder, self.port = child, folder, child.port

    def name(self) -> str:
        """A name nobody used before."""
        return secrets.token_hex(8)

    def post(self, route, name=None, payload=None, *, token="lab-secret", body=None, timeout=SECONDS):
        """Ask for an effect."""
        headers = {"Authorization": f"Bearer {token}", **({} if name is None else {NAME_HEADER[route]: name})}
        sent = json.dumps({"n": 1} if payload is None else payload) if body is None else body
        return ask(self.port, "POST", f"/{route}/effects", sent, headers, timeout=timeout)

    def get(self, path, *, token="lab-secret", timeout=SECONDS):
        """Ask what stands."""
        return ask(self.port, "GET", path, headers={"Authorization": f"Bearer {token}"}, timeout=timeout)

    def look(self, *names, route="lookup"):
        """Look for names."""
        parameter = "key" if route == "key" else "reference"
        return self.get(f"/{route}/effects?" + "&".join(f"{parameter}={name}" for name in names))

    def faults(self, *rules):
        """Put rules in force."""
        return ask(self.port, "POST", "/_lab/faults", json.dumps(rules))

    def truth(self):
        """What the provider counts itself."""
        return ask(self.port, "GET", "/_lab/truth").json

    def effects(self, name):
        """What really happened under a name, from the disk."""
        return [entry for entry in read(self.folder / EFFECTS) if name in (entry["key"], entry["reference"])]

    def wire(self, name):
        """What really arrived under a name, from the disk."""
        return [entry for entry in read(self.folder / WIRE) if name in (entry["key"], entry["reference"])]

    def rest(self):
        """Wait until no effect is on its way."""
        for _ in range(10_000):
            if not self.truth()["late"]:
                return
        pytest.fail("an effect is still on its way")


@pytest.fixture(name="ask", scope="session")
def _ask():
    """One request over a connection of its own."""
    return ask


@pytest.fixture
def provider(tmp_path) -> Iterator:
    """Start providers that end with the test: `provider("--index-lag", "1", rules=[...])`."""
    with contextlib.ExitStack() as house:

        def start(*arguments, folder=tmp_path / "truth", rules=()):
            return Lab(house.enter_context(start_provider(folder, *arguments, rules=rules)), folder)

        yield start


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[Lab]:
    """One provider for a whole module; each test uses names of its own."""
    folder = tmp_path_factory.mktemp("shared")
    with start_provider(folder) as child:
        yield Lab(child, folder)


@pytest.fixture
def lab(shared) -> Iterator[Lab]:
    """The module's provider, with no faults in force before and after."""
    shared.faults()
    yield shared
    shared.faults()


class Front(Lab):
    """A provider behind a fault proxy: asked through the proxy, its truth read behind it."""

    def __init__(self, child: Child, behind: Lab, record: Path) -> None:
        super().__init__(child, behind.folder)
        self.behind, self.record = behind, record

    def passed(self):
        """What the proxy says passed through it, from the disk."""
        return read(self.record / WIRE)


@pytest.fixture
def proxied(shared, tmp_path) -> Iterator:
    """Put a proxy with these rules before the module's provider."""
    shared.faults()
    with contextlib.ExitStack() as house:

        def start(*rules):
            record = tmp_path / "proxy"
            child = start_proxy(shared.port, "--folder", str(record), rules=rules)
            return Front(house.enter_context(child), shared, record)

        yield start


@pytest.fixture
def connect() -> Iterator:
    """Open raw connections that are closed with the test."""
    with contextlib.ExitStack() as house:

        def open_to(port):
            return house.enter_context(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))

        yield open_to


@pytest.fixture
def held():
    """Figures of a benchmark on SQLite that meet every bar."""
    return {
        "store": "sqlite",
        "sequential_ratio": 1.0, "thin_ratio": 1.0, "async_ratio": 1.0, "loop_lag_ms_p99": 1.0,
        "concurrent_ratio": {"threads": 4.0, "tasks": 5.0}, "fsyncs_per_call": {"one": 2.0, "many": 0.05},
        "rows_per_operation": 3.0,
    }  # fmt: skip
