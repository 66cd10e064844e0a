"""Mail servers for the tests: one that nobody here wrote, and scripts that misbehave after any word."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Iterator

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from tests.integration.wire.servers import CERTIFICATE, Peer, Script

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.real.servers import program

USER, PASSWORD = "robot", "correct-horse-42"


class Inbox:
    """What an aiosmtpd server took; addresses that begin with `bad` or `busy` it refuses, for good or for now."""

    def __init__(self) -> None:
        self.mails: list[tuple[list[str], bytes]] = []
        self.patience = 0
        """How many more times `busy` is refused."""
        self.port = 0

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802 - aiosmtpd's own name
        if address.startswith("bad"):
            return "550 5.1.1 nobody of that name"
        if address.startswith("busy") and self.patience > 0:
            self.patience -= 1
            return "451 4.7.1 greylisted"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 fine"

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 - aiosmtpd's own name
        self.mails.append((envelope.rcpt_tos, envelope.content))
        return f"250 2.0.0 queued as M{len(self.mails)}"


@contextlib.contextmanager
def mail_server(*, secure: bool = False) -> Iterator[Inbox]:
    """Run aiosmtpd on the loopback, with STARTTLS and a password where it is to be secure."""
    inbox = Inbox()
    told = {}
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        told = {"tls_context": context, "require_starttls": True, "auth_required": True, "authenticator": _let_in}
    # Port 0 is the kernel's to choose, but the controller calls on the port it was told: it is asked for first.
    controller = Controller(inbox, hostname="127.0.0.1", port=_free_port(), **told)
    controller.start()
    try:
        inbox.port = controller.port
        yield inbox
    finally:
        controller.stop()


def exim_or_skip() -> None:
    """Skip whatever needs exim where it is not installed; CI installs it (scripts/services.sh), and skips nothing."""
    try:
        program("exim4")
    except RunFailed as missing:
        pytest.skip(str(missing))


def _let_in(server, session, envelope, mechanism, auth_data) -> AuthResult:
    known = isinstance(auth_data, LoginPassword) and auth_data == LoginPassword(USER.encode(), PASSWORD.encode())
    return AuthResult(success=known, handled=known)


def _free_port() -> int:
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def line(peer: Peer) -> bytes:
    """One line of the client's, without its end."""
    octets = b""
    while not octets.endswith(b"\r\n"):
        octet = peer.sock.recv(1)
        if not octet:
            raise ConnectionResetError
        octets += octet
    return octets[:-2]


def up_to_data(peer: Peer, *, said: Callable[[bytes], bytes | None] = lambda _: None) -> None:
    """Answer everything as a server should until the message is asked for; `said` may answer otherwise."""
    peer.say(b"220 mail.test\r\n")
    while True:
        command = line(peer)
        answer = said(command)
        if answer is not None:
            peer.say(answer)
        elif command == b"DATA":
            peer.say(b"354 go on\r\n")
            return
        else:
            peer.say(b"250-mail.test\r\n250 8BITMIME\r\n" if command.startswith(b"EHLO") else b"250 fine\r\n")


def message(peer: Peer) -> bytes:
    """Read the message to its final dot, and note that it was taken."""
    octets = b""
    while not octets.endswith(b"\r\n.\r\n"):
        part = peer.sock.recv(65536)
        if not part:
            raise ConnectionResetError
        octets += part
    peer.server.requests.append(octets)
    return octets


def after_the_dot(then: Callable[[Peer], object]) -> Script:
    """A server that takes a whole mail and then does this."""

    def script(peer: Peer) -> None:
        up_to_data(peer)
        message(peer)
        then(peer)

    return script
