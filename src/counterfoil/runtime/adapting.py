"""Guarding what is neither a function nor an HTTP API: a mail server, a command, a statement, an object store."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from counterfoil.domain.contract import Contract
from counterfoil.domain.errors import BadValue
from counterfoil.ports.provider import Provider
from counterfoil.runtime.declared import action_of, contract_of, declared
from counterfoil.runtime.guarded import GuardedHttp
from counterfoil.runtime.registered import Registered
from counterfoil.runtime.secrets import references, resolver

if TYPE_CHECKING:
    from counterfoil.providers.s3 import Keys
    from counterfoil.runtime.ledger import Ledger


class Adapter(NamedTuple):
    """What carries an action out, and what is left of its declaration."""

    contract: Contract
    provider: Provider
    given: dict[str, Any]


def guard(ledger: Ledger, name: str, adapter: Adapter) -> GuardedHttp:
    """Register an adapter's action, in the manner of `ledger.http`."""
    said = declared(adapter.given, name)
    action = action_of(said, name, contract=adapter.contract, tenant=ledger.tenant, production=ledger.production)
    registered = Registered(
        action, adapter.provider, key=said.key, check=said.check, value=said.value,
        fingerprint_key=ledger.fingerprint_key,
    )  # fmt: skip
    ledger.register(registered)
    return GuardedHttp(ledger, registered)


def smtp(name: str, *, host: str, account: str, contract: str | Contract = "smtp.submission", **given: Any) -> Adapter:
    """Mail through one server; the payload is a mail's fields.

    Args:
        name: the action's.
        host: the server; `port`, `tls` (`starttls`, `implicit` or `none`), `user`, `password` (`env:NAME`, `file:PATH`
            or a callable) and `verify` may say how it is reached.
        account: the account that the server lets in.
        contract: another one than the catalogue's, for a server that is known to behave otherwise.
        given: whatever else an action declares.
    """
    from counterfoil.providers.smtp import Mailbox, SmtpProvider

    fields: dict[str, Any] = {k: given.pop(k) for k in ("port", "tls", "user", "verify") if k in given}
    password = given.pop("password", None)
    if password is not None:
        fields |= {"password": resolver(name, password), "password_from": references({"": password})[""]}
    loaded = contract_of(contract, "")
    provider = SmtpProvider(loaded, mailbox=Mailbox(host=host, **fields), account=account)
    return Adapter(loaded, provider, {"destination": host, **given, "account": account})


def process(
    name: str,
    *,
    command: Sequence[str],
    account: str,
    exits: Mapping[int, str] | None = None,
    contract: str | Contract = "process.command",
    **given: Any,
) -> Adapter:
    """A command; its payload is JSON on standard input.

    Args:
        name: the action's.
        command: the program and its arguments, in which `{payload/POINTER}` and `{provider_key}` may stand; no shell
            reads them. `environment`, `folder` and `secrets` (by name of a variable) may say what is around it.
        account: at whom it works.
        exits: by exit code, what it proves: `succeeded`, `accepted`, `rejected`, `not_sent` or `unknown`.
        contract: another one than the catalogue's, in which every code but 0 is unknown.
        given: whatever else an action declares.
    """
    from counterfoil.providers.process import Command, ProcessProvider, with_exits

    if isinstance(command, str) or not command:
        raise BadValue("command", command, wanted="a list: the program, then its arguments")
    program = shutil.which(command[0])
    if program is None:
        raise BadValue("command", command[0], wanted="a program that is there and may be run")
    secrets = given.pop("secrets", {})
    fields: dict[str, Any] = {k: given.pop(k) for k in ("environment", "folder") if k in given}
    loaded = with_exits(contract_of(contract, ""), exits or {})
    provider = ProcessProvider(
        loaded,
        command=Command(arguments=(str(Path(program).absolute()), *command[1:]), **fields),
        account=account,
        secrets={variable: resolver(name, reference) for variable, reference in secrets.items()},
        references=references(secrets),
    )
    return Adapter(loaded, provider, {"destination": program, **given, "account": account})


def sql(
    name: str,
    *,
    url: str,
    statement: str,
    account: str,
    contract: str | Contract = "postgresql.statement",
    **given: Any,
) -> Adapter:
    """One SQL statement on PostgreSQL; the payload's fields are its parameters.

    Args:
        name: the action's.
        url: `postgresql://USER@HOST/DATABASE`; `password` (`env:NAME`, `file:PATH` or a callable) stands beside it.
        statement: `%(NAME)s` stands for the payload's field of that name, `%(provider_key)s` for the operation's key.
        account: the account that its credentials open.
        contract: another one than the catalogue's.
        given: whatever else an action declares.
    """
    from counterfoil.providers.sql import Database, SqlProvider

    fields: dict[str, Any] = {}
    password = given.pop("password", None)
    if password is not None:
        fields = {"password": resolver(name, password), "password_from": references({"": password})[""]}
    loaded = contract_of(contract, "")
    provider = SqlProvider(loaded, database=Database(url=url, **fields), statement=statement, account=account)
    return Adapter(loaded, provider, {"destination": url.partition("?")[0], **given, "account": account})


def s3(
    name: str,
    *,
    region: str,
    account: str,
    base_url: str = "",
    contract: str | Contract = "aws.s3.put_if_none_match",
    **given: Any,
) -> Adapter:
    """Objects in a store that speaks the S3 API; each is written only where nothing stands.

    Args:
        name: the action's.
        region: which the signature names.
        account: the account that its keys open.
        base_url: another store than AWS in that region; buckets stand in the path.
        contract: another one than the catalogue's, such as `cloudflare.r2.put_if_none_match`.
        given: `access_key` with `secret_key` (`env:NAME`, `file:PATH` or a callable), or `profile`, or neither for the
            keys that boto3 would find; `proxy`, `verify` and `limits` as of `ledger.http`; whatever else an action
            declares.
    """
    from counterfoil.providers.s3 import S3Provider, Signing, checked_region

    transport = {k: given.pop(k) for k in ("proxy", "proxy_headers", "verify", "limits") if k in given}
    named = {k: given.pop(k, "") for k in ("profile", "access_key", "secret_key")}
    url = base_url or f"https://s3.{checked_region(region)}.amazonaws.com"
    loaded = contract_of(contract, "")
    keys, keys_from = _keys(name, **named)
    signing = Signing(region=region, keys=keys, keys_from=keys_from)
    provider = S3Provider(loaded, base_url=url, account=account, signing=signing, **transport)
    return Adapter(loaded, provider, {"destination": url.rstrip("/"), **given, "account": account})


def _keys(name: str, *, profile: str, access_key: str, secret_key: Any) -> tuple[Callable[[], Keys], str]:
    """What finds the keys, and where."""
    from counterfoil.providers.s3 import Chain, Keys

    if bool(access_key) != bool(secret_key) or (access_key and profile):
        raise BadValue("access_key", "not shown", wanted="access_key and secret_key, or profile, or none of them")
    if not access_key:
        return Chain(name, profile), f"boto3:{profile}"
    secret = resolver(name, secret_key)
    return lambda: Keys(access_key, secret()), f"{access_key}:{references({'': secret_key})['']}"
