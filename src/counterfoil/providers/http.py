"""The HTTP provider: a contract's templates over one-shot exchanges, with secrets put in at the last moment."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypedDict, Unpack

import msgspec

from counterfoil.domain.answer import Answer, Silent
from counterfoil.domain.contract import Contract
from counterfoil.domain.errors import BadValue, PayloadRefused, SecretMisplaced, SecretMissing
from counterfoil.domain.reading import Sought, named, requests_of, seek
from counterfoil.domain.template import LookTemplate, Names, Rendered, RequestTemplate, render
from counterfoil.ports import provider
from counterfoil.providers import wire
from counterfoil.providers.deadline import Deadline

Secrets = Mapping[str, Callable[[], str]]
"""By header pointer (`/headers/authorization`): what returns the whole header value, at send time."""

_HEADER_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


class Opened(NamedTuple):
    """What opens the account for one request."""

    headers: tuple[tuple[str, str], ...]
    secrets: tuple[str, ...]
    """What of them a server may echo, each part that would open something by itself."""

    def __repr__(self) -> str:
        return "Opened()"


class Transport(TypedDict, total=False):
    """How the network is crossed; the environment is never asked."""

    proxy: str | None
    proxy_headers: tuple[tuple[str, str], ...]
    verify: bool | str
    limits: wire.Limits


class HttpProvider:
    """Sends once and looks, for one account at one base URL; it judges and repeats nothing.

    Args:
        contract: the action's contract, with a request.
        base_url: below which the contract's paths stand; no query, no userinfo.
        account: the account that the secrets open.
        secrets: one for each of the contract's secret pointers.
        references: where each comes from, which an approval is bound to; never what it is.
        transport: proxy, trusted certificates and limits.

    Raises:
        BadValue: the URL could not be sent as it is written, or the contract describes no request.
        SecretMisplaced: a secret stands at a pointer that the contract does not declare.
    """

    def __init__(
        self,
        contract: Contract,
        *,
        base_url: str,
        account: str,
        secrets: Secrets | None = None,
        references: Mapping[str, str] | None = None,
        **transport: Unpack[Transport],
    ) -> None:
        if contract.request is None:
            raise BadValue("contract", contract.id, wanted="one that describes a request")
        self._contract, self._request = contract, contract.request
        self._base_url, self._account = _checked(base_url), account
        self._secrets = dict(secrets or {})
        self._references = dict(references or {})
        self._proxy, self._proxy_headers = transport.get("proxy"), transport.get("proxy_headers", ())
        self._verify, self._limits = transport.get("verify", True), transport.get("limits", wire.LIMITS)
        self._trust: ssl.SSLContext | None = None
        problem = _unsendable(
            wire.WireRequest(
                method="GET",
                url=self._base_url,
                proxy=self._proxy,
                proxy_headers=self._proxy_headers,
                verify=self._verify,
            )
        )
        if problem:
            raise BadValue("transport", "as declared", wanted=problem)
        for pointer in self._secrets:
            if pointer not in contract.secrets:
                raise SecretMisplaced(contract.id, pointer=pointer, why="is not one that the contract declares")

    def __repr__(self) -> str:
        return f"HttpProvider({self._contract.id!r}, account={self._account!r})"

    def check(self, order: provider.SendOrder) -> None:
        """Refuse, before anything is claimed, what could never be sent as it stands.

        Raises:
            PayloadRefused: the payload does not fit the contract's request.
            SecretMissing: a declared secret has no value that a header may hold.
            SecretMisplaced: the order is for another account than these secrets open.
            BadValue: the order is for another destination.
        """
        if order.account != self._account:
            raise SecretMisplaced(
                self._contract.id,
                pointer=self._contract.secrets[0] if self._contract.secrets else "",
                why=_OTHER_ACCOUNT,
            )
        if self._elsewhere(order.destination):
            raise BadValue("destination", order.destination, wanted="the provider's own base URL")
        request = self._filled(self._request, order.payload, self._names(order))
        if request is None:
            # Asked again only to name it; a source that answers by now leaves the first name to stand.
            missing = next((p for p in self._contract.secrets if self._resolved(p) is None), self._contract.secrets[0])
            raise self._missing(missing)
        problem = _unsendable(request)
        if problem:
            raise PayloadRefused("", problem)

    def form(self, order: provider.SendOrder) -> bytes:
        """Say what a send would write, with each secret as the place it comes from.

        Raises:
            PayloadRefused: the payload does not fit the contract's request.
        """
        made = render(self._request, order.payload, self._names(order))
        secret = [(pointer, self._references.get(pointer, "secret")) for pointer in self._contract.secrets]
        where = [made.method, self._base_url + made.target, self._proxy or ""]
        return msgspec.json.encode([where, [*made.headers, *secret], made.body])

    def send(self, order: provider.SendOrder, flight: provider.Flight) -> Answer:
        """Write once and say what came back; whatever fails before the first byte is `Silent`, nothing left."""
        return self._write(self._request, order, flight)

    def fence(self, order: provider.SendOrder, flight: provider.Flight, index: int) -> Answer:
        """Send one of the contract's fences in the place of the write, in the same manner."""
        return self._write(self._contract.fences[index].request, order, flight)

    def _write(self, template: RequestTemplate, order: provider.SendOrder, flight: provider.Flight) -> Answer:
        if order.account != self._account or self._elsewhere(order.destination):
            return Silent(may_have_left=False, reason="not_ours")
        deadline = Deadline(order.deadline_seconds)  # a vault that is slow to answer does not put it off
        try:
            request = self._filled(template, order.payload, self._names(order))
        except PayloadRefused:
            return Silent(may_have_left=False, reason="not_rendered")
        if request is None:
            return Silent(may_have_left=False, reason="secret_missing")
        known = wire.Flight()
        # Whoever gives up waiting while the exchange goes on elsewhere must assume that it writes.
        flight.may_have_left = True
        try:
            return self._exchange(request, deadline.left(), known)
        finally:
            flight.may_have_left = known.may_have_left

    def look(self, order: provider.LookOrder) -> tuple[Answer, ...]:
        """Make the reads of one look, in the order of `requests_of`; a read that cannot be made is `Silent`."""
        sought = Sought(account=order.account, payload=order.payload, names=order.names)
        look = self._contract.looks[order.look]
        names, until = named(look, sought), time.monotonic() + order.deadline_seconds
        return tuple(
            self._read(template, order, names, until - time.monotonic()) for template in requests_of(look, sought)
        )

    def _read(self, template: LookTemplate, order: provider.LookOrder, names: Names, seconds: float) -> Answer:
        if order.account != self._account or self._elsewhere(order.destination):
            return Silent(may_have_left=False, reason="not_ours")
        try:
            request = self._filled(template, order.payload, names)
        except PayloadRefused:
            return Silent(may_have_left=False, reason="not_rendered")
        if request is None:
            return Silent(may_have_left=False, reason="secret_missing")
        return self._exchange(request, seconds, wire.Flight())

    def _exchange(self, request: wire.WireRequest, seconds: float, flight: wire.Flight) -> Answer:
        return wire.exchange(
            request, deadline_seconds=seconds, limits=self._limits, flight=flight, trust=self._trusted()
        )

    def _names(self, order: provider.SendOrder) -> Names:
        bare = Names(provider_key=order.provider_key)
        return seek(self._contract, account=order.account, payload=order.payload, names=bare).names

    def _filled(
        self, template: RequestTemplate | LookTemplate, payload: bytes, names: Names
    ) -> wire.WireRequest | None:
        """The whole request, secrets and all; None where a secret has no value."""
        made = render(template, payload, names)
        opened = self._opened(made)
        if opened is None:
            return None
        return wire.WireRequest(
            method=made.method,
            url=self._base_url + made.target,
            headers=(*made.headers, *opened.headers),
            body=made.body,
            proxy=self._proxy,
            proxy_headers=self._proxy_headers,
            verify=self._verify,
            secrets=opened.secrets,
        )

    def _opened(self, made: Rendered) -> Opened | None:  # noqa: ARG002 - a signature depends on what is signed
        """The secret headers of one request; None where one has no value."""
        values = {pointer: self._resolved(pointer) for pointer in self._contract.secrets}
        headers = [(pointer.removeprefix("/headers/"), value) for pointer, value in values.items() if value is not None]
        if len(headers) < len(values):
            return None
        # A server may echo the token without its scheme, or one field of it.
        return Opened(tuple(headers), tuple({part for _, value in headers for part in _parts(value)}))

    def _missing(self, pointer: str) -> SecretMissing:
        """Say which secret has no value; in the source's own words only where they are of this house."""
        try:
            self._secrets.get(pointer, str)()
        except SecretMissing as error:
            # Its frames hold the value, and its context a vault's own words: only the sentence goes on.
            error.__context__ = None
            return error.with_traceback(None)
        except Exception:  # noqa: BLE001, S110 - a vault's error may hold the secret: named below by its place alone
            pass
        return SecretMissing(self._contract.id, name=pointer, problem="has no value that a header may hold")

    def _resolved(self, pointer: str) -> str | None:
        """The secret's value now, or None: what its source raises may quote it and is not passed on."""
        source = self._secrets.get(pointer)
        if source is None:
            return None
        try:
            value: object = source()
        except Exception:  # noqa: BLE001 - a vault's error may hold the secret; without a value nothing is sent
            return None
        return value if isinstance(value, str) and _HEADER_VALUE.fullmatch(value) else None

    def _elsewhere(self, destination: str) -> bool:
        """The intent names, as a URL, another place than this provider writes to."""
        return "://" in destination and destination.rstrip("/") != self._base_url

    def _trusted(self) -> ssl.SSLContext | None:
        if self._trust is None and self._base_url.startswith("https:"):
            try:
                self._trust = wire.trusted(self._verify)
            except (OSError, ValueError):
                return None  # the exchange meets the same and says that nothing left
        return self._trust


def _unsendable(request: wire.WireRequest) -> str:
    """Why the wire would not send the request as it is written; empty when it would."""
    try:
        wire.check_request(request)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def _parts(credential: str) -> set[str]:
    return {part for part in (credential, credential.rpartition(" ")[2], *_FIELDS.split(credential)) if part}


_FIELDS = re.compile(r'[\s=:,;"]+')
"""What stands between the parts of a credential."""
_OTHER_ACCOUNT = "opens another account than the intent's"


def _checked(base_url: str) -> str:
    base = base_url.rstrip("/")
    try:
        wire.check_url(base)
    except ValueError as error:
        problem = str(error)
    else:
        if "?" not in base:
            return base[:5].lower() + base[5:]
        problem = "url: a base URL has no query"
    # Raised out here, and without the URL: it may hold a password.
    raise BadValue("base_url", "not shown", wanted=problem)
