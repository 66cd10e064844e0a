"""A pooler of transactions before a PostgreSQL server: the system's own pgbouncer, since no wheel brings one.

Its socket has the name of a server's, in a folder of its own: whoever knows a server by its folder knows it as well.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from counterfoil.lab.cutting import SOCKET
from counterfoil.lab.database import USER, Server
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.processes import Child
from counterfoil.lab.watch import reached

PROGRAM = "pgbouncer"
FOLDERS = (os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin")
"""Where it is looked for: Debian installs it where only root's path leads."""
PORT = SOCKET.rpartition(".")[2]
READY_SECONDS = 20.0
"""Hundreds of times what it needs on an idle machine."""
SESSIONS_MAX = 24
"""Of the server's, for all its roles together: far fewer than it allows, and far fewer than there are clients."""

# Sessions are handed out in turn, so that one transaction's is seldom the next one's, and what nobody uses is soon
# given back: others want some too. A server that was down is asked again at once; all else is as Debian has it.
_CONFIGURATION = """\
[databases]
* = host={host} port={port} auth_user={login}

[pgbouncer]
unix_socket_dir = {folder}
listen_port = {name}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
server_round_robin = 1
server_login_retry = 0.1
max_client_conn = 500
max_db_connections = {sessions}
server_idle_timeout = 30
log_connections = 0
log_disconnections = 0
log_stats = 0
"""


class Pooler(Server):
    """A running pooler, reached as a server is.

    Args:
        folder: where its socket, and all it reads, is.
        argv: what runs it.
    """

    def __init__(self, folder: Path, argv: list[str]) -> None:
        super().__init__(folder)
        self._argv = argv
        self.child = self._started()

    def kill(self) -> None:
        """End it at once: whoever waits for an answer through it gets none."""
        self.child.kill()

    def restart(self) -> None:
        """End it at once, and start it again where it was."""
        self.kill()
        self.child = self._started()

    def _started(self) -> Child:
        child = Child(self._argv, ready_seconds=None)
        if not reached(lambda: not child.running or self._listens(), READY_SECONDS) or not child.running:
            said = child.errors()
            child.kill()
            raise RunFailed(f"{PROGRAM} did not start: {said}")
        return child

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
            probe.connect(str(self.folder / SOCKET))
            return True
        return False


def found() -> str | None:
    """Where the program is; None where this machine has none."""
    return shutil.which(PROGRAM, path=os.pathsep.join(FOLDERS))


@contextlib.contextmanager
def pooler(server: Server, port: int | None = None) -> Iterator[Pooler]:
    """Start a pooler, and remove it with all it holds.

    Args:
        server: what it pools the sessions of.
        port: of this host, by which it reaches the server; default: the server's own socket.

    Raises:
        RunFailed: there is none on this machine, or it does not start.
    """
    program = found()
    if program is None:
        raise RunFailed(f"there is no {PROGRAM} on this machine; on Debian: apt-get install {PROGRAM}")
    folder = Path(tempfile.mkdtemp(prefix="counterfoil-pool-"))
    try:
        configuration = _configured(folder, server, port)
        made = Pooler(folder, [program, *_handed_to(server, folder), str(configuration)])
        try:
            yield made
        finally:
            made.child.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _configured(folder: Path, server: Server, port: int | None) -> Path:
    """Write what it reads."""
    (folder / "users").write_text(f'"{USER}" ""\n', encoding="utf-8")
    configuration = folder / f"{PROGRAM}.ini"
    said = _CONFIGURATION.format(
        host=server.folder if port is None else "127.0.0.1", port=PORT if port is None else port, login=USER,
        folder=folder, name=PORT, sessions=SESSIONS_MAX,
    )  # fmt: skip
    configuration.write_text(said, encoding="utf-8")
    return configuration


def _handed_to(server: Server, folder: Path) -> list[str]:
    """Who it is to run as: it refuses to be root, and then is whoever the server is, with all that it reads."""
    if os.geteuid() != 0:
        return []
    owner = (server.folder / SOCKET).stat()
    for path in (folder, *folder.iterdir()):
        os.chown(path, owner.st_uid, owner.st_gid)
    return ["--user", pwd.getpwuid(owner.st_uid).pw_name]
