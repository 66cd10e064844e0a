"""Field reports, section 1: duplicates from a retry after a time-out, a 5xx or a reset. Counted at the provider."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.cases.stage import (
    BLOCKED,
    SHORT,
    WHO,
    document,
    done,
    evidence,
    guard,
    is_in_hand,
    is_unknown,
    later,
    listing,
    reply,
    until,
)
from tests.integration.wire.servers import Peer, Server, dead_port

import counterfoil
from counterfoil.domain import absence
from counterfoil.lab.ground_truth import item
from counterfoil.lab.processes import Child, start_provider
from counterfoil.lab.provider import ACCOUNT

KINDS = pytest.mark.parametrize("kind", ["key", "lookup", "nothing"])


def counted(lab, kind, receipt, payload):
    """Sends and effects of one intent as the provider counted them; `nothing` knows a write by its payload only."""
    name = payload if kind == "nothing" else receipt.id
    return lab.sends(name), len(lab.effects(name))


@KINDS
@pytest.mark.parametrize(
    "behaviour",
    ["hang", "lose_reply", "reset", "cut_body", "error_500", "error_503_retry_after", "html_200"],
)
def test_r01_an_answer_that_is_lost_after_the_commit_is_asked_for_once(lab, book, brief, kind, behaviour):
    """Whatever becomes of the answer, the provider sees one POST, the receipt says unknown, and so does a repeat."""
    terms = brief(kind, send_deadline_seconds=SHORT) if behaviour == "hang" else f"lab.{kind}"
    pay = guard(book(), lab.url, terms)
    payload = {"order": f"r1-{kind}-{behaviour}", "amount": 10}
    lab.fault(behaviour)
    receipt = pay(payload)
    assert is_unknown(receipt)
    assert counted(lab, kind, receipt, payload) == (1, 1)
    again, elsewhere = pay(payload), guard(book(), lab.url, terms)(payload)
    assert again.id == elsewhere.id == receipt.id
    assert is_unknown(again)
    assert is_unknown(elsewhere)
    assert counted(lab, kind, receipt, payload) == (1, 1)


@KINDS
def test_r01_an_event_loop_repeats_no_more_than_a_thread(lab, book, kind):
    """The same on a running event loop: one POST, unknown, and the repeats beside it send nothing."""
    pay = guard(book(), lab.url, f"lab.{kind}")
    payload = {"order": f"r1-loop-{kind}", "amount": 10}
    lab.fault("lose_reply")

    async def scene():
        return [await pay.acall(payload), *await asyncio.gather(*(pay.acall(payload) for _ in range(3)))]

    receipts = asyncio.run(scene())
    assert all(is_unknown(receipt) for receipt in receipts)
    assert {receipt.id for receipt in receipts} == {receipts[0].id}
    assert counted(lab, kind, receipts[0], payload) == (1, 1)


@KINDS
def test_r01_being_told_to_slow_down_is_not_permission_to_repeat(book, kind):
    """A 429 after the commit leaves one POST and an unknown outcome, however short its Retry-After is."""

    def script(peer: Peer) -> None:
        peer.take()
        peer.say(reply(429, {"error": "slow down"}, retry_after="0"))

    with Server(script) as server:
        pay = guard(book(), server.url(""), f"lab.{kind}")
        receipts = [pay({"order": "o-1", "amount": 10}) for _ in range(3)]
    assert [is_unknown(receipt) for receipt in receipts]
    assert len(server.requests) == server.connections == 1


class ModelDown(Exception):
    """The model's own API answers 500 to the call after the tool."""


