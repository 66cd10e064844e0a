"""One request and one reply over one fresh connection: no retry, no redirect, no reuse, and no guess.

    resolve, connect, CONNECT, TLS | first application byte ... | status line | head, body
    Silent, nothing left           | Silent, may have left      | Replied, complete or not

It stands on httpcore's network interface and on h11, the parser inside httpcore and httpx, but on neither's client:
both log addresses and reply headers and cannot be told not to for one call, their exceptions quote what was sent, and
they parse a head only as a whole, so that a status read before a cut would be lost.
"""

from __future__ import annotations

import contextlib
import ssl
from http import HTTPStatus

import h11
import httpcore

from counterfoil.domain.answer import Replied, Silent
from counterfoil.providers.backend import Backend, Stream, trusted
from counterfoil.providers.deadline import Deadline
from counterfoil.providers.reply import STATUS_LINE, Flight, Reason
from counterfoil.providers.request import (
    Limits,
    WireRequest,
    check_deadline,
    check_request,
    check_url,
    parse_url,
)

__all__ = [
    "LIMITS",
    "Flight",
    "Limits",
    "Reason",
    "WireRequest",
    "check_request",
    "check_url",
    "exchange",
    "trusted",
]

READ_BYTES = 64 * 1024
HTTP = b"HTTP/"
INFORMATIONALS_MAX = 16
"""1xx replies before the final one; a server needs one or two."""
LIMITS = Limits()
BODY_METHODS = frozenset({"PATCH", "POST", "PUT"})
"""Methods whose empty body is announced as empty (RFC 9110 section 8.6)."""
FAULTS = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, httpcore.ProxyError)
"""What the backend and the reader raise; the only argument of each is a `Reason`."""


def exchange(
    request: WireRequest,
    *,
    deadline_seconds: float,
    limits: Limits = LIMITS,
    flight: Flight | None = None,
    trust: ssl.SSLContext | None = None,
) -> Replied | Silent:
    """Send once and say what came of it by the deadline; neither the answer nor an exception holds what was sent.

    `Silent(may_have_left=False)` is proof that not one application byte was handed to the socket. An exception that
    is not ours (KeyboardInterrupt, SystemExit, whatever a signal handler raises) passes unchanged once the connection
    is cut; `flight.answer()` then says what is known.

    Args:
        request: what to send, to whom and through which proxy.
        deadline_seconds: everything together, from now; zero or less sends nothing.
        limits: how much of a reply is read, and how long the way there may take.
        flight: a fresh one, kept up to date while the exchange runs.
        trust: what `trusted(request.verify)` returned, to share it among exchanges; made anew without it.
    """
    known = Flight() if flight is None else flight
    known.secrets = request.secrets
    try:
        check_request(request)
        check_deadline(deadline_seconds)
        deadline = Deadline(deadline_seconds)
        call = _Call(request, limits)
        context = trusted(request.verify) if call.needs_tls and trust is None else trust
    except (TypeError, ValueError, h11.LocalProtocolError):
        return known.answer(Reason.BAD_REQUEST)
    with Backend(deadline, known) as backend:
        return known.answer(_converse(call, backend, context, known))


def _converse(call: _Call, backend: Backend, context: ssl.SSLContext | None, flight: Flight) -> Reason | None:
    """Open, write and read, each once; None when the reply is whole."""
    broken = None
    try:
        stream = call.open(backend, context)
        try:
            stream.write(call.octets)
        except httpcore.WriteError as fault:
            # A server may answer and close before it has read a whole body: its reply counts, so the reading goes on.
            broken = Reason(fault.args[0])
        reader = _Reader(stream, call.parser, flight, call.limits)
        reader.head()
        reason = reader.body()
        stream.close()
    except FAULTS as fault:
        reason = Reason(fault.args[0])
    return broken if broken is not None and reason is Reason.CLOSED else reason


class _Call:
    """A checked request, as the bytes that will be written and the way to whom they go."""

    def __init__(self, request: WireRequest, limits: Limits) -> None:
        self._target = parse_url(request.url)
        self._proxy = None if request.proxy is None else parse_url(request.proxy)
        self._proxy_headers = request.proxy_headers
        self.limits = limits
        self.needs_tls = self._target.scheme == "https"
        self.parser = _parser(limits)
        self.octets = self._written(request)

    def _written(self, request: WireRequest) -> bytes:
        target, headers = self._target, [("host", self._target.authority), *request.headers]
        path = target.path
        if self._proxy is not None and not self.needs_tls:
            path = f"http://{target.authority}{path}"  # RFC 9112 section 3.2.2: a proxy reads the whole address
            headers += request.proxy_headers
        headers += [("accept-encoding", "identity"), ("connection", "close")]
        if request.body or request.method in BODY_METHODS:
            headers.append(("content-length", str(len(request.body))))
        head = self.parser.send(h11.Request(method=request.method, target=path, headers=headers))
        body = self.parser.send(h11.Data(data=request.body)) if request.body else b""
        end = self.parser.send(h11.EndOfMessage())
        return b"".join(part for part in (head, body, end) if part)

    def open(self, backend: Backend, context: ssl.SSLContext | None) -> Stream:
        """Open the way to the server, through the proxy if there is one; no application byte leaves here."""
        setup = Deadline(self.limits.setup_seconds_max)
        first = self._target if self._proxy is None else self._proxy
        stream = backend.connect_tcp(first.host, first.port, timeout=setup.left())
        if self.needs_tls and context is not None:
            if self._proxy is not None:
                self._tunnel(stream, setup)
            # Certificates name no root dot, though the resolver takes one.
            name = self._target.host.removesuffix(".")
            stream.start_tls(context, server_hostname=name, timeout=setup.left())
        return stream

    def _tunnel(self, stream: Stream, setup: Deadline) -> None:
        """Ask the proxy for a tunnel (RFC 9110 section 9.3.6); whatever it does instead, the server got nothing."""
        place = f"{self._target.bracketed}:{self._target.port}"
        parser, answered = _parser(self.limits), Flight()
        connect = h11.Request(method="CONNECT", target=place, headers=[("host", place), *self._proxy_headers])
        try:
            stream.write_setup((parser.send(connect) or b"") + (parser.send(h11.EndOfMessage()) or b""), setup.left())
            _Reader(stream, parser, answered, self.limits, setup).head()
        except httpcore.TimeoutException:
            raise httpcore.ConnectTimeout(Reason.PROXY_TIMEOUT) from None
        except FAULTS:
            raise httpcore.ProxyError(Reason.PROXY_FAILED) from None
        if answered.status is None or not HTTPStatus.OK <= answered.status < HTTPStatus.MULTIPLE_CHOICES:
            raise httpcore.ProxyError(Reason.PROXY_REFUSED)
        if parser.trailing_data[0]:  # under TLS the client speaks first: these bytes are the proxy's own
            raise httpcore.ProxyError(Reason.PROXY_FAILED)


