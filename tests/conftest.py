"""What holds for every test: the network is the loopback, nothing is skipped in CI, nothing is left running."""

from __future__ import annotations

import io
import ipaddress
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

# A slow machine is no defect, so no deadline; a failing example is printed as a line that repeats it.
hypothesis.settings.register_profile("counterfoil", deadline=None, print_blob=True)
hypothesis.settings.load_profile("counterfoil")

EXEMPT_CHILDREN = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Python's own servants, which outlive a test on purpose and end with the process."""


def _stays_here(host: str) -> bool:
    """Whether a name or address is this machine's own; .invalid may be looked up, as RFC 6761 keeps it nobody's."""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host in {"", "localhost"} or host.endswith(".invalid")


def _loopback_only(event: str, args: tuple[object, ...]) -> None:
    if event == "socket.connect":
        host = args[1][0] if isinstance(args[1], tuple) else ""  # a unix socket has a path instead
    elif event == "socket.getaddrinfo":
        host = args[0] or ""
    else:
        return
    host = host.decode(errors="replace") if isinstance(host, bytes) else str(host)
    if not _stays_here(host):
        # Not an OSError: the code under test would take that for a network failure and the test would pass.
        pytest.fail(f"a test tried to reach {host}: only the loopback is allowed")


sys.addaudithook(_loopback_only)


def _children() -> list[str]:
    """The command lines of child processes that still run; empty where the system does not tell."""
    found = []
    for listing in Path("/proc/self/task").glob("*/children"):
        for pid in listing.read_text().split():
            try:
                command = (
                    Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                )
            except OSError:
                continue  # it ended between the two reads
            if command and not any(word in command for word in EXEMPT_CHILDREN):
                found.append(f"{pid} {command}")
    return found


def _complaints(session: pytest.Session) -> list[str]:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    found = [f"still running: {child}" for child in _children()]
    if os.environ.get("CI") == "true":
        found += [f"skipped, and CI skips nothing: {report.nodeid}" for report in skipped]
    return found


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run that skipped in CI or left a process behind, even though every test passed."""
    complaints = _complaints(session)
    session.config.stash[_COMPLAINTS] = complaints
    if complaints and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_configure() -> None:
    """Let Ctrl+C interrupt: a shell has what it runs in the background ignore it, and a child inherits that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what the run is failed for."""
    for complaint in terminalreporter.config.stash.get(_COMPLAINTS, []):
        terminalreporter.write_line(f"ERROR {complaint}", red=True)


_COMPLAINTS = pytest.StashKey[list[str]]()


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Every record of every logger at the lowest level, with its traceback."""
    stream, root = io.StringIO(), logging.getLogger()
    handler = logging.StreamHandler(stream)
    names = ("httpx", "httpcore", "httpcore.http11", "h11", "asyncio", "counterfoil")
    loggers = [root, *map(logging.getLogger, names)]
    loggers += [known for known in root.manager.loggerDict.values() if isinstance(known, logging.Logger)]
    before = [(logger, logger.level) for logger in loggers]
    root.addHandler(handler)
    for logger in loggers:
        logger.setLevel(logging.NOTSET + 1)
    yield stream
    root.removeHandler(handler)
    for logger, level in before:
        logger.setLevel(level)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server of this run's own; started by the first test that asks for it."""
    from tests.databases import running

    with running() as server:
        yield server


@pytest.fixture(scope="session")
def pooled(postgres: Any) -> Iterator[Any]:
    """The same server by way of a pooler of transactions; skipped where this machine has none."""
    from tests import databases

    from counterfoil.lab.pooler import pooler

    databases.with_pooler()
    with pooler(postgres) as by:
        yield databases.Pooled(postgres, by)