def test_r02_a_run_that_starts_again_meets_the_receipt(lab, book):
    """Restarted from zero with a new call id each time, the tool answers what it answered first and sends nothing."""
    ledger = book(run="run-1")
    charge = ledger.action(lambda order, amount: lab.charge({"order": order}), name="charge", occurrence="run", **WHO)
    heard = []

    def run(call_id):
        receipt = charge.with_key("o-2", tool_call=call_id)(order="o-2", amount=10)
        told = charge.as_tool()(order="o-2", amount=10)  # no key at all: the run's own occurrence
        heard.append((receipt.id, receipt.expect(), receipt.standing.value, told["operation"], told["result"]))
        raise ModelDown

    for number in range(3):  # a framework's retries=2
        with pytest.raises(ModelDown):
            run(f"call_{number}")
    assert [standing for _, _, standing, _, _ in heard] == ["new", "existing", "existing"]
    assert len({(keyed, str(result), told, str(replayed)) for keyed, result, _, told, replayed in heard}) == 1
    (keyed, result, _, told, replayed) = heard[0]
    assert result == {"id": lab.effects(keyed)[0]["id"]}
    assert replayed == {"id": lab.effects(told)[0]["id"]}
    assert [lab.sends(name) for name in (keyed, told)] == [1, 1]
    assert len(ledger.store.operations(limit=9)) == 2


def test_r05_a_model_that_asks_again_is_told_to_wait(book):
    """Four more calls while the first is in flight are answered at once, and none of them sends."""
    taken, go = threading.Event(), threading.Event()

    def script(peer: Peer) -> None:
        peer.take()
        taken.set()
        go.wait(20)
        peer.say(reply(201, done()))

    with Server(script) as server, ThreadPoolExecutor(1) as pool:
        pay = guard(book(), server.url(""))
        first = pool.submit(pay, {"order": "o-5", "amount": 10})
        assert taken.wait(20)
        answers = [pay({"order": "o-5", "amount": 10}) for _ in range(4)]
        go.set()
        settled = first.result()
        after = pay({"order": "o-5", "amount": 10})
    assert all(is_in_hand(answer) for answer in answers)
    assert {answer.id for answer in answers} == {settled.id} == {after.id}
    assert settled.outcome.value == after.outcome.value == "succeeded"
    assert after.expect() == settled.expect() == done()
    assert len(server.requests) == 1


def test_r06_the_text_of_an_unknown_outcome_asks_for_no_repeat(lab, book):
    """What a model reads says: may have happened, blocked, this receipt, look, wait or ask; nothing of trying again."""
    ledger = book()
    lab.fault("lose_reply")
    receipt = guard(ledger, lab.url)({"order": "o-6", "amount": 10})
    told = receipt.for_model()
    assert told == {"operation": receipt.id, **BLOCKED}
    with pytest.raises(counterfoil.OutcomeUnknown) as error:
        receipt.expect()
    brief = ledger.briefing()
    assert receipt.id in str(error.value)
    assert receipt.id in brief
    for text in (str(told), str(error.value), brief):
        words = text.lower().replace("retry", "")
        assert [word for word in ("try", "time", "longer", "later", "fail", "error") if word in words] == []
    assert "do not repeat" in brief
    assert "do not send it again" in str(error.value)


def test_r07_a_workflow_that_is_restarted_keeps_its_key(lab, book):
    """A new run id in a new process is no new occurrence where the business names it: the receipt answers."""

    def start(run):
        ledger = book(run=run)
        refund = guard(ledger, lab.url, key=lambda order, amount: f"refund-workflow:{order}")
        return refund({"order": "o-7", "amount": 10})

    first, second = start("run-1"), start("run-2")
    assert (first.standing.value, second.standing.value) == ("new", "existing")
    assert second.id == first.id
    assert second.expect() == first.expect()
    assert (lab.sends(first.id), len(lab.effects(first.id))) == (1, 1)


