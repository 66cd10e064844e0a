"""The S3 provider: a contract's requests over one-shot exchanges, each signed by botocore at the last moment.

botocore finds the credentials and signs; it sends nothing. Its own client would repeat a write by itself: with every
retry off it still follows a bucket to another region by a second PUT.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Unpack

import msgspec
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError
from botocore.session import Session

from counterfoil.domain.contract import Contract
from counterfoil.domain.errors import BadValue, SecretMissing
from counterfoil.domain.template import Rendered
from counterfoil.providers.http import HttpProvider, Opened, Transport

SIGNED_AT = "/headers/authorization"
"""Where a contract says that whoever sends it signs it."""

_SERVICE = "s3"
_REGION = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


class Keys(NamedTuple):
    """What signs."""

    access_key: str
    secret_key: str
    token: str | None = None

    def __repr__(self) -> str:
        return "Keys()"


class Signing(msgspec.Struct, frozen=True, kw_only=True):
    """How requests are signed, and whose signature it is."""

    region: str
    keys: Callable[[], Keys]
    """Asked for each request; it raises where there are none."""
    keys_from: str
    """Where they come from, which an approval is bound to."""


class S3Provider(HttpProvider):
    """Sends once, looks and fences, for one account at one store of objects; it judges and repeats nothing.

    Args:
        contract: the action's contract, whose only secret is a signature.
        base_url: the store; the bucket stands in the path.
        account: the account that the keys open.
        signing: the region and the keys.
        transport: proxy, trusted certificates and limits.

    Raises:
        BadValue: there can be no such region or URL, or the contract wants something else than a signature.
    """

    def __init__(
        self, contract: Contract, *, base_url: str, account: str, signing: Signing, **transport: Unpack[Transport]
    ) -> None:
        if contract.secrets != (SIGNED_AT,):
            raise BadValue("contract", contract.id, wanted=f"one whose only secret is {SIGNED_AT}")
        self._signing = signing
        super().__init__(
            contract,
            base_url=base_url,
            account=account,
            secrets={SIGNED_AT: lambda: signing.keys().secret_key},
            references={SIGNED_AT: f"sigv4:{checked_region(signing.region)}:{signing.keys_from}"},
            **transport,
        )

    def __repr__(self) -> str:
        return f"S3Provider({self._contract.id!r}, account={self._account!r})"

    def _opened(self, made: Rendered) -> Opened | None:
        """The signature of exactly these bytes, with what it needs beside it; None where there are no keys."""
        try:
            keys = self._signing.keys()
        except Exception:  # noqa: BLE001 - a vault's error may hold the secret; without keys nothing is sent
            return None
        request = AWSRequest(
            method=made.method, url=self._base_url + made.target, data=made.body, headers=dict(made.headers)
        )
        S3SigV4Auth(keys, _SERVICE, self._signing.region).add_auth(request)
        given = {name.lower() for name, _ in made.headers}
        headers = {name.lower(): value for name, value in request.headers.items() if name.lower() not in given}
        signed = headers["authorization"]
        secrets = (signed, signed.rpartition("=")[2], keys.secret_key, keys.token or "")
        return Opened(tuple(headers.items()), tuple(filter(None, secrets)))


class Chain:
    """The keys that boto3 would use, found and renewed in its own way: environment, profiles, roles.

    Args:
        action: whose they are, for errors.
        profile: of the shared configuration; empty for the usual one.
    """

    def __init__(self, action: str, profile: str = "") -> None:
        self._action, self._profile = action, profile
        self._guard = threading.Lock()  # a session is not for two threads at once
        self._session: Any = None

    def __call__(self) -> Keys:
        """Find them.

        Raises:
            SecretMissing: there are none.
        """
        with self._guard:
            try:
                if self._session is None:
                    self._session = Session(profile=self._profile or None)
                found = self._session.get_credentials()
                frozen = None if found is None else found.get_frozen_credentials()
            except BotoCoreError as error:
                raise self._missing(f"cannot be had: {type(error).__name__}") from None
        if frozen is None or not frozen.access_key or not frozen.secret_key:
            raise self._missing("stands nowhere that boto3 looks")
        return Keys(frozen.access_key, frozen.secret_key, frozen.token)

    def _missing(self, problem: str) -> SecretMissing:
        return SecretMissing(self._action, name=f"profile {self._profile or 'default'}", problem=problem)


def checked_region(region: str) -> str:
    """The region as it stands in a signature and in a host's name.

    Raises:
        BadValue: it cannot stand there.
    """
    if not _REGION.fullmatch(region):
        raise BadValue("region", region, wanted="a region such as eu-central-1, or the store's own word (R2: auto)")
    return region
