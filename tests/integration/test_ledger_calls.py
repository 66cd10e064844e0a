"""Calling what is guarded: one send, one receipt, the same receipt for ever after, and a clear word otherwise."""

from __future__ import annotations

import asyncio
import contextvars
import decimal
import json
import subprocess
import sys
import warnings
from datetime import UTC, date, datetime

import pytest

import counterfoil
from counterfoil.domain.audit import audit
from counterfoil.domain.errors import BadValue, CheckRefused, KeyConflict, NotDeclared, PayloadRefused, ResultGone
from counterfoil.domain.event import EventKind
from counterfoil.domain.payload import content
from counterfoil.domain.words import Dispatch, Outcome, Standing

WHO = {"owner": "payments", "authoriser": "payments-lead"}


@pytest.fixture
def ledger(tmp_path):
    """A ledger of its own for each test; whatever was done with it must verify."""
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:pay", run="run-1") as ledger:
        yield ledger
        assert [found for history in ledger.store.histories() for found in audit(history)] == []


class Sent:
    """A function that counts its calls and does as it is told."""

    def __init__(self, result=None, *raises):
        self.calls, self.result, self.raises = [], result, list(raises)

    def __call__(self, order, amount=10, note=""):
        self.calls.append((order, amount, note, counterfoil.provider_key()))
        if self.raises:
            raise self.raises.pop(0)
        return self.result


def guard(ledger, sent, **declared):
    declared = {"name": "pay", "key": lambda order, amount, note: order, **WHO, **declared}
    return ledger.action(sent, **declared)


# -- the quick start -------------------------------------------------------------------------------------------------

QUICK_START = """
import counterfoil

ledger = counterfoil.open("receipts.db")

@ledger.action(effect="refund", account="acct_shop", owner="payments", authoriser="payments-lead",
               key=lambda order_id, amount: order_id)
def refund(order_id: str, amount: int) -> dict:
    with open("sent", "a") as sent:
        sent.write(counterfoil.provider_key() + "\\n")
    return {"id": "re_1", "amount": amount}

receipt = refund("order-1042", 1500)
print(receipt.outcome)
print(receipt.id, receipt.standing, sorted(receipt.expect().items()))
"""


@pytest.mark.slow
def test_the_quick_start_as_printed(tmp_path):
    """Five lines guard a function; the same call in the next process returns the same receipt and sends nothing."""
    command = [sys.executable, "-W", "error", "-c", QUICK_START]
    runs = [
        subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True) for _ in range(2)
    ]
    first, again = (run.stdout.splitlines() for run in runs)
    assert first[0] == again[0] == "succeeded"
    operation, standing, result = first[1].split(" ", 2)
    assert (standing, result) == ("new", "[('amount', 1500), ('id', 're_1')]")
    assert again[1] == f"{operation} existing {result}"
    assert (tmp_path / "sent").read_text().splitlines() == [operation]
    assert (tmp_path / "receipts.db").stat().st_mode & 0o777 == 0o600


def test_the_same_call_is_answered_in_this_process(ledger):
    """By position, by keyword or by default: one payload, one send, one receipt with its result."""
    sent = Sent({"id": "re_1"})
    pay = guard(ledger, sent)
    receipts = [pay("o-1"), pay(order="o-1"), pay("o-1", 10), pay("o-1", amount=10, note="")]
    assert [r.standing for r in receipts] == [Standing.NEW, *[Standing.EXISTING] * 3]
    assert {r.id for r in receipts} == {sent.calls[0][3]}
    assert [r.expect() for r in receipts] == [{"id": "re_1"}] * 4
    assert len(sent.calls) == 1


@pytest.mark.parametrize(
    "result",
    [
        None, 0, "", "text", 1.5, True, 10**30, [1, [2]], {}, {"a": {"b": None}}, {"$odd": "key"},
        (1, 2), decimal.Decimal("1.50"), datetime(2027, 1, 15, tzinfo=UTC), b"bytes", {"on": date(2027, 1, 15)},
    ],
    ids=repr,
)  # fmt: skip
def test_a_replay_has_the_first_calls_type(ledger, result):
    """Whatever a function returned, the first caller and every later one get one value of one type."""
    pay = guard(ledger, Sent(result))
    first, replay = pay("o-1").expect(), pay("o-1").expect()
    assert (first, type(first)) == (replay, type(replay))