def test_r08_a_refusal_of_the_second_attempt_does_not_settle_the_first(book):
    """A balance that attempt 2 finds too low may be the work of attempt 1: unknown until a look finds it."""

    def script(peer: Peer) -> None:
        seen = peer.take()
        posts = [request for request in peer.server.requests if request.method == "POST"]
        if seen.method == "GET":
            key = posts[0].headers["idempotency-key"]
            bought = item("ef_1", ACCOUNT, key=key, payload={"order": "o-8", "amount": 10})
            peer.say(reply(200, listing(bought)))
        elif len(posts) > 1:
            peer.say(reply(422, {"error": "refused", "message": "insufficient balance"}))

    with Server(script) as server:
        ledger = book()
        pay = guard(ledger, server.url(""))
        first = pay({"order": "o-8", "amount": 10})
        assert is_unknown(first)
        assert is_unknown(pay({"order": "o-8", "amount": 10}))
        assert len(server.requests) == 1
        forced = ledger.attempt(first.id, basis="same_key_replay", by="mara")
        assert (forced.id, len(server.requests)) == (first.id, 2)
        assert [a["finding"] for a in document(forced)["attempts"]] == ["unknown", "rejected"]
        assert is_unknown(forced)
        assert (forced.operation.exposure, forced.operation.attempts) == (1, 2)
        found = ledger.reconcile(first.id)
    assert (found.outcome.value, found.expect()) == ("succeeded", done())
    assert [a["finding"] for a in document(found)["attempts"]] == ["succeeded", "rejected"]
    assert [seen.method for seen in server.requests] == ["POST", "POST", "GET"]


@pytest.mark.parametrize("kind", ["lookup", "nothing"])
def test_r08_no_one_can_force_a_second_attempt_by_name_alone(lab, book, kind):
    """Where nothing documented makes a repeat safe, every basis is refused, an override is no basis, and none sends."""
    ledger = book()
    lab.fault("lose_reply")
    payload = {"order": f"r8-{kind}", "amount": 10}
    receipt = guard(ledger, lab.url, f"lab.{kind}")(payload)
    for basis in (None, "not_sent", "same_key_replay", "absence_proven", "rejected_without_effect"):
        with pytest.raises(counterfoil.CallerError, match="no further attempt is permitted"):
            ledger.attempt(receipt.id, basis=basis, by="mara")
    with pytest.raises(counterfoil.CallerError, match="no override is on record"):
        ledger.attempt(receipt.id, basis="operator_override", by="mara")
    assert is_unknown(receipt.refresh())
    assert counted(lab, kind, receipt, payload) == (1, 1)


NAMES = """
id: tests.names
version: 1
provider: tests
effect: a thing under a name of the caller's choice
sources: {api: {document: this test, says: A name is taken once; anybody may ask whose it is., confidence: inferred}}
request: {method: PUT, path: "/names/{payload/order}", body: json}
secrets: [/headers/authorization]
reference: payload/order
protection: {kind: natural_key, carrier: path, source: api}
repeat: {same_payload: refused, other_payload: refused, source: api}
answers:
  - {status: ["201"], finding: succeeded, external_id: /id, source: api}
  - {status: ["409", "412"], finding: unknown, means: first_landed, source: api}
result: {id: /id}
looks:
  - by: key
    request: {path: "/names/{reference}"}
    match: {account: /owner, reference: /name, material: {/amount: /amount}}
    controls: {negative: {path: "/names/{negative}"}}
    absent_status: ["404"]
    complete: true
    external_id: /id
    result: {id: /id}
    source: api
reconcile: allowed
read_budget: {looks_max: 2, first_after_seconds: 0}
"""


def naming(stands: dict[str, object], answer: int | None) -> Server:
    """A server under whose one name something stands, whatever it answers to the write."""

    def script(peer: Peer) -> None:
        seen = peer.take()
        if seen.method == "PUT":
            peer.say(reply(answer, {"error": "exists"}) if answer else b"")
        else:
            peer.say(reply(200, stands) if seen.target == f"/names/{stands['name']}" else reply(404, {}))

    return Server(script)


