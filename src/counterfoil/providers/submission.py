"""One SMTP conversation over one fresh connection: no retry, no reuse, and exact knowledge of when the dot left.

    connect, EHLO, STARTTLS, AUTH, MAIL, RCPT, DATA, message | final dot          | reply
    nothing is taken: a cut is not sent                      | Silent, may be out | Replied

No server takes a mail before its final dot (RFC 5321 section 4.1.1.4), and one whose client is gone before that cancels
it (4.1.1.10): so that dot, and no byte before it, is what `may_have_left` speaks of. It never rests on a reply.

A reply to an earlier command is as much an answer as the one to the final dot: `stage` says which it was. One that
nothing asked for is none, and makes none of the later ones an answer.
"""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import ssl
from typing import Any, Literal, NamedTuple

import httpcore
import msgspec

from counterfoil.domain.answer import Replied, Silent
from counterfoil.providers.backend import Backend, Stream
from counterfoil.providers.deadline import Deadline
from counterfoil.providers.mail import Envelope
from counterfoil.providers.reply import Flight, Reason

Tls = Literal["starttls", "implicit", "none"]

READ_BYTES = 4096
REPLY_BYTES_MAX = 64 * 1024
"""Of one reply, all its lines: a server that says more is not answering."""
SAID_CHARS_MAX = 200
"""What is kept of a reply's text, for people."""
SETUP_SECONDS_MAX = 60.0
"""Until the message itself begins: nothing has left, so giving up early costs nothing."""
QUIT_SECONDS_MAX = 2.0
"""A courtesy after the answer stands; nothing depends on it."""
UNDERWAY_BYTES_MAX = 64 * 1024
"""Of a message, what the kernel may hold when the final dot is handed over: a cut before that is then seen as one."""
GREETED, DONE, CHALLENGED, GO_ON, FORWARDS = 220, 250, 334, 354, 251
AUTHENTICATED = 235
GOODBYES = (221, 421)
"""What QUIT is answered with; a server that shuts down says the second, whatever it is asked."""
GO_ON_MIN, REFUSAL_MIN = 300, 400
"""Replies between these ask for more, and those from the second on refuse (RFC 5321 section 4.2.1)."""

FAULTS = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError)
"""What the backend and the reader raise; the only argument of each is a `Reason`."""

_LINE = re.compile(rb"([2-5][0-9]{2})(?:([ -])([^\r\n]*))?\r?\n")


class Way(NamedTuple):
    """How a server is reached."""

    host: str
    port: int
    tls: Tls
    trust: ssl.SSLContext | None
    """None only where there is no TLS."""


class Login(NamedTuple):
    """Whom the server lets in."""

    user: str
    password: str

    def __repr__(self) -> str:
        return "Login()"


class Reply(NamedTuple):
    """One whole reply: its code and its lines."""

    code: int
    lines: tuple[str, ...]


def submit(
    way: Way,
    login: Login | None,
    envelope: Envelope,
    message: bytes,
    *,
    deadline_seconds: float,
    flight: Flight,
) -> Replied | Silent:
    """Hand one mail over, once, and say what the server said last.

    Args:
        way: the server.
        login: None where it lets in whoever comes.
        envelope: whom the mail is from and for.
        message: as DATA carries it, without the final dot.
        deadline_seconds: everything together, from now.
        flight: a fresh one; `may_have_left` is set before the final dot, and by nothing earlier.
    """
    flight.secrets = () if login is None else (login.password, *_coded(login))
    with Backend(Deadline(deadline_seconds), flight) as backend:
        talk = _Talk(backend, way, flight)
        try:
            answer = talk.through(login, envelope, message)
        except FAULTS as fault:
            return talk.cut(Reason(fault.args[0]))
        in_step = talk.leave()
        # What a server said too much is only seen now where it came with the dot already on its way.
        return answer if in_step or not flight.may_have_left else talk.cut(Reason.OUT_OF_STEP)