@pytest.mark.parametrize(
    "result",
    [object(), {1, 2}, float("nan"), "\ud800", "x" * 70_000],
    ids=["object", "set", "nan", "surrogate", "huge"],
)
def test_a_result_that_cannot_be_kept_is_its_own_calls_alone(ledger, result):
    """It happened, and says so; who made the call has what came back, and every later one is told that it is gone."""
    pay = guard(ledger, Sent(result))
    first, later = pay("o-1"), pay("o-1")
    assert first.expect() is result
    assert (first.outcome, later.outcome) == (Outcome.SUCCEEDED, Outcome.SUCCEEDED)
    with pytest.raises(ResultGone, match="not kept, because"):
        later.expect()


def test_a_declared_part_of_a_huge_result_is_kept(ledger):
    """What an action declares is kept however large the rest is."""
    pay = guard(ledger, Sent({"id": "re_1", "log": "x" * 1_000_000}), result=["/id"])
    assert [pay("o-1").expect(), pay("o-1").expect()] == [{"id": "re_1"}] * 2


# -- identity --------------------------------------------------------------------------------------------------------


def test_a_key_for_other_arguments_is_a_conflict(ledger):
    """Checked before every other answer, also while the first is unknown; nothing is sent and nothing merged."""
    sent = Sent(None, TimeoutError("lost"))
    pay = guard(ledger, sent)
    assert pay("o-1", 10).outcome is Outcome.UNKNOWN
    with pytest.raises(KeyConflict, match="the arguments changed"):
        pay("o-1", 11)
    assert len(sent.calls) == 1


def test_another_actors_key_is_another_operation(ledger, tmp_path):
    """The same key from another principal is never answered with the first one's result, and is held as one effect."""
    sent = Sent(None, TimeoutError("lost"))
    mine = guard(ledger, sent)("o-1")
    with counterfoil.open(tmp_path / "receipts.db", actor="agent:other") as other:
        theirs = guard(other, Sent({"id": "re_2"}))("o-1")
        assert theirs.id != mine.id
        assert (theirs.standing, theirs.operation.held_by) == (Standing.HELD, mine.id)


def test_an_equal_effect_is_held_until_the_first_is_settled(ledger):
    """The same effect under another key waits, is not sent by the release, and is judged anew when called again."""
    sent = Sent({"id": "re_1"}, TimeoutError("lost"))
    pay = guard(ledger, sent, key=None, occurrence="once")
    lost = pay("o-1")
    held = pay.with_key("other")("o-1")
    assert (held.standing, held.dispatch, held.outcome) == (Standing.HELD, Dispatch.NOT_STARTED, Outcome.UNOBSERVED)
    with pytest.raises(counterfoil.Held, match=lost.id):
        held.expect()
    assert held.for_model()["held_by"] == lost.id
    ledger.resolve(lost.id, "rejected", evidence={"list": "nothing there"}, by="ann")
    assert len(sent.calls) == 1
    released = pay.with_key("other")("o-1")
    assert (released.id, released.standing, released.outcome) == (held.id, Standing.NEW, Outcome.SUCCEEDED)
    assert [call[3] for call in sent.calls] == [lost.id, held.id]


def test_two_routes_to_one_effect_hold_each_other(ledger):
    """Publishing by API and by browser is one effect: the second route waits for the first one's outcome."""
    api = guard(ledger, Sent(None, TimeoutError("lost")), name="publish_api", effect="publish", effect_by=["/order"])
    browser = guard(ledger, Sent(1), name="publish_browser", effect="publish", effect_by=["/order"])
    lost = api("o-1", 10)
    assert browser("o-1", 11).operation.held_by == lost.id
    assert browser("o-2", 11).outcome is Outcome.SUCCEEDED


def test_r37_independent_siblings_run_beside_each_other(ledger):
    """Paying 10 twice for two orders is two sends, also while one is unknown; the same order is one."""
    sent = Sent({"id": 1}, TimeoutError("lost"))

    def pay(amount):
        return sent("x", amount)

    guarded = ledger.action(pay, key=lambda amount: "o-1", siblings="independent", **WHO)
    assert guarded(10).outcome is Outcome.UNKNOWN
    assert guarded.with_key("o-2")(10).outcome is Outcome.SUCCEEDED
    assert guarded(10).standing is Standing.UNRESOLVED
    assert len(sent.calls) == 2


def test_routes_to_an_effect_agree_about_siblings(ledger):
    """One of them alone cannot say that equal effects may run beside each other."""
    guard(ledger, Sent(), effect="pay")
    with pytest.raises(BadValue, match="all routes to an effect must agree"):
        guard(ledger, Sent(), name="pay2", effect="pay", siblings="independent")
    with pytest.raises(BadValue, match="registered already"):
        guard(ledger, Sent())