@pytest.fixture
def names(tmp_path):
    """The path of a contract whose provider knows things by names that anybody may have taken."""
    path = tmp_path / "names.yaml"
    path.write_text(NAMES, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("answer", [None, 409, 412])
def test_r09_a_look_that_finds_our_own_object_is_success(book, names, answer):
    """Lost or answered by "already exists", the write is settled by reading the object and finding it ours."""
    stands = {"id": "obj_1", "name": "o-9", "owner": ACCOUNT, "amount": 10}
    with naming(stands, answer) as server:
        ledger = book()
        receipt = guard(ledger, server.url(""), names)({"order": "o-9", "amount": 10})
        assert is_unknown(receipt)
        found = ledger.reconcile(receipt.id)
    assert (found.outcome.value, found.expect()) == ("succeeded", {"id": "obj_1"})
    assert document(found)["external_id"] == "obj_1"
    assert [seen.method for seen in server.requests].count("PUT") == 1


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [({"owner": "acct_other"}, "other_account"), ({"amount": 11}, "other_content"), ({"owner": None}, "field_missing")],
)
def test_r09_an_object_of_somebody_else_is_not_our_success(book, names, theirs, reason):
    """409 proves nothing alone: what stands there is compared, and what is not ours settles nothing either way."""
    stands = {"id": "obj_1", "name": "o-9", "owner": ACCOUNT, "amount": 10, **theirs}
    with naming(stands, 409) as server:
        ledger = book()
        receipt = guard(ledger, server.url(""), names)({"order": "o-9", "amount": 10})
        assert is_unknown(receipt)
        for _ in range(2):
            assert is_unknown(ledger.reconcile(receipt.id))
    after = receipt.refresh()
    assert (after.lifecycle.value, evidence(after)[-1]["reason"]) == ("manual_review", reason)
    assert document(after)["external_id"] is None
    assert [seen.method for seen in server.requests].count("PUT") == 1


@KINDS
def test_r10_the_receipt_counts_what_the_server_counted(lab, book, kind):
    """Attempts on the receipt are the POSTs at the provider, names being unique there or not."""
    ledger = book()
    payload = {"order": f"r10-{kind}", "amount": 10}
    lab.fault("lose_reply")
    receipt = guard(ledger, lab.url, f"lab.{kind}")(payload)
    assert receipt.operation.attempts == counted(lab, kind, receipt, payload)[0] == 1
    if kind == "key":
        receipt = ledger.attempt(receipt.id, basis="same_key_replay", by="mara")
        assert (receipt.operation.attempts, counted(lab, kind, receipt, payload)) == (2, (2, 1))


def test_r10_what_never_left_is_counted_apart(lab, book):
    """An attempt that is proven not to have left stands on the receipt as that, and the server never saw it."""
    ledger, payload = book(), {"order": "r10-down", "amount": 10}
    with dead_port() as port:
        first = guard(ledger, lab.url, proxy=f"http://127.0.0.1:{port}")(payload)
    second = guard(book(), lab.url)(payload)
    assert (second.id, second.outcome.value) == (first.id, "succeeded")
    assert [a["finding"] for a in document(second)["attempts"]] == ["not_sent", "succeeded"]
    assert (lab.sends(first.id), len(lab.effects(first.id))) == (1, 1)


def test_r11_an_unknown_effect_is_a_possible_orphan_until_it_is_found(lab, book):
    """There is something to undo only where a look found it; what was not found is named, not taken for absent."""
    ledger = book()
    pay = guard(ledger, lab.url)
    lab.fault("lose_reply")
    found, lost = pay({"order": "r11-a", "amount": 10}), pay({"order": "r11-b", "amount": 10})
    lab.faults()
    assert document(found)["external_id"] is None
    assert {found.id, lost.id} <= set(ledger.briefing().replace(":", " ").split())
    found = ledger.reconcile(found.id)
    assert document(found)["external_id"] == lab.effects(found.id)[0]["id"]
    assert (document(lost)["external_id"], document(lost)["state"]) == (None, "outcome_unknown")
    brief = ledger.briefing()
    assert found.id not in brief
    assert lost.id in brief
    assert "may already have happened" in brief
    assert is_unknown(lost.refresh())


