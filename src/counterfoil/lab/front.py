"""The door of the laboratory's provider: HTTP/1.1 on loopback, a thread per connection, every request on record."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, NoReturn
from urllib.parse import SplitResult, parse_qs, urlsplit

from counterfoil.lab.faults import FaultPlan, PlanWrong
from counterfoil.lab.ground_truth import GroundTruth, Request
from counterfoil.lab.misbehaviour import EFFECTS_ROUTE, Glance, Send, misbehave
from counterfoil.lab.replies import Line, Reply, as_json, error
from counterfoil.lab.service import KINDS, Look, Service

LOOPBACK = "127.0.0.1"

BODY_BYTES_MAX = 4 << 20
"""Larger than any payload the product accepts, small enough to hold in memory many times."""

LOOK_NAMES_MAX = 200
"""Names in one look; more belong in several."""

LIST_DEFAULT, LIST_MAX = 20, 200
"""Items in one list when nothing is said, and at most."""

IDLE_SECONDS = 120
"""How long a connection may say nothing before its thread is given back."""

_LOOK_PARAMETERS: Mapping[str, str] = {"key": "key", "lookup": "reference"}
_FAULTS_PATH, _TRUTH_PATH = "/_lab/faults", "/_lab/truth"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """One request as it arrived."""

    method: str
    target: str
    headers: Message
    body: bytes
    whole: bool
    """False when the body ended before its announced length."""

    @property
    def url(self) -> SplitResult:
        """The target, taken apart."""
        return urlsplit(self.target)

    @property
    def key(self) -> str | None:
        """The idempotency key it carries."""
        return self.headers.get("Idempotency-Key")

    @property
    def reference(self) -> str | None:
        """The client's own reference it carries."""
        return self.headers.get("X-Client-Reference")


class _Told(Exception):
    """The request is answered before it reaches the service."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


class Front:
    """From a request to what happens: record it, know the account, meet a fault or the service."""

    def __init__(self, *, truth: GroundTruth, service: Service, plan: FaultPlan, tokens: Mapping[str, str]) -> None:
        self._truth = truth
        self._service = service
        self._plan = plan
        self._tokens = dict(tokens)

    def answer(self, incoming: Incoming, line: Line) -> None:
        """Answer one request over its connection, or fail to in the way the plan says."""
        try:
            if incoming.url.path.startswith("/_lab/"):
                line.send(self._control(incoming))
            elif incoming.method == "POST":
                self._send(incoming, line)
            else:
                self._look(incoming, line)
        except _Told as told:
            line.send(told.reply)

    def _send(self, incoming: Incoming, line: Line) -> None:
        self._record("send", incoming)
        if not incoming.whole:
            line.close()
            return
        request = self._request(incoming)
        self._service.heard(request)
        rule = self._plan.choose("send", request.kind)
        if rule is None:
            line.send(self._service.perform(request))
        else:
            misbehave(Send(service=self._service, line=line, request=request, rule=rule))

    def _look(self, incoming: Incoming, line: Line) -> None:
        self._record("look", incoming)
        look = self._question(incoming)
        rule = self._plan.choose("look", look.kind if look.kind in KINDS else EFFECTS_ROUTE)
        if rule is None:
            line.send(self._service.look(look))
        else:
            misbehave(Glance(service=self._service, line=line, look=look, rule=rule))

    def _record(self, act: str, incoming: Incoming) -> None:
        entry = {"method": incoming.method, "path": incoming.target, "key": incoming.key}
        digest = hashlib.sha256(incoming.body).hexdigest()
        said = {"reference": incoming.reference, "payload_sha256": digest, "bytes": len(incoming.body)}
        self._truth.received(act, {**entry, **said, "whole": incoming.whole})

    def _request(self, incoming: Incoming) -> Request:
        account = self._account(incoming)
        kind, _, rest = incoming.url.path.strip("/").partition("/")
        if kind not in KINDS or rest != "effects":
            _refuse(404, "no_such_route")
        if kind == "key" and not incoming.key:
            _refuse(400, "key_missing")
        return Request(
            kind=kind,
            key=incoming.key,
            reference=incoming.reference,
            account=account,
            body=incoming.body,
            payload=_json(incoming.body),
        )

    def _question(self, incoming: Incoming) -> Look:
        account = self._account(incoming)
        first, *rest = incoming.url.path.strip("/").split("/")
        query = parse_qs(incoming.url.query)
        if first == "effects" and len(rest) == 1:
            return Look(account=account, kind="id", names=rest)
        if first == "effects" and not rest:
            return Look(account=account, kind="list", limit=_limit(query))
        if first not in _LOOK_PARAMETERS or rest != ["effects"]:
            _refuse(404, "no_such_route")
        names = query.get(_LOOK_PARAMETERS[first], [])
        if not 0 < len(names) <= LOOK_NAMES_MAX:
            _refuse(400, "names_wrong")
        return Look(account=account, kind=first, names=names)

    def _account(self, incoming: Incoming) -> str:
        scheme, _, token = incoming.headers.get("Authorization", "").partition(" ")
        account = self._tokens.get(token)
        if scheme.lower() != "bearer" or account is None:
            _refuse(401, "unauthorized", {"WWW-Authenticate": "Bearer"})
        return account

    def _control(self, incoming: Incoming) -> Reply:
        # The laboratory's own door: no account, and never part of the record of what the product did.
        if (incoming.method, incoming.url.path) == ("GET", _TRUTH_PATH):
            return as_json(200, {**self._truth.counts(), "late": self._service.late, "rules": self._plan.counts()})
        if (incoming.method, incoming.url.path) != ("POST", _FAULTS_PATH):
            return error(404, "no_such_route")
        try:
            return as_json(200, {"rules": self._plan.replace(_json(incoming.body))})
        except PlanWrong as wrong:
            return error(400, str(wrong))


class ProviderServer(ThreadingMixIn, TCPServer):
    """The listening socket; its threads end with the process."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # more callers at once than any laboratory run starts

    def __init__(self, port: int, front: Front) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self.front = front

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.socket.getsockname()[1])

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - the library's signature
        """Say on the error stream what the other side only sees as silence."""
        _log.exception("a request from %s ended without an answer", client_address)