def test_independent_siblings_need_a_key(ledger):
    """Nothing else tells them apart."""
    with pytest.raises(NotDeclared, match="independent siblings"):
        guard(ledger, Sent(), key=None, siblings="independent")


@pytest.mark.parametrize("occurrence", ["run", "conversation", "day", "once"])
def test_an_occurrence_is_once_within_its_scope(tmp_path, occurrence):
    """Equal calls in one scope are one send; in another scope, or on another day, they are another."""
    now = [1_800_000_000.0]
    from counterfoil.runtime.ledger import Ledger
    from counterfoil.store.sqlite import SqliteStore

    store = SqliteStore(tmp_path / "receipts.db", clock=lambda: now[0])
    with Ledger(store, actor="a", scopes={"run": "r1", "conversation": "c1"}) as ledger:
        sent = Sent(1)
        pay = guard(ledger, sent, key=None, occurrence=occurrence)
        assert pay("o-1").id == pay("o-1").id
        now[0] += 86_400
        with ledger.within(run="r2", conversation="c2"):
            again = pay("o-1")
            assert pay("o-1").id == again.id
        assert len(sent.calls) == (1 if occurrence == "once" else 2)
        assert len({pay("o-1").id, again.id}) == (1 if occurrence in ("once", "day") else 2)


def test_an_undeclared_occurrence_is_asked_for(ledger):
    """With nothing declared the error says what is missing and why it matters; nothing is sent."""
    sent = Sent()
    with pytest.raises(NotDeclared, match="cannot be told from a second, intended one"):
        guard(ledger, sent, key=None)("o-1")
    with pytest.raises(NotDeclared, match="declares no conversation to derive its key within"):
        guard(ledger, sent, name="pay2", key=None, occurrence="conversation")("o-1")
    assert sent.calls == []


# -- what is not sent ------------------------------------------------------------------------------------------------


def test_not_sent_may_be_called_again(ledger):
    """A function that knows that nothing left says so; the same call then dispatches, as the next attempt."""
    sent = Sent({"id": "re_1"}, counterfoil.NotSent("no connection"), counterfoil.NotSent())
    pay = guard(ledger, sent)
    receipts = [pay("o-1"), pay("o-1"), pay("o-1"), pay("o-1")]
    assert [r.dispatch for r in receipts[:2]] == [Dispatch.NOT_STARTED] * 2
    assert receipts[0].permitted == ("call_again", "get_outcome")
    assert [r.standing for r in receipts] == [Standing.NEW] * 3 + [Standing.EXISTING]
    assert (receipts[2].outcome, receipts[2].operation.attempts) == (Outcome.SUCCEEDED, 3)
    assert len({call[3] for call in sent.calls}) == 1


def test_a_rejection_is_final_for_the_same_call(ledger):
    """The effect did not take place, and says so; calling again is answered and sends nothing."""
    sent = Sent(None, counterfoil.Rejected("card declined"))
    pay = guard(ledger, sent)
    for _ in range(2):
        receipt = pay("o-1")
        assert receipt.outcome is Outcome.REJECTED
        with pytest.raises(counterfoil.Rejected):
            receipt.expect()
    assert len(sent.calls) == 1


def test_an_exception_is_unknown_and_shown_to_its_caller_only(ledger):
    """What a function raised is on this receipt, and neither in the store nor on a later one."""
    boom = RuntimeError("token sk_live_1 refused")
    pay = guard(ledger, Sent(None, boom))
    first, later = pay("o-1"), pay("o-1")
    assert (first.outcome, first.error, later.error) == (Outcome.UNKNOWN, boom, None)
    assert b"sk_live_1" not in ledger.store.path.read_bytes()
    with pytest.raises(counterfoil.OutcomeUnknown):
        later.expect()


def test_a_refused_check_sends_nothing(ledger):
    """Refused with its reason; what exists already is answered all the same, and a later yes sends."""
    says = [None]
    sent = Sent({"id": 1})
    pay = guard(ledger, sent, check=lambda order, amount, note: says[0])
    done = pay("o-1")
    for refusal, why in [("order cancelled", "order cancelled"), (False, "refused"), ("", "pay"), (0, "0")]:
        says[0] = refusal
        with pytest.raises(CheckRefused, match=why):
            pay("o-2")
        existing = pay("o-1")
        assert (existing.id, existing.standing, existing.expect()) == (done.id, Standing.EXISTING, {"id": 1})
    assert len(sent.calls) == 1
    says[0] = True
    assert pay("o-2").outcome is Outcome.SUCCEEDED


