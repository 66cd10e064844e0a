"""Objects: moto's server, which checks signatures here, and the fault proxy in front of it."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest
from botocore.session import Session

import counterfoil
from counterfoil import contracts
from counterfoil.domain.canonical import canonical
from counterfoil.domain.errors import BadValue, PayloadRefused, SecretMissing
from counterfoil.lab.ground_truth import WIRE
from counterfoil.lab.journal import read
from counterfoil.lab.processes import free_port, start_proxy
from counterfoil.lab.real import servers
from counterfoil.ports.provider import SendOrder
from counterfoil.providers.reply import Flight
from counterfoil.providers.s3 import Keys, S3Provider, Signing

OWNED = {"account": "shop", "owner": "ann", "authoriser": "ben"}
CONTRACT = contracts.load("aws.s3.put_if_none_match")
HASTY = msgspec.structs.replace(CONTRACT, send_deadline_seconds=0.5)
SECONDS = 20
NAME = "invoices/2027 + 1/ünpaid(7)~*.json"
"""Each letter of it that a signature may spell in its own way."""


class Store:
    """Moto's server, with one user whose keys are checked, and what is really there."""

    def __init__(self, port):
        self.port, self.made = port, 0
        iam = self.client("iam", "LAB", "nothing is checked yet")
        iam.create_user(UserName="shop")
        allowed = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
        iam.put_user_policy(UserName="shop", PolicyName="objects", PolicyDocument=json.dumps(allowed))
        made = iam.create_access_key(UserName="shop")["AccessKey"]
        self.access_key, self.secret_key = made["AccessKeyId"], made["SecretAccessKey"]
        plain = {"Content-Type": "text/plain"}
        check = urllib.request.Request(f"http://127.0.0.1:{port}/moto-api/reset-auth", b"0", plain)  # from now on
        urllib.request.urlopen(check, timeout=SECONDS).close()
        self.objects = self.client("s3", self.access_key, self.secret_key)

    def client(self, service, access_key, secret_key):
        """Botocore's own client, for what a test asks beside the boundary."""
        return Session().create_client(
            service, region_name=servers.REGION, endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id=access_key, aws_secret_access_key=secret_key,
        )  # fmt: skip

    def payload(self, name="", paid=10):
        """An object of a name that no test has used."""
        self.made += 1
        return {"bucket": "shop", "key": name or f"order-{self.made}", "document": {"paid": paid}}

    def held(self, payload):
        """Every version of that object."""
        listed = self.objects.list_object_versions(Bucket="shop", Prefix=payload["key"]).get("Versions", [])
        return [
            self.objects.get_object(Bucket="shop", Key=one["Key"], VersionId=one["VersionId"])["Body"].read()
            for one in listed
        ]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """One server for all of them; each test has an object of its own."""
    with servers.moto(tmp_path_factory.mktemp("moto")) as running:
        yield Store(running.place.port)


@pytest.fixture
def ledger(tmp_path):
    """A ledger of its own for each test."""
    with counterfoil.open(tmp_path / "receipts.db", actor="robot") as ledger:
        yield ledger


def guarded(ledger, store, port, **given):
    """The action that writes objects."""
    said = {"access_key": store.access_key, "secret_key": lambda: store.secret_key, **OWNED, **given}
    return ledger.s3("store", base_url=f"http://127.0.0.1:{port}", region=servers.REGION, **said)


@contextlib.contextmanager
def spoilt(store, folder, **rule):
    """The fault proxy before it, for the first PUT, and what passed there."""
    wire = folder / "wire"
    wire.mkdir()
    rules = [{"method": "PUT", "times": 1, **rule}]
    with start_proxy(store.port, "--folder", str(wire), rules=rules) as proxy:
        yield proxy.port, lambda: [one["method"] for one in read(wire / WIRE) if one["act"] == "send"]


# -- against moto ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_object_is_written_once_and_its_signature_holds(ledger, store):
    """A success by its entity tag, and the same again is the same receipt."""
    act, payload = guarded(ledger, store, store.port), store.payload(NAME)
    receipt = act(payload, key="order-1")
    assert (receipt.outcome, receipt.operation.attempts) == ("succeeded", 1)
    assert act(payload, key="order-1").id == receipt.id
    assert [json.loads(body) for body in store.held(payload)] == [{"document": {"paid": 10}}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "then", "objects"),
    [
        ("lose_reply", "succeeded", 1),
        ("reset", "succeeded", 1),
        ("cut_reply", "succeeded", 1),
        ("delay_reply", "succeeded", 1),  # by twice the deadline
        ("lose_request", "unknown", 0),  # that nothing stands there now does not say that nothing will
        ("unavailable", "unknown", 0),
    ],
)
def test_whatever_becomes_of_the_answer_one_request_leaves(ledger, store, tmp_path, behaviour, then, objects):
    """Unknown, and a look settles it where the object stands with what was sent."""
    payload = store.payload()
    with spoilt(store, tmp_path, behaviour=behaviour, seconds=1.0) as (port, sent):
        act = guarded(ledger, store, port, contract=HASTY if behaviour == "delay_reply" else CONTRACT)
        receipt = act(payload, key="order-1")
        assert receipt.outcome == "unknown"
        assert ledger.reconcile(receipt.id).outcome == then
        assert act(payload, key="order-1").id == receipt.id
        assert sent() == ["PUT"]
    assert len(store.held(payload)) == objects