class _Reader:
    """Reads one reply and notes in the flight what was seen, as soon as it was seen."""

    def __init__(
        self,
        stream: Stream,
        parser: h11.Connection,
        flight: Flight,
        limits: Limits,
        until: Deadline | None = None,
    ) -> None:
        self._stream = stream
        self._parser = parser
        self._flight = flight
        self._limits = limits
        self._until = until
        self._head = bytearray()
        self._in_head = True
        self._ended = False

    def head(self) -> None:
        """Read to the end of the final head, past informational ones, which are no status."""
        for _ in range(INFORMATIONALS_MAX + 1):
            event = self._next()
            rest = self._parser.trailing_data[0]
            if isinstance(event, h11.Response):
                self._check_head(len(self._head) - len(rest))
                self._flight.note_head(event.status_code, event.headers)
                self._in_head = False
                return
            self._head = bytearray(rest)
            self._note_status()
        raise httpcore.RemoteProtocolError(Reason.INFORMATIONAL_FLOOD)

    def body(self) -> Reason | None:
        """Read to the end of the body; None when it is whole and as announced."""
        while isinstance(event := self._next(), h11.Data):
            room = self._limits.body_bytes_max - len(self._flight.body)
            self._flight.body += event.data[:room]
            if len(event.data) > room:
                raise httpcore.RemoteProtocolError(Reason.BODY_TOO_LARGE)
        if self._parser.trailing_data[0]:
            return Reason.LENGTH_MISMATCH
        codings = [value.strip().lower() for name, value in self._flight.headers if name == "content-encoding"]
        return Reason.ENCODED if any(coding not in {"", "identity"} for coding in codings) else None

    def _next(self) -> h11.Event:
        while True:
            event = None
            with contextlib.suppress(h11.RemoteProtocolError):  # whose message quotes the reply: it goes no further
                event = self._parser.next_event()
            if event is None:
                raise httpcore.RemoteProtocolError(self._why_malformed())
            if not isinstance(event, type):
                return event
            if event is not h11.NEED_DATA:  # PAUSED: the peer wants another protocol, which nobody asked for
                raise httpcore.RemoteProtocolError(Reason.GARBAGE)
            self._fill()

    def _fill(self) -> None:
        if self._in_head:
            self._check_head(len(self._head))
        try:
            octets = self._stream.read(READ_BYTES, None if self._until is None else self._until.left())
        except httpcore.ReadError as fault:
            raise httpcore.ReadError(self._why_cut(Reason(fault.args[0]))) from None
        self._ended = not octets
        if self._in_head:
            if self._ended:
                raise httpcore.ReadError(self._why_cut(Reason.CLOSED))
            self._head += octets
            self._note_status()
        self._parser.receive_data(octets)

    def _note_status(self) -> None:
        if self._flight.status is None and (line := STATUS_LINE.match(self._head)):
            self._flight.status = int(line[1])

    def _check_head(self, octets: int) -> None:
        if octets > self._limits.head_bytes_max:
            raise httpcore.RemoteProtocolError(Reason.HEAD_TOO_LARGE)

    def _why_cut(self, reason: Reason) -> Reason:
        if self._in_head:
            if not self._head:
                return reason
            return Reason.HEAD_CUT if self._head[: len(HTTP)] == HTTP[: len(self._head)] else Reason.GARBAGE
        return Reason.BODY_CUT if reason is Reason.CLOSED else reason

    def _why_malformed(self) -> Reason:
        if self._in_head:
            return Reason.GARBAGE if self._flight.status is None else Reason.HEAD_MALFORMED
        return Reason.BODY_CUT if self._ended else Reason.BODY_MALFORMED


def _parser(limits: Limits) -> h11.Connection:
    # Room for one more read, so that our own limit speaks first.
    return h11.Connection(our_role=h11.CLIENT, max_incomplete_event_size=limits.head_bytes_max + READ_BYTES)
