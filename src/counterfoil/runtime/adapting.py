"""Guarding what is neither a function nor an HTTP API: a mail server, a command, a statement, an object store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from counterfoil.domain.contract import Contract
from counterfoil.ports.provider import Provider
from counterfoil.runtime.declared import action_of, contract_of, declared
from counterfoil.runtime.guarded import GuardedHttp
from counterfoil.runtime.registered import Registered
from counterfoil.runtime.secrets import references, resolver

if TYPE_CHECKING:
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
