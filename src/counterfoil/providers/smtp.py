"""The SMTP provider: a payload's mail handed to one server, once, with what became of every recipient."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from email.utils import formatdate

import msgspec

from counterfoil.domain.answer import Answer, Silent
from counterfoil.domain.contract import Contract
from counterfoil.domain.errors import BadValue, PayloadRefused, SecretMisplaced, SecretMissing
from counterfoil.ports import provider
from counterfoil.providers import backend, mail, submission
from counterfoil.providers.reply import Flight, Reason
from counterfoil.providers.request import PORT_MAX, check_url

PORTS = {"starttls": 587, "implicit": 465, "none": 25}
"""Where a server listens for each way, if nobody says otherwise (RFC 8314 section 3)."""


class Mailbox(msgspec.Struct, frozen=True, kw_only=True):
    """The server, and who is let in there."""

    host: str
    port: int = 0
    """0: the usual one."""
    tls: submission.Tls = "starttls"
    """`none` sends in the clear, and then no password."""
    user: str = ""
    """Empty where the server lets in whoever comes."""
    password: Callable[[], str] | None = None
    """Asked when a mail is sent, and never before its claim but to check that it is there."""
    password_from: str = ""
    """Where it comes from, which an approval is bound to."""
    verify: bool | str = True
    """True for the public certificate authorities, or the path of a file or folder of trusted ones."""


class SmtpProvider:
    """Hands a mail over once, for one account at one server; it judges and repeats nothing.

    Args:
        contract: the action's contract.
        mailbox: the server and its credentials.
        account: the account that they open.

    Raises:
        BadValue: there can be no such server, or a password would be sent in the clear.
    """

    def __init__(self, contract: Contract, *, mailbox: Mailbox, account: str) -> None:
        self._contract, self._mailbox, self._account = contract, mailbox, account
        if mailbox.tls not in PORTS:
            raise BadValue("tls", mailbox.tls, wanted=f"one of {', '.join(PORTS)}")
        if bool(mailbox.user) != (mailbox.password is not None):
            raise BadValue("user", mailbox.user, wanted="a user and a password, or neither")
        if mailbox.password is not None and mailbox.tls == "none":
            raise BadValue(
                "tls", mailbox.tls, wanted="one of starttls, implicit: a password is never sent in the clear"
            )
        if not 0 <= mailbox.port <= PORT_MAX:
            raise BadValue("port", mailbox.port, wanted=f"a port from 1 to {PORT_MAX}")
        self._port = mailbox.port or PORTS[mailbox.tls]
        _check_host(mailbox.host)
        self._trust: ssl.SSLContext | None = None

    def __repr__(self) -> str:
        return f"SmtpProvider({self._contract.id!r}, account={self._account!r})"

    def check(self, order: provider.SendOrder) -> None:
        """Refuse, before anything is claimed, what could never be sent as it stands.

        Raises:
            PayloadRefused: it is no mail.
            SecretMissing: the password has no value.
            SecretMisplaced: the order is for another account than this server lets in.
        """
        if order.account != self._account:
            raise SecretMisplaced(self._contract.id, pointer="/password", why="opens another account than the intent's")
        self._written(order)
        if self._mailbox.password is not None and self._login() is None:
            raise SecretMissing(self._contract.id, name="password", problem="has no value")

    def form(self, order: provider.SendOrder) -> bytes:
        """Say what a send would write, but for its Date; the password as the place it comes from.

        Raises:
            PayloadRefused: it is no mail.
        """
        envelope, read = self._written(order)
        box = self._mailbox
        where = [box.host, self._port, box.tls, box.user, box.password_from]
        return msgspec.json.encode([where, envelope, mail.compose(read, envelope)])

    def send(self, order: provider.SendOrder, flight: provider.Flight) -> Answer:
        """Hand it over once and say what the server said last."""
        if order.account != self._account:
            return Silent(may_have_left=False, reason="not_ours")
        try:
            envelope, read = self._written(order)
        except PayloadRefused:
            return Silent(may_have_left=False, reason="not_rendered")
        login = self._login()
        if login is None and self._mailbox.password is not None:
            return Silent(may_have_left=False, reason="secret_missing")
        try:
            way = submission.Way(self._mailbox.host, self._port, self._mailbox.tls, self._trusted())
        except (OSError, ValueError):
            return Silent(may_have_left=False, reason=Reason.BAD_REQUEST.value)
        message = mail.dotted(mail.compose(read, envelope, formatdate(usegmt=True)))
        known = Flight()
        # Whoever gives up waiting while the conversation goes on elsewhere must assume that it writes.
        flight.may_have_left = True
        try:
            return submission.submit(
                way, login, envelope, message, deadline_seconds=order.deadline_seconds, flight=known
            )
        finally:
            flight.may_have_left = known.may_have_left

    def look(self, order: provider.LookOrder) -> tuple[Answer, ...]:  # noqa: ARG002 - every provider is asked so
        """No server tells what it delivered."""
        return (Silent(may_have_left=False, reason="no_look"),)

    def _written(self, order: provider.SendOrder) -> tuple[mail.Envelope, mail.Mail]:
        read = mail.read(order.payload)
        return mail.envelope_of(read, order.provider_key), read

    def _login(self) -> submission.Login | None:
        """Who is let in; None where nobody needs to be, or the password cannot be had."""
        if self._mailbox.password is None:
            return None
        try:
            return submission.Login(self._mailbox.user, self._mailbox.password())
        except Exception:  # noqa: BLE001 - a vault's error may hold the password; without it nothing is sent
            return None

    def _trusted(self) -> ssl.SSLContext | None:
        if self._trust is None and self._mailbox.tls != "none":
            self._trust = backend.trusted(self._mailbox.verify, ())
        return self._trust


def _check_host(host: str) -> None:
    bracketed = f"[{host}]" if ":" in host else host
    try:
        check_url(f"https://{bracketed}")
    except ValueError as error:
        problem = str(error).removeprefix("url: ")
    else:
        if "/" not in host and "?" not in host:
            return
        problem = "a host alone"
    raise BadValue("host", "not shown", wanted=problem)