@pytest.mark.slow
def test_a_fence_is_signed_too(ledger, store, tmp_path):
    """The request was lost; the fence stands where it would go, and nothing happened for good."""
    payload = store.payload()
    with spoilt(store, tmp_path, behaviour="lose_request") as (port, _):
        receipt = guarded(ledger, store, port)(payload, key="order-1")
        fenced = ledger.fence(receipt.id, by="user:lea", reason="the customer waits")
    assert (receipt.outcome, fenced.outcome) == ("unknown", "rejected")
    assert store.held(payload) == [b""]


@pytest.mark.slow
def test_somebody_elses_object_is_left_alone_and_is_no_success(ledger, store):
    """412, and what stands there is not what was sent."""
    payload = store.payload()
    store.objects.put_object(Bucket="shop", Key=payload["key"], Body=b'{"document":{"paid":99}}')
    receipt = guarded(ledger, store, store.port)(payload, key="order-1")
    assert receipt.outcome == "unknown"
    assert ledger.reconcile(receipt.id).outcome == "unknown"
    assert [json.loads(body)["document"] for body in store.held(payload)] == [{"paid": 99}]


@pytest.mark.slow
def test_another_key_signs_nothing_and_stands_nowhere(ledger, store, tmp_path):
    """403, no object, and neither the key nor the signature is at rest."""
    payload = store.payload()
    receipt = guarded(ledger, store, store.port, secret_key=lambda: "another-secret-81f2")(payload, key="order-1")
    assert receipt.outcome == "unknown"  # S3 documents 403 for no write in particular, and the contract claims nothing
    assert store.held(payload) == []
    at_rest = b"".join(path.read_bytes() for path in tmp_path.glob("receipts.db*") if path.is_file())
    assert b"another-secret-81f2" not in at_rest
    assert b"Signature=" not in at_rest


@pytest.mark.slow
def test_the_keys_that_boto3_would_find_are_used(ledger, store, monkeypatch):
    """Of the environment, for one."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", store.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", store.secret_key)
    payload = store.payload()
    receipt = guarded(ledger, store, store.port, access_key="", secret_key="")(payload, key="order-1")
    assert receipt.outcome == "succeeded"


# -- without a store ---------------------------------------------------------------------------------------------------


class Elsewhere(BaseHTTPRequestHandler):
    """A store that sends everybody to another region."""

    def do_PUT(self):
        """Answer as S3 does where the bucket is not there, and tell what was sent, as a careless one would."""
        self.server.seen.append(dict(self.headers))
        self.rfile.read(int(self.headers["Content-Length"]))
        provided = self.headers["authorization"].rpartition("=")[2]
        told = json.dumps({**self.server.seen[-1], "SignatureProvided": provided}).encode()
        self.send_response(301)
        self.send_header("x-amz-bucket-region", "eu-west-1")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def elsewhere():
    """It runs, and keeps the headers of each request in `seen`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        server.seen = []
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def provider(port=1, keys=Keys("AKIA1", "secret-key-81f2"), region="eu-north-1", keys_from="env:S3_KEY"):  # noqa: B008
    """A provider by itself."""
    signing = Signing(region=region, keys=lambda: keys, keys_from=keys_from)
    return S3Provider(CONTRACT, base_url=f"http://127.0.0.1:{port}", account="shop", signing=signing)


def order():
    """One object."""
    payload = {"bucket": "shop", "key": "order-1", "document": {}}
    return SendOrder(
        account="shop", destination="", payload=canonical(payload), provider_key="", deadline_seconds=SECONDS
    )


def test_a_bucket_of_another_region_is_not_followed(elsewhere):
    """One request, and its answer; botocore's own client, with every retry off, would have sent a second."""
    answer = provider(elsewhere.server_port).send(order(), Flight())
    assert (answer.status, len(elsewhere.seen)) == (301, 1)