class _Refused(Exception):
    """The server said something else than what the stage needs."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.code)
        self.reply = reply


class _Talk:
    """One conversation and what is known of it."""

    def __init__(self, backend: Backend, way: Way, flight: Flight) -> None:
        self._backend, self._way, self._flight = backend, way, flight
        self._setup = Deadline(SETUP_SECONDS_MAX)
        self._stream: Stream | None = None
        self._buffer = b""
        self._stage = "greeting"
        self._outcome: dict[str, Any] = {}

    def through(self, login: Login | None, envelope: Envelope, message: bytes) -> Replied:
        """From the connection to the reply after the final dot, or to the first refusal."""
        self._outcome = {"message_id": envelope.message_id, "accepted": [], "refused": {}}
        try:
            self._greet()
            if login is not None:
                self._authenticate(login)
            self._address(envelope)
            return self._replied(self._hand_over(message))
        except _Refused as refused:
            return self._replied(refused.reply)

    def cut(self, reason: Reason) -> Silent:
        """What is known when no reply is an answer: whether the final dot was handed over."""
        return Silent(may_have_left=self._flight.may_have_left, reason=reason.value)

    def leave(self) -> bool:
        """Say goodbye, and tell whether the server is still in step: silence or a cut changes nothing, a reply may.

        One reply too many is followed by the one that was due, and that stands where only a goodbye may.
        """
        assert self._stream is not None  # noqa: S101 - it is open
        quick, in_step = Deadline(QUIT_SECONDS_MAX), True
        with contextlib.suppress(*FAULTS):  # and what has come already is read all the same
            self._stream.write_setup(b"QUIT\r\n", quick.left())
        try:
            in_step = self._reply(quick).code in GOODBYES
        except httpcore.ProtocolError:
            in_step = False
        except FAULTS:
            pass
        self._stream.close()
        return in_step

    # -- the stages ----------------------------------------------------------------------------------------------------

    def _greet(self) -> None:
        way = self._way
        self._stream = self._backend.connect_tcp(
            way.host,
            way.port,
            timeout=self._setup.left(),
            socket_options=[(socket.SOL_SOCKET, socket.SO_SNDBUF, UNDERWAY_BYTES_MAX)],
        )
        if way.tls == "implicit":
            self._secure()
        self._expect(self._reply(), GREETED)
        offered = self._hello()
        if way.tls == "starttls":
            self._stage = "starttls"
            if "STARTTLS" not in offered:
                # A man in the middle strips the offer: without it nothing goes on.
                raise httpcore.ConnectError(Reason.TLS_FAILED)
            self._expect(self._ask("STARTTLS"), GREETED)
            if self._buffer:  # said before the handshake, by whoever listens in between
                raise httpcore.ConnectError(Reason.TLS_FAILED)
            self._secure()
            offered = self._hello()
        self._offered = offered

    def _hello(self) -> dict[str, str]:
        """Greet, and return what the server offers, by keyword."""
        self._stage = "ehlo"
        assert self._stream is not None  # noqa: S101 - it is open
        host = self._stream.get_extra_info("socket").getsockname()[0]
        literal = f"[IPv6:{host}]" if ":" in host else f"[{host}]"
        reply = self._expect(self._ask(f"EHLO {literal}"), DONE)
        return {word.upper(): rest.upper() for word, _, rest in (line.partition(" ") for line in reply.lines[1:])}

    def _secure(self) -> None:
        assert self._stream is not None  # noqa: S101 - it is open
        assert self._way.trust is not None  # noqa: S101 - TLS is never without
        self._stream.start_tls(self._way.trust, server_hostname=self._way.host, timeout=self._setup.left())

    def _authenticate(self, login: Login) -> None:
        self._stage = "auth"
        ways = self._offered.get("AUTH", "").split()
        if "PLAIN" in ways or "LOGIN" not in ways:
            self._expect(self._ask("AUTH PLAIN " + _coded(login)[0]), AUTHENTICATED)
            return
        self._expect(self._ask("AUTH LOGIN"), CHALLENGED)
        self._expect(self._ask(_base64(login.user)), CHALLENGED)
        self._expect(self._ask(_base64(login.password)), AUTHENTICATED)

    def _address(self, envelope: Envelope) -> None:
        """Name the sender and everyone it is for; those who are refused are noted, and nothing is sent to them."""
        self._stage = "mail"
        self._expect(self._ask(f"MAIL FROM:<{envelope.sender}>"), DONE)
        self._stage = "rcpt"
        refusals = []
        for recipient in envelope.recipients:
            reply = self._ask(f"RCPT TO:<{recipient}>")
            if reply.code in (DONE, FORWARDS):
                self._outcome["accepted"].append(recipient)
                continue
            if reply.code < REFUSAL_MIN:  # neither: nobody is told of as refused who may have been taken
                raise _Refused(reply)
            refusals.append(reply)
            self._outcome["refused"][recipient] = _told(reply)
        if not self._outcome["accepted"]:
            # The milder word for all of them: what is refused for now may be asked again.
            raise _Refused(min(refusals, key=lambda reply: reply.code))

    def _hand_over(self, message: bytes) -> Reply:
        self._stage = "data"
        self._expect(self._ask("DATA"), GO_ON)
        assert self._stream is not None  # noqa: S101 - it is open
        self._check_step()
        # Crash here: the server cancels, but nobody is left to say so; it reads as unknown.
        self._stream.write_setup(message, None)
        self._check_step()
        self._stage = "message"
        self._stream.write(b".\r\n")
        reply = self._reply(whole=True)
        if GO_ON_MIN <= reply.code < REFUSAL_MIN:  # no contract need judge that: nothing more was left to ask for
            raise httpcore.RemoteProtocolError(Reason.OUT_OF_STEP)
        return reply

    # -- one command, one reply ----------------------------------------------------------------------------------------

    def _ask(self, command: str) -> Reply:
        assert self._stream is not None  # noqa: S101 - it is open
        self._check_step()
        self._stream.write_setup(command.encode("ascii") + b"\r\n", self._setup.left())
        return self._reply()

    def _check_step(self) -> None:
        """Go no further where the server spoke unasked: which of its replies answers what is then anyone's guess."""
        assert self._stream is not None  # noqa: S101 - it is open
        if self._buffer or self._stream.has_unread():
            raise httpcore.RemoteProtocolError(Reason.OUT_OF_STEP)

    def _expect(self, reply: Reply, code: int) -> Reply:
        if reply.code != code:
            raise _Refused(reply)
        return reply

    def _reply(self, until: Deadline | None = None, *, whole: bool = False) -> Reply:
        """Read one whole reply; a part of one is none.

        Args:
            until: another time limit than the set-up's.
            whole: the whole deadline of the conversation, for the reply that counts.
        """
        limit = until or self._setup
        assert self._stream is not None  # noqa: S101 - it is open
        lines: list[str] = []
        read, code = 0, b""
        while True:
            while (line := _LINE.match(self._buffer)) is None:
                if b"\n" in self._buffer or read > REPLY_BYTES_MAX:
                    raise httpcore.RemoteProtocolError(Reason.GARBAGE)
                octets = self._stream.read(READ_BYTES, None if whole else limit.left())
                if not octets:
                    raise httpcore.ReadError(Reason.CLOSED)
                self._buffer += octets
                read += len(octets)
            self._buffer = self._buffer[line.end() :]
            lines.append((line[3] or b"").decode("ascii", "replace"))
            code = code or line[1]
            if line[1] != code:  # every line of a reply says the same (RFC 5321 section 4.2.1)
                raise httpcore.RemoteProtocolError(Reason.GARBAGE)
            if line[2] != b"-":
                return Reply(int(code), tuple(lines))

    def _replied(self, reply: Reply) -> Replied:
        """The last reply as an answer; what the server wrote back of a secret is masked."""
        everyone = not self._outcome["refused"]
        said = {**self._outcome, "stage": self._stage, "everyone": everyone, "said": _told(reply)}
        self._flight.status, self._flight.body = reply.code, bytearray(msgspec.json.encode(said))
        answer = self._flight.answer(None)
        assert isinstance(answer, Replied)  # noqa: S101 - a status was just noted
        return answer


def _told(reply: Reply) -> str:
    return f"{reply.code} {' '.join(reply.lines)}"[:SAID_CHARS_MAX]


def _coded(login: Login) -> tuple[str, ...]:
    """The credential as the conversation carries it (RFC 4616), which a server may write back."""
    return _base64(f"\0{login.user}\0{login.password}"), _base64(login.password)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")
