"""A fence over real sockets and a real file: a person makes a lost write impossible, or learns that it had happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.integration.wire.servers import Server

import counterfoil
from counterfoil import contracts
from counterfoil.cli import stands
from counterfoil.domain.audit import audit
from counterfoil.domain.errors import BadValue, NoBasis
from counterfoil.domain.event import EventKind, begun_of
from counterfoil.domain.retry import FENCED
from counterfoil.domain.words import AttemptClass, Lifecycle, Outcome

WHO = {"by": "user:lea", "reason": "the customer has cancelled"}
SAID = {"account": "acct", "owner": "shop", "authoriser": "lead"}
PAYLOAD = {"bucket": "invoices", "key": "order-7.json", "document": {"amount": 10}}
NAME = "/invoices/order-7.json"
DONE, EXISTS, GONE = b"200 OK\r\netag: e1", b"412 Precondition Failed", b"404 Not Found"
CLI_SECONDS = 60


class Bucket:
    """Names that are given once, as S3 gives them with If-None-Match; each accident happens to the next write."""

    def __init__(self):
        self.objects, self.accidents, self.writes = {}, [], []

    def serve(self, peer):
        """Answer one connection."""
        seen = peer.take()
        if seen.method == "GET":
            found = self.objects.get(seen.target)
            self._say(peer, GONE if found is None else DONE, found or b"")
            return
        self.writes.append(seen)
        accident = self.accidents.pop(0) if self.accidents else ""
        if accident == "request":
            return
        stands = seen.target in self.objects
        self.objects.setdefault(seen.target, seen.body)
        if accident != "reply":
            self._say(peer, EXISTS if stands else DONE)

    def _say(self, peer, status, body=b""):
        peer.say(b"HTTP/1.1 " + status + b"\r\ncontent-length: %d\r\n\r\n" % len(body) + body)


@pytest.fixture
def bucket():
    """What is stored, and how to reach it."""
    bucket = Bucket()
    with Server(bucket.serve) as server:
        bucket.url = server.url("")
        yield bucket


@pytest.fixture
def ledger(tmp_path):
    """A file of its own."""
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:shop") as ledger:
        yield ledger


def put(ledger, bucket, *accidents):
    """One write that met these accidents, and maybe its fence after it."""
    bucket.accidents = list(accidents)
    secrets = {"/headers/authorization": lambda: "AWS4 signed"}
    contract = contracts.load("aws.s3.put_if_none_match")
    store = ledger.http("store", contract=contract, base_url=bucket.url, secrets=secrets, **SAID)
    receipt = store(PAYLOAD, key="order-7")
    assert receipt.outcome is Outcome.UNKNOWN
    return receipt


def found_faults(ledger, receipt):
    """What verification says of it."""
    return [fault.problem for fault in audit(ledger.history(receipt.id))]


def test_a_fence_that_comes_first_settles_it_for_good(ledger, bucket):
    """The write was lost; the fence wins, nothing happened, and a late copy of the write is refused by the provider."""
    receipt = put(ledger, bucket, "request")
    fenced = ledger.fence(receipt.id, **WHO)
    assert (fenced.outcome, fenced.lifecycle, fenced.operation.unresolved) == (
        Outcome.REJECTED, Lifecycle.SAFE_TO_RETRY, 0,
    )  # fmt: skip
    assert bucket.objects == {NAME: b""}
    assert [write.headers["if-none-match"] for write in bucket.writes] == ["*", "*"]
    begun = [begun_of(e) for e in ledger.history(receipt.id).events if e.kind is EventKind.BEGUN]
    assert [(b.attempt.attempt_class, b.fence, b.by) for b in begun] == [
        (AttemptClass.FIRST, None, ""), (AttemptClass.FENCE, 0, "user:lea"),
    ]  # fmt: skip
    assert stands.why(fenced.operation, fenced.outcome) == "a fence came first, by the provider's word"
    assert [stands.basis(b, otherwise="the first") for b in begun] == [
        "the first", f"a fence, decided by user:lea: {WHO['reason']}",
    ]  # fmt: skip
    with pytest.raises(NoBasis) as refused:
        ledger.attempt(receipt.id, by="user:lea")
    assert FENCED in refused.value.because
    assert len(bucket.writes) == 2
    assert found_faults(ledger, receipt) == []


def test_a_fence_that_comes_second_leaves_it_to_a_look(ledger, bucket):
    """The answer was lost; the fence loses and says so, and a look finds what had happened."""
    receipt = put(ledger, bucket, "reply")
    fenced = ledger.fence(receipt.id, **WHO)
    assert (fenced.outcome, fenced.operation.unresolved, fenced.operation.exposure) == (Outcome.UNKNOWN, 1, 1)
    found = ledger.reconcile(receipt.id)
    assert (found.outcome, found.operation.unresolved) == (Outcome.SUCCEEDED, 0)
    assert json.loads(bucket.objects[NAME]) == {"document": {"amount": 10}}
    assert found_faults(ledger, receipt) == []


@pytest.mark.parametrize("accident", ["request", "reply"])
def test_a_fence_without_an_answer_is_unknown_and_blocks(ledger, bucket, accident):
    """Nobody knows whether it stands: nothing else goes; the next one, or a look, settles what can be settled."""
    receipt = put(ledger, bucket, "request", accident)
    fenced = ledger.fence(receipt.id, **WHO)
    assert (fenced.outcome, fenced.operation.exposure) == (Outcome.UNKNOWN, 2)
    with pytest.raises(NoBasis, match="fence"):
        ledger.attempt(receipt.id, by="user:lea")
    again = ledger.fence(receipt.id, **WHO)
    # The first fence may be what the second one met: of two answers by which one stands there, neither is proof.
    assert again.outcome is (Outcome.REJECTED if accident == "request" else Outcome.UNKNOWN)
    assert ledger.reconcile(receipt.id).outcome is again.outcome
    assert found_faults(ledger, receipt) == []


def test_a_fence_is_a_persons(ledger, bucket):
    """No agent, nobody without a reason, and nothing that is settled."""
    receipt = put(ledger, bucket, "request")
    for by, reason in (("agent:shop", "I think so"), ("user:lea", "")):
        with pytest.raises(BadValue):
            ledger.fence(receipt.id, by=by, reason=reason)
    with pytest.raises(NoBasis, match="names no such fence"):
        ledger.fence(receipt.id, index=3, **WHO)
    ledger.fence(receipt.id, **WHO)
    with pytest.raises(NoBasis):
        ledger.fence(receipt.id, **WHO)
    assert len(bucket.writes) == 2


def test_an_adapter_without_fences_sends_none(ledger):
    """A function under such a contract is never called in the place of its fence."""
    called = []
    contract = contracts.load("aws.s3.put_if_none_match")

    @ledger.action(contract=contract, key=lambda order: order, look=lambda question: None, **SAID)
    def store(order):
        called.append(order)
        raise TimeoutError

    receipt = store("o-1")
    assert receipt.outcome is Outcome.UNKNOWN
    fenced = ledger.fence(receipt.id, **WHO)
    assert (called, fenced.outcome, fenced.operation.exposure) == (["o-1"], Outcome.UNKNOWN, 1)


def test_the_command_fences_as_somebody(tmp_path, ledger, bucket):
    """`attempt --fence` is a decision, is offered by `show`, and says what came of it."""
    receipt = put(ledger, bucket, "request")
    ledger.close()
    (tmp_path / "shop.yaml").write_text(
        "store: receipts.db\nactions: {store: {contract: aws.s3.put_if_none_match, account: acct, owner: shop,"
        f" authoriser: lead, base_url: '{bucket.url}', secrets: {{/headers/authorization: 'env:AWS'}}}}}}\n",
        encoding="utf-8",
    )

    def run(*words):
        argv = [sys.executable, "-m", "counterfoil.cli", *words, "--store", "receipts.db", "--actions", "shop.yaml"]
        env = os.environ | {"AWS": "signed", "COLUMNS": "200"}
        return subprocess.run(
            argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=CLI_SECONDS, check=False
        )

    assert "--fence" in run("show", receipt.id).stdout
    refused = run("attempt", receipt.id, "--fence")
    assert (refused.returncode, len(bucket.writes)) == (2, 1)
    said = run("attempt", receipt.id, "--fence", "--as", "lea", "--reason", "cancelled", "--json")
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout)["outcome"] == "rejected"
    assert len(bucket.writes) == 2