class _Handler(BaseHTTPRequestHandler):
    """The library's parser, and nothing else of the library."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = IDLE_SECONDS
    server: ProviderServer

    def do_POST(self) -> None:
        """Take a write."""
        self._take()

    def do_GET(self) -> None:
        """Take a look."""
        self._take()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's signature
        """Stay silent: the journals say more."""

    def _take(self) -> None:
        line = Line(self.connection)
        length = self._length()
        if length is None:
            line.send(error(411, "length_required", {"Connection": "close"}))
            line.close()
        elif length > BODY_BYTES_MAX:
            line.send(error(413, "body_too_large", {"Connection": "close"}))
            line.close()
        else:
            self._answer(line, length)
        self.close_connection = self.close_connection or not line.open

    def _answer(self, line: Line, length: int) -> None:
        body = self.rfile.read(length)
        incoming = Incoming(
            method=self.command, target=self.path, headers=self.headers, body=body, whole=len(body) == length
        )
        try:
            self.server.front.answer(incoming, line)
        except (BrokenPipeError, ConnectionResetError):
            line.close()  # the caller left first; what happened is on record already

    def _length(self) -> int | None:
        announced = self.headers.get("Content-Length", "0" if self.command == "GET" else "")
        return int(announced) if announced.isascii() and announced.isdigit() else None


def _refuse(status: int, word: str, headers: Mapping[str, str] | None = None) -> NoReturn:
    raise _Told(error(status, word, headers))


def _json(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_no_constant)
    except ValueError:
        _refuse(400, "not_json")


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _limit(query: Mapping[str, list[str]]) -> int:
    asked = query.get("limit", [str(LIST_DEFAULT)])[-1]
    if not (asked.isascii() and asked.isdigit() and 0 < int(asked) <= LIST_MAX):
        _refuse(400, "limit_wrong")
    return int(asked)
