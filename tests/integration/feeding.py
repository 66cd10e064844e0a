"""A ledger into which documents are handed, and a provider whose contract knows events."""

from __future__ import annotations

import json

import msgspec
from tests.crash.world import World

from counterfoil import contracts
from counterfoil.domain.contract import WebhookRule, digest
from counterfoil.domain.statement import Layout
from counterfoil.runtime.declared import action_of, declared
from counterfoil.runtime.guarded import GuardedHttp
from counterfoil.runtime.registered import Registered

MARA = {"by": "user:mara", "reason": "from the provider's dashboard", "how": "test"}
ACCOUNT = "acct_lab"
_PLACES = {
    "account": "/account", "reference": "/data/key", "external_id": "/data/id", "source": "service",
    "result": {"id": "/data/id", "state": "/data/state"},
}  # fmt: skip
RULES = (
    WebhookRule(
        where={"/type": "effect.done"}, finding="succeeded", match={"/amount": "/data/amount"}, **_PLACES
    ),
    WebhookRule(where={"/type": "effect.failed"}, finding="rejected", **_PLACES),
)  # fmt: skip
LAYOUT = Layout(
    columns={"reference": "Ref", "external_id": "Id", "account": "Account", "amount": "Amount", "state": "State"},
    states={"paid": "succeeded", "returned": "rejected"}, amount_at="/amount", decimals=0,
)  # fmt: skip
HEAD = "Ref,Id,Account,Amount,State\n"


class Desk(World):
    """One payment, and a contract with clauses for events."""

    def _http(self, ledger):
        contract = msgspec.structs.replace(contracts.load(self.kind), webhooks=RULES)
        said = declared({"account": ACCOUNT, "owner": "payments", "authoriser": "lead"}, self.kind)
        action = action_of(said, self.kind, contract=contract, tenant="default")
        assert action.contract_digest == digest(contract)
        registered = Registered(action, self.provider)
        ledger.register(registered)
        ledger.pay = GuardedHttp(ledger, registered)
        return ledger.pay


def event(receipt, *, kind="effect.done", amount=10, account=ACCOUNT, identifier="ef_1", **data):
    """An event as the provider sends it."""
    fields = {"key": receipt.id, "id": identifier, "amount": amount, "state": "done", **data}
    return json.dumps({"type": kind, "account": account, "data": fields}).encode()


def csv(*lines):
    """A statement of these lines: reference, id, account, amount, state."""
    return (HEAD + "".join(",".join(map(str, line)) + "\n" for line in lines)).encode()