def test_a_check_that_breaks_sends_nothing(ledger):
    """An exception of the check is the caller's; nothing was claimed and the same call may be made again."""
    broken = [True]

    def check(order, amount, note):
        if broken[0]:
            raise ConnectionError("the order service is away")

    sent = Sent(1)
    pay = guard(ledger, sent, check=check)
    with pytest.raises(ConnectionError):
        pay("o-1")
    assert (sent.calls, ledger.store.operations(limit=1)) == ([], [])
    broken[0] = False
    assert pay("o-1").standing is Standing.NEW


def test_r34_what_differs_immaterially_is_recorded_and_never_sent(ledger):
    """A fresh note on the same order is the same intent: answered, its value kept for a person, and not sent."""
    sent = Sent({"id": 1}, counterfoil.NotSent())
    pay = guard(ledger, sent, immaterial={"/note": "is printed nowhere"})
    receipts = [pay("o-1", note="first"), pay("o-1", note="second"), pay("o-1", note="third"), pay("o-1", note="third")]
    assert len({r.id for r in receipts}) == 1
    assert [call[2] for call in sent.calls] == ["first", "first"]
    events = ledger.history(receipts[0].id).events
    kept = [json.loads(content(e.body))["note"] for e in events if e.kind is EventKind.REPEATED]
    assert kept == ["second", "third"]


@pytest.mark.parametrize("amount", [float("nan"), {1}, object(), "\ud800"], ids=["nan", "set", "object", "surrogate"])
def test_what_has_no_canonical_form_is_refused_before_the_claim(ledger, amount):
    """With its place, and nothing recorded or sent."""
    sent = Sent()
    with pytest.raises(PayloadRefused, match="/amount"):
        guard(ledger, sent)("o-1", amount)
    assert (sent.calls, ledger.store.operations(limit=1)) == ([], [])


@pytest.mark.parametrize("named", [False, True], ids=["by_position", "by_keyword"])
def test_what_is_sent_is_what_was_frozen(ledger, named):
    """A caller that changes its own list after the call was made changes nothing that goes out."""
    seen = []

    async def pay(lines):
        seen.append(lines)

    guarded = ledger.action(pay, key=lambda lines: "o-1", **WHO)

    async def main():
        lines = [{"amount": 10}]
        calling = guarded(lines=lines) if named else guarded(lines)
        lines[0]["amount"] = 999
        lines.append({"amount": 1})
        return await calling

    receipt = asyncio.run(main())
    assert seen == [[{"amount": 10}]]
    assert ledger.history(receipt.id).events[0].body.endswith(b'{"lines":[{"amount":10}]}')