def test_r12_a_look_that_lags_behind_proves_no_absence(book, brief, tmp_path):
    """What a replica does not show yet is inconclusive, and is found once the replica has caught up."""
    terms = brief("lookup", look={"consistency": "eventual", "lag_seconds": 5})
    assumed = {"longest_delivery": 0.0, "longest_delivery_by": "tests", "longest_delivery_why": "loopback"}
    truth = tmp_path / "truth"
    with start_provider(truth, "--index-lag", "3600", rules=[{"behaviour": "lose_reply"}]) as behind:
        port, ledger = behind.port, book()
        pay = guard(ledger, f"http://127.0.0.1:{port}", terms, **assumed)
        receipt = pay({"order": "o-12", "amount": 10})
        later(ledger)
        looked = ledger.reconcile(receipt.id)
        assert is_unknown(looked)
        facts = evidence(looked)[-1]["facts"]
        assert (facts["positive_control"], facts["negative_control"], facts["earliest"]) == (True, True, None)
        assert facts["missing"] == [absence.NOT_STRONG]
        with pytest.raises(counterfoil.CallerError, match="no further attempt is permitted"):
            ledger.attempt(receipt.id, by="mara")
        assert is_unknown(pay({"order": "o-12", "amount": 10}))
    with start_provider(truth, port=port):
        found = ledger.reconcile(receipt.id)
    assert found.outcome.value == "succeeded"
    assert found.operation.attempts == 1


HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
db.execute("BEGIN IMMEDIATE")
print("ready", flush=True)
sys.stdin.read()
"""


def outage(path) -> Child:
    """Another process keeps the receipts file from being written until it is let go."""
    return Child([sys.executable, "-c", HOLDER, str(path)])


def test_r13_a_claim_that_could_not_be_written_sends_nothing(lab, book, tmp_path, monkeypatch):
    """While the store cannot say that the claim stands, no byte leaves; the same call sends once it can."""
    monkeypatch.setattr("counterfoil.store.opening.BUSY_TIMEOUT_SECONDS", 0.2)
    pay = guard(book(), lab.url)
    pay({"order": "r13-warm", "amount": 1})
    with outage(tmp_path / "receipts.db"):
        with pytest.raises(counterfoil.Unavailable):
            pay({"order": "r13-a", "amount": 10})
        assert lab.effects({"order": "r13-a", "amount": 10}) == []
    receipt = pay({"order": "r13-a", "amount": 10})
    assert (receipt.outcome.value, lab.sends(receipt.id), len(lab.effects(receipt.id))) == ("succeeded", 1, 1)


def test_r13_an_answer_the_store_took_too_late_is_not_asked_for_again(book, tmp_path, monkeypatch):
    """The effect landed and the store was down: the answer waits beside it, and a click in between sends nothing."""
    monkeypatch.setattr("counterfoil.store.opening.BUSY_TIMEOUT_SECONDS", 0.2)
    outages = contextlib.ExitStack()

    def script(peer: Peer) -> None:
        peer.take()
        outages.enter_context(outage(tmp_path / "receipts.db"))
        peer.say(reply(201, done()))

    with outages, Server(script) as server:
        ledger = book()
        pay = guard(ledger, server.url(""))
        with pytest.raises(counterfoil.NotRecorded, match="may have happened; its answer could not be stored"):
            pay({"order": "r13-b", "amount": 10})
        outages.close()
        clicked = pay({"order": "r13-b", "amount": 10})
        assert is_unknown(clicked)
        assert ledger.drain() == 1
        settled = pay({"order": "r13-b", "amount": 10})
    assert (settled.id, settled.outcome.value, settled.expect()) == (clicked.id, "succeeded", done())
    assert len(server.requests) == 1


def test_r13_callers_who_gave_up_on_the_store_do_not_add_up(lab, book, tmp_path):
    """Cancelled while their claims wait for the store, and clicked again: the claim that stands decides, one goes."""
    pay = guard(book(), lab.url)
    pay({"order": "r13-first", "amount": 1})
    payload = {"order": "r13-c", "amount": 10}

    async def clicks():
        with outage(tmp_path / "receipts.db") as holder:
            waiting = [asyncio.create_task(pay.acall(payload)) for _ in range(3)]
            await asyncio.wait(waiting, timeout=0.2)
            assert not any(task.done() for task in waiting)
            for task in waiting[:2]:
                task.cancel()
            holder.let_go()
            answers = await asyncio.gather(*waiting, return_exceptions=True)
        return answers, await pay.acall(payload)

    answers, last = asyncio.run(clicks())
    assert [type(answer) for answer in answers[:2]] == [asyncio.CancelledError] * 2
    assert answers[2].id == last.id
    assert last.outcome.value == "succeeded"
    assert (lab.sends(last.id), len(lab.effects(last.id))) == (1, 1)


def test_r15_a_provider_slower_than_its_client_has_one_payment(lab, book, brief):
    """The client's deadline passes first: the receipt is unknown, not failed, and names the one payment once found."""
    ledger = book()
    pay = guard(ledger, lab.url, brief("lookup", send_deadline_seconds=SHORT))
    lab.fault("slow", seconds=2 * SHORT)
    receipt = pay({"order": "o-15", "amount": 10})
    assert is_unknown(receipt)
    until(lambda: lab.effects(receipt.id), "the payment of the slow provider")
    assert is_unknown(pay({"order": "o-15", "amount": 10}))
    found = ledger.reconcile(receipt.id)
    (effect,) = lab.effects(receipt.id)
    assert (found.outcome.value, found.expect()["id"], lab.sends(receipt.id)) == ("succeeded", effect["id"], 1)


