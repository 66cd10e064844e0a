"""Kinds of misuse that once led to a second effect or a false word, each by its shortest way."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import json

import pytest

import counterfoil
from counterfoil.domain.errors import BadValue, NotRecorded, PayloadRefused, ResultGone, StoreUnsafe, Unavailable
from counterfoil.store.sqlite import STANDS_SECONDS

SAID = {"owner": "o", "authoriser": "x", "account": "acc"}


@pytest.fixture
def ledger(tmp_path):
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:a") as opened:
        yield opened


@pytest.mark.parametrize("inner", [counterfoil.NotSent("breaker open"), counterfoil.Rejected("no funds")])
def test_an_inner_receipt_says_nothing_of_the_outer_call(ledger, inner):
    """What another call's `expect()` raises inside a guarded function leaves the outer effect unknown, sent once."""
    sent = []

    def charge(order):
        raise inner

    guarded = ledger.action(charge, key=lambda order: order, **SAID)

    def notify(order):
        sent.append(order)
        guarded(order).expect()

    outer = ledger.action(notify, key=lambda order: order, **SAID)
    assert [outer("o-1").outcome for _ in range(3)] == ["unknown"] * 3
    assert sent == ["o-1"]


def test_a_callable_whose_call_is_async_is_awaited(ledger):
    """An object with an `async def __call__` runs its body; nothing succeeds that has not run."""
    sent = []

    class Post:
        async def __call__(self, text):
            sent.append(text)

    post = ledger.action(Post(), name="post", key=lambda text: text, **SAID)
    assert asyncio.run(post("hello")).outcome == "succeeded"
    assert sent == ["hello"]


def test_a_body_that_has_not_run_did_not_succeed(ledger):
    """A plain callable that hands out a coroutine is unknown, the mistake named; a generator is refused."""

    async def later(text):
        return text

    post = ledger.action(lambda text: [later(text)][0], name="post", key=lambda text: text, **SAID)
    receipt = post("hello")
    assert receipt.outcome == "unknown"
    assert "async def" in str(receipt.error)

    def stream(text):
        yield text

    with pytest.raises(BadValue, match="generator"):
        ledger.action(stream, key=lambda text: text, **SAID)


@pytest.mark.parametrize("name", ["tenant", "actor"])
@pytest.mark.parametrize("value", [5, "\ud800", "a\nb", None])
def test_a_name_that_could_not_be_read_back_is_refused_at_the_door(tmp_path, name, value):
    """Whose receipts these are is text that prints, or the file is not opened."""
    with pytest.raises(BadValue, match=name):
        counterfoil.open(tmp_path / "receipts.db", **{name: value})


@pytest.mark.parametrize(
    "said",
    [{"owner": 5}, {"destination": 5}, {"effect": 5}, {"account": ""}, {"name": "\ud800"}, {"value": -1}, {"check": 1},
     {"key": 1.5}, {"longest_delivery": "5"}],
    ids=str,
)  # fmt: skip
def test_a_declaration_of_the_wrong_type_is_refused_where_it_is_made(ledger, said):
    """Nothing of an action that could not be stored or called is found out at its first call."""

    def post(text):
        return text

    with pytest.raises(BadValue):
        ledger.action(post, **{"key": lambda text: text, **SAID, **said})


def test_a_call_id_that_cannot_be_stored_is_refused_before_the_claim(ledger):
    """What a model calls its call is text of a bounded size; nothing is sent for another."""
    sent = []

    def post(text):
        sent.append(text)

    guarded = ledger.action(post, key=lambda text: text, **SAID)
    with pytest.raises(PayloadRefused, match="/mentioned"):
        guarded.with_key("k", call_id="\ud800")("x")
    with pytest.raises(BadValue, match="mentioned"):
        guarded.with_key("k", call_id="x" * 10_000)("x")
    assert sent == []


def test_an_answer_that_was_not_recorded_is_no_unavailable_store():
    """Whoever handles `Unavailable` as 'nothing was decided' does not meet an effect that may have happened."""
    assert not issubclass(NotRecorded, Unavailable)


NOT_KEPT = {
    "an object": object(),
    "a set": {1, 2},
    "a naive datetime within": {"id": "re_1", "at": dt.datetime(2026, 1, 1)},  # noqa: DTZ001 - that is the case
    "too large": {"x": "a" * 70_000},
}


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize("case", NOT_KEPT)
def test_who_made_the_call_has_its_result_whatever_can_be_kept(ledger, case, awaited):
    """None never stands for a result: the call has what its function returned, and every later one is told why not."""
    value = NOT_KEPT[case]

    async def apost(text):
        return value

    guarded = ledger.action(apost if awaited else lambda text: value, name="post", key=lambda text: text, **SAID)
    first, later = (asyncio.run(guarded("x")) if awaited else guarded("x") for _ in range(2))
    assert (first.outcome, first.expect(), first.kept) == ("succeeded", value, False)
    assert "only the call that made it has its result" in first.because[0]
    for receipt in (first, later):
        told = receipt.for_model()
        assert ("use_result" in told["permitted"], told["result"]) == (False, "not_kept")
        json.dumps(told)
    with pytest.raises(ResultGone, match="not kept, because"):
        later.expect()
    with pytest.raises(ResultGone, match="not kept, because"):
        ledger.get(first.id).expect()