def test_a_session_token_is_sent_and_signed(elsewhere):
    """And the request says so; the body is signed too."""
    provider(elsewhere.server_port, Keys("AKIA1", "secret-key-81f2", "token-81f2")).send(order(), Flight())
    headers = {name.lower(): value for name, value in elsewhere.seen[0].items()}
    assert headers["x-amz-security-token"] == "token-81f2"
    signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {"host", "if-none-match", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"} <= set(signed)
    assert "/eu-north-1/s3/aws4_request" in headers["authorization"]


def test_what_a_store_tells_of_the_signature_is_masked(elsewhere):
    """The signature and the token, and not the names beside them."""
    keys = Keys("AKIA1", "secret-key-81f2", "token-81f2")
    answer = provider(elsewhere.server_port, keys).send(order(), Flight())
    signature = elsewhere.seen[0]["authorization"].rpartition("=")[2]
    assert (len(signature), signature.encode() in answer.body, b"token-81f2" in answer.body) == (64, False, False)
    assert b"x-amz-security-token" in answer.body


def test_what_is_approved_names_where_the_keys_come_from():
    """Other keys and another region are another approval; what they are is nowhere in it."""
    form = provider().form(order())
    assert b"sigv4:eu-north-1:env:S3_KEY" in form
    assert b"secret-key-81f2" not in form
    assert len({form, provider(region="eu-west-1").form(order()), provider(keys_from="x").form(order())}) == 3


def test_nothing_that_holds_a_secret_shows_it():
    """In no repr."""
    made = provider()
    assert "secret-key-81f2" not in repr(made) + repr(Keys("AKIA1", "secret-key-81f2"))
    assert repr(made) == "S3Provider('aws.s3.put_if_none_match', account='shop')"


def test_a_store_that_is_not_there_was_sent_nothing(ledger):
    """Which is certain: no connection came to be."""
    act = ledger.s3(
        "store", base_url=f"http://127.0.0.1:{free_port()}", region="auto", access_key="AKIA1",
        secret_key=lambda: "secret-key-81f2", contract="cloudflare.r2.put_if_none_match", **OWNED,
    )  # fmt: skip
    receipt = act({"bucket": "shop", "key": "order-1", "document": {}}, key="order-1")
    assert (receipt.outcome, receipt.operation.unresolved) == ("unobserved", 0)


@pytest.mark.parametrize("key", ["/x", "//x", "a//b", "x/", "/"])
def test_a_key_whose_address_would_be_another_objects_is_refused_before_the_claim(ledger, key):
    """`/x` and `x` are two objects, and what is written is the one that was approved, or none."""
    act = ledger.s3(
        "store", region="eu-north-1", access_key="AKIA1", secret_key=lambda: "secret-key-81f2", **OWNED,
    )  # fmt: skip
    with pytest.raises(PayloadRefused) as refused:
        act({"bucket": "shop", "key": key, "document": {}}, key="order-1")
    assert refused.value.pointer == "/key"
    assert list(ledger.store.unresolved()) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"access_key": "AKIA1", "secret_key": "env:NOT_SET_81F2"}, "NOT_SET_81F2"),
        ({"profile": "not-there"}, "profile not-there"),
        ({}, "profile default"),
    ],
)
def test_without_keys_nothing_is_claimed(ledger, monkeypatch, tmp_path, given, said):
    """It is refused before anything is on record, by a name that helps."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    act = ledger.s3("store", region="eu-north-1", **given, **OWNED)
    with pytest.raises(SecretMissing, match=said):
        act({"bucket": "shop", "key": "order-1", "document": {}}, key="order-1")
    assert list(ledger.store.unresolved()) == []


def test_keys_that_fail_later_send_nothing():
    """They were there when it was checked; without them nothing leaves, and that is certain."""

    def gone():
        raise RuntimeError("secret-key-81f2")

    made = S3Provider(
        CONTRACT, base_url="http://127.0.0.1:1", account="shop",
        signing=Signing(region="auto", keys=gone, keys_from="call:gone"),
    )  # fmt: skip
    flight = Flight()
    answer = made.send(order(), flight)
    assert (answer.may_have_left, answer.reason, flight.may_have_left) == (False, "secret_missing", False)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"region": "eu north"}, "region"),
        ({"region": ""}, "region"),
        ({"region": "auto", "base_url": "ftp://store"}, "base_url"),
        ({"region": "auto", "access_key": "AKIA1"}, "access_key"),
        ({"region": "auto", "access_key": "AKIA1", "secret_key": "env:KEY", "profile": "shop"}, "access_key"),
        ({"region": "auto", "contract": "anthropic.messages.batches_create"}, "only secret"),
    ],
)
def test_what_cannot_be_declared_is_said(ledger, given, said):
    """Where it is declared."""
    with pytest.raises(BadValue, match=said):
        ledger.s3("store", **given, **OWNED)


def test_aws_in_that_region_is_the_store_if_no_other_is_named(ledger):
    """And stands on the receipt as its destination."""
    act = ledger.s3("store", region="eu-north-1", profile="shop", **OWNED)
    assert act.action.destination == "https://s3.eu-north-1.amazonaws.com"