def test_r15_one_key_is_not_good_for_two_amounts(lab, book):
    """The same key with another amount is a conflict with the first, and is not sent."""
    pay = guard(book(), lab.url)
    receipt = pay({"order": "r15-key", "amount": 10})
    with pytest.raises(counterfoil.CallerError, match="the arguments changed"):
        pay({"order": "r15-key", "amount": 11})
    assert (lab.sends(receipt.id), lab.effects({"order": "r15-key", "amount": 11})) == (1, [])


def test_r16_twelve_threads_with_one_intent_send_once(lab, book):
    """A wave of equal calls, and a second wave after it: one is sent, and all twelve hold the same receipt."""
    pay = guard(book(), lab.url)
    payload = {"order": "o-16", "amount": 10}
    lab.fault("slow", seconds=0.3)
    barrier = threading.Barrier(8)

    def click(number):
        if number < barrier.parties:
            barrier.wait(20)
        return pay(payload)

    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(click, range(8))) + [click(number) for number in range(8, 12)]
    assert {receipt.id for receipt in receipts} == {receipts[0].id}
    standings = [receipt.standing.value for receipt in receipts]
    assert (standings.count("new"), standings[8:]) == (1, ["existing"] * 4)
    assert (lab.sends(receipts[0].id), len(lab.effects(receipts[0].id))) == (1, 1)


def test_r16_twelve_tasks_with_one_intent_send_once(lab, book):
    """The same on one event loop."""
    pay = guard(book(), lab.url, "lab.nothing")
    payload = {"order": "r16-tasks", "amount": 10}
    lab.fault("slow", seconds=0.3)

    async def clicks():
        return await asyncio.gather(*(pay.acall(payload) for _ in range(12)))

    receipts = asyncio.run(clicks())
    assert {receipt.id for receipt in receipts} == {receipts[0].id}
    assert [receipt.standing.value for receipt in receipts].count("new") == 1
    assert (lab.sends(payload), len(lab.effects(payload))) == (1, 1)