def test_what_is_kept_is_returned_alike_by_every_call(ledger):
    """A dataclass is a dict and a tuple a list from the first call on, so that nobody's code works only once."""
    values = {"dc": dataclasses.make_dataclass("Made", ["id"])("1"), "tuple": (1, 2), "none": None}
    guarded = ledger.action(lambda key: values[key], name="post", key=lambda key: key, **SAID)
    for key, kept in {"dc": {"id": "1"}, "tuple": [1, 2], "none": None}.items():
        assert [guarded(key).expect(), guarded(key).expect()] == [kept, kept]


@pytest.mark.parametrize("evidence", [{"": "x"}, {"a": ""}, {"a": None}, {"  ": "x"}])
def test_blank_evidence_is_no_finding(ledger, evidence):
    """A finding without anything seen settles nothing."""

    def post(text):
        raise TimeoutError

    receipt = ledger.action(post, key=lambda text: text, **SAID)("x")
    with pytest.raises(BadValue, match="evidence"):
        ledger.resolve(receipt.id, "rejected", evidence=evidence, by="dana")
    assert ledger.get(receipt.id).outcome == "unknown"


def test_nothing_is_sent_from_a_file_that_was_removed(tmp_path):
    """Once the file is gone calls are refused, as soon as the last look at its name has had its time."""
    sent = []
    path = tmp_path / "receipts.db"
    ledger = counterfoil.open(path)
    guarded = ledger.action(lambda text: len(sent) or sent.append(text), name="post", key=lambda text: text, **SAID)
    guarded("first")
    path.unlink()
    ledger.store._stood_at -= STANDS_SECONDS
    with pytest.raises(StoreUnsafe):
        guarded("after")
    assert sent == ["first"]


def test_a_guarded_api_says_how_it_is_called(ledger):
    """Called like a function of its fields, it names the right call; nothing is recorded."""
    pay = ledger.http(
        "pay", contract="lab.nothing", base_url="http://127.0.0.1:9", secrets={"/headers/authorization": lambda: "x"},
        key=lambda order: order, **SAID,
    )  # fmt: skip
    for call in (lambda: pay(order="o-1"), pay, lambda: asyncio.run(pay.acall(order="o-1"))):
        with pytest.raises(TypeError, match=r"pay takes its payload as one object: call it with \(\{"):
            call()
    assert ledger.store.operations(limit=1, before=None) == []


SAYS_NO = [(counterfoil.Rejected, "rejected"), (counterfoil.NotSent, "unobserved")]


@pytest.mark.parametrize(("raised", "outcome"), SAYS_NO)
def test_the_reason_a_function_gives_reaches_its_caller(ledger, raised, outcome):
    """What it raised stands on the receipt of the call that made it."""

    def pay(order):
        raise raised("card declined")

    receipt = ledger.action(pay, key=lambda order: order, **SAID)("o-1")
    assert (receipt.outcome, str(receipt.error)) == (outcome, "card declined")


def test_a_slip_in_a_guarded_function_is_seen(ledger):
    """It is as silent as the wire, so unknown; whoever asks for the result is shown what was raised, as the cause."""

    def pay(order):
        return no_such_name(order)  # noqa: F821 - the slip

    receipt = ledger.action(pay, key=lambda order: order, **SAID)("o-1")
    with pytest.raises(counterfoil.OutcomeUnknown) as raised:
        receipt.expect()
    assert isinstance(raised.value.__cause__, NameError)
    assert raised.value.__cause__ is receipt.error
    with pytest.raises(counterfoil.OutcomeUnknown) as later:
        ledger.get(receipt.id).expect()
    assert later.value.__cause__ is None


def test_a_call_beside_one_under_way_is_told_that_it_is_in_progress(ledger):
    """Two tasks of one key: the second must not read as an effect that may have happened unseen."""

    async def both():
        begun, go = asyncio.Event(), asyncio.Event()

        async def pay(order):
            begun.set()
            await go.wait()
            return {"id": order}

        guarded = ledger.action(pay, key=lambda order: order, **SAID)
        first = asyncio.create_task(guarded("o-1"))
        await begun.wait()
        second = await guarded("o-1")
        go.set()
        return await first, second

    first, second = asyncio.run(both())
    with pytest.raises(counterfoil.OutcomeUnknown, match="in progress"):
        second.expect()
    assert first.expect() == {"id": "o-1"}