# -- declaring -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "missing"),
    [
        ({}, "no owner and no authoriser"),
        ({"owner": "payments"}, "no authoriser"),
        ({"authoriser": "payments-lead"}, "no owner"),
        (WHO, None),
    ],
)
@pytest.mark.parametrize("way", ["call", "decorator", "http"])
def test_an_action_nobody_decides_on_is_warned_of(ledger, way, who, missing):
    """A first try needs no owner, and is told once, where it declares, what will be missing later."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if way == "call":
            ledger.action(Sent(), name="pay", key="k", **who)
        elif way == "decorator":

            @ledger.action(key="k", **who)
            def pay():
                raise NotImplementedError
        else:
            ledger.http("pay", contract="lab.nothing", base_url="http://127.0.0.1:9", account="a",
                        secrets={"/headers/authorization": "x"}, **who)  # fmt: skip
    assert [str(w.message) for w in caught] == (
        [f"action 'pay' declares {missing}: an unresolved effect will have nobody to decide on it"] if missing else []
    )
    assert {w.filename for w in caught} <= {__file__}


@pytest.mark.parametrize(
    ("declared", "error", "why"),
    [
        ({"longest_delivery": 60.0}, NotDeclared, "longest_delivery_by and longest_delivery_why"),
        ({"longest_delivery": -1.0, "longest_delivery_by": "a", "longest_delivery_why": "b"}, BadValue, "not negative"),
        (
            {"longest_delivery": float("inf"), "longest_delivery_by": "a", "longest_delivery_why": "b"},
            BadValue,
            "finite",
        ),
        ({"occurrence": "week"}, BadValue, "run, conversation, day, once"),
        ({"siblings": "both"}, BadValue, "held, independent"),
        ({"consequence": "big"}, BadValue, "none, some"),
        ({"floats": "round"}, BadValue, "keep, refuse"),
        ({"onwer": "x"}, BadValue, "may declare"),
    ],
)
def test_a_wrong_declaration_is_named(ledger, declared, error, why):
    """What is out of range or misspelt is said where it is declared, with what is meant."""
    with pytest.raises(error, match=why):
        guard(ledger, Sent(), **declared)
    assert ledger.registry == {}


def test_an_assumption_of_zero_seconds_is_one(ledger):
    """R19: zero is a value; it is printed on the receipt like any other."""
    said = {"longest_delivery": 0.0, "longest_delivery_by": "ann", "longest_delivery_why": "the provider is local"}
    receipt = guard(ledger, Sent(1), **said)("o-1")
    record = json.loads(ledger.history(receipt.id).events[0].record)
    assert record["assumptions"]["longest_delivery"] == {"seconds": 0.0, "by": "ann", "why": "the provider is local"}


def test_a_callable_without_a_name_needs_one(ledger):
    """What has no name of its own is named by its declaration."""
    with pytest.raises(NotDeclared, match="name"):
        ledger.action(Sent(), key="k", **WHO)


def test_a_guarded_function_is_still_the_function(ledger):
    """Name, docstring and the function itself stay in reach."""

    def pay(order):
        """Pay an order."""
        return order

    guarded = ledger.action(pay, key=lambda order: order, **WHO)
    assert (guarded.__name__, guarded.__doc__, guarded.function("x")) == ("pay", "Pay an order.", "x")


# -- inside the function ---------------------------------------------------------------------------------------------


def test_the_provider_key_is_there_only_inside(ledger):
    """Every attempt's function sees the operation's own key; outside there is none."""
    sent = Sent(None, counterfoil.NotSent())
    pay = guard(ledger, sent)
    assert {pay("o-1").id, pay("o-1").id} == {call[3] for call in sent.calls}
    with pytest.raises(LookupError, match="inside a guarded function"):
        counterfoil.provider_key()


def test_nested_calls_have_keys_of_their_own(ledger):
    """A guarded function that calls another sees its own key again afterwards."""
    seen = []

    def inner(order):
        seen.append(counterfoil.provider_key())

    def outer(order):
        seen.append(counterfoil.provider_key())
        receipt = guarded_inner(order)
        seen.append(counterfoil.provider_key())
        return receipt.id

    guarded_inner = ledger.action(inner, key=lambda order: order, **WHO)
    receipt = ledger.action(outer, key=lambda order: order, **WHO)("o-1")
    assert seen == [receipt.id, receipt.expect(), receipt.id]


def test_an_async_function_is_awaited(ledger):
    """It is guarded the same way: one send, the same receipt again, its exception unknown, and its own context."""
    trace = contextvars.ContextVar("trace")
    seen = []

    @ledger.action(key=lambda order: order, **WHO)
    async def pay(order):
        seen.append((trace.get(), counterfoil.provider_key()))
        await asyncio.sleep(0)
        if order == "o-2":
            raise TimeoutError
        return {"id": order}

    async def main():
        trace.set("t-1")
        return await pay("o-1"), await pay("o-1"), await pay("o-2")

    first, again, lost = asyncio.run(main())
    assert (first.id, first.expect(), again.standing) == (again.id, {"id": "o-1"}, Standing.EXISTING)
    assert lost.outcome is Outcome.UNKNOWN
    assert seen == [("t-1", first.id), ("t-1", lost.id)]


def test_an_async_check_is_awaited(ledger):
    """The semantic check may be asynchronous too, on a loop and without one."""

    async def check(order):
        await asyncio.sleep(0)
        return "cancelled" if order == "o-2" else None

    @ledger.action(key=lambda order: order, check=check, **WHO)
    async def pay(order):
        return order

    assert asyncio.run(_awaited(pay, "o-1")).outcome is Outcome.SUCCEEDED
    with pytest.raises(CheckRefused, match="cancelled"):
        asyncio.run(_awaited(pay, "o-2"))


async def _awaited(pay, order):
    return await pay(order)


def test_a_blocking_function_keeps_its_callers_context(ledger):
    """What the caller's context holds is there in the function, also where it runs in a thread for an event loop."""
    trace = contextvars.ContextVar("trace")
    seen = []

    def pay(order):
        seen.append(trace.get())
        return order

    guarded = ledger.action(pay, key=lambda order: order, **WHO)

    async def main():
        trace.set("t-1")
        await ledger.acall(guarded.order(("o-2",), {}))

    trace.set("t-0")
    guarded("o-1")
    asyncio.run(main())
    assert seen == ["t-0", "t-1"]
