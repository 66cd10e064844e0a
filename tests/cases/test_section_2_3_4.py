"""Field reports 17 to 40 without persons, queues or fences: stuck claims, fingerprints, and keys that change."""

from __future__ import annotations

import dataclasses
import enum
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal

import msgspec
import pytest
from tests.crash.stopping import left_behind
from tests.crash.world import World

import counterfoil
from counterfoil.domain.answer import Replied
from counterfoil.domain.audit import audit
from counterfoil.domain.errors import BadValue, KeyConflict, PayloadRefused
from counterfoil.domain.words import Lifecycle, Outcome, Standing
from counterfoil.runtime.ledger import Ledger
from counterfoil.runtime.worker import Worker
from counterfoil.store.sqlite import SqliteStore

WHO = {"owner": "payments", "authoriser": "payments-lead"}
SECONDS = 60
"""How long a test waits for a child process; a run needs one or two."""
YEARS = 10 * 365 * 86_400.0


class Till:
    """A payment function that counts what it was called with, and ends as it is told."""

    def __init__(self, ledger, *ends, **declared):
        self.calls, self.ends = [], list(ends)

        def pay(order, amount=10, note=""):
            self.calls.append((order, amount, note))
            end = self.ends.pop(0) if self.ends else {"id": f"re_{len(self.calls)}"}
            if isinstance(end, Exception):
                raise end
            return end

        self.pay = ledger.action(pay, **{"key": lambda order, amount, note: order, **WHO, **declared})


@pytest.fixture
def ledger(book):
    """A ledger whose every record must verify in the end."""
    ledger = book()
    yield ledger
    assert [found for history in ledger.store.histories() for found in audit(history)] == []


# -- 2: stuck in progress, lock expiry, clock ------------------------------------------------------------------------


@pytest.mark.parametrize("step", [2, 3])
def test_r17_no_expiry_makes_a_started_send_claimable_again(tmp_path, step):
    """However long after its worker died: unknown, for a person, and the same call sends nothing."""
    world = left_behind(tmp_path / "w", "lab.nothing", step=step, when="before")
    world.now += YEARS
    with world.open() as ledger:
        world.rest(ledger)
        receipt = world.call(ledger)
        assert (receipt.outcome, receipt.lifecycle) == (Outcome.UNKNOWN, Lifecycle.MANUAL_REVIEW)
    assert world.provider.sent == step - 2


def test_r18_an_orphan_is_visible_and_has_a_way_out(tmp_path):
    """A crash in the send never blocks in silence: it is listed, owned, briefed, and a person's finding ends it."""
    world = left_behind(tmp_path / "w", "lab.nothing", step=2, when="after")
    with world.open() as ledger:
        world.rest(ledger)
        (orphan,) = ledger.store.unresolved()
        assert (orphan.owner, orphan.step) == ("payments", "review")
        assert orphan.id in ledger.briefing()
        assert ledger.resolve(orphan.id, "succeeded", evidence={"id": "ef_1"}, by="ann").outcome is Outcome.SUCCEEDED
        assert world.call(ledger).standing is Standing.EXISTING
        assert ledger.briefing() == ""


def test_r18_a_crash_before_the_claim_blocks_nobody(tmp_path):
    """Nothing was written, so nothing has to be freed: the same call is the first."""
    world = left_behind(tmp_path / "w", "lab.nothing", step=1, when="before")
    with world.open() as ledger:
        assert world.call(ledger).standing is Standing.NEW


@pytest.mark.parametrize("amount", [0, 0.0, -0.0, "", False, None, -1, -0.5, [], {}])
def test_r19_nothing_falsy_is_an_absence(ledger, amount):
    """Zero, empty, false and negative are values: frozen, sent and replayed as what they are."""
    till = Till(ledger)
    first, again = till.pay("o-1", amount), till.pay("o-1", amount)
    assert (first.standing, again.standing, len(till.calls)) == (Standing.NEW, Standing.EXISTING, 1)
    assert (till.calls[0][1], type(till.calls[0][1])) == (amount, type(amount))
    with pytest.raises(KeyConflict):
        till.pay("o-1")


@pytest.mark.parametrize("key", [0, -7])
def test_r19_a_key_of_zero_names_an_occurrence(ledger, key):
    """Zero is a key; an empty one is refused instead of falling back to something else."""
    till = Till(ledger, key=lambda order, amount, note: order, occurrence="once")
    assert till.pay(key).operation.key == str(key)
    for nothing in ("", None):
        with pytest.raises(BadValue, match="key"):
            till.pay(nothing)
    assert len(till.calls) == 1


def test_r20_charged_and_then_raised_is_unknown(ledger):
    """The charge went through and the receipt e-mail failed: unknown, the claim is kept, and nothing runs again."""
    till = Till(ledger, ConnectionError("mail server away"))
    receipts = [till.pay("o-1") for _ in range(3)]
    assert [(r.outcome, r.id) for r in receipts] == [(Outcome.UNKNOWN, receipts[0].id)] * 3
    assert len(till.calls) == 1


def test_r20_a_500_is_no_final_answer(tmp_path):
    """A server error is not stored as the outcome: the first look replaces the doubt, not a repeat."""
    world = World(tmp_path / "w", "lab.key")
    with world.open() as ledger:
        send = world.provider.send
        world.provider.send = lambda order, flight: (send(order, flight), Replied(status=500, body=b"<html>"))[1]
        assert world.call(ledger).outcome is Outcome.UNKNOWN
        world.rest(ledger)
        assert world.call(ledger).outcome is Outcome.SUCCEEDED
    assert world.provider.sent == 1


CHILD = """
import sys, time
import counterfoil

folder, offset = sys.argv[1], float(sys.argv[2])
from counterfoil.runtime.ledger import Ledger
from counterfoil.store.sqlite import SqliteStore

def pay(order):
    with open(folder + "/effects", "a") as effects:
        effects.write(counterfoil.provider_key() + "\\n")
    print("sending", flush=True)
    sys.stdin.readline()
    return {"id": "re_1"}

with Ledger(SqliteStore(folder + "/receipts.db", clock=lambda: time.time() + offset), actor="agent:pay") as ledger:
    guarded = ledger.action(pay, key=lambda order: order, owner="payments", authoriser="payments-lead")
    print(guarded("o-1").outcome, flush=True)
"""


class Sender:
    """Another process that is in the middle of a send, until it is told to go on."""

    def __init__(self, folder, offset=0.0):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.child = subprocess.Popen([sys.executable, "-c", CHILD, str(folder), str(offset)], **pipes)
        assert self.child.stdout.readline() == "sending\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()
        self.child.stdin.close()
        self.child.stdout.close()

    def go_on(self):
        """Let it finish; what it says of its outcome."""
        return self.child.communicate("\n", timeout=SECONDS)[0].strip()


def counted(ledger):
    """The children's action as this process would carry it out, and its calls."""
    calls = []

    def pay(order):
        calls.append(order)

    return ledger.action(pay, key=lambda order: order, **WHO), calls


def second_worker(folder, offset):
    """A worker and caller whose clock differs and who send nothing: what they were told, and if all seems quiet."""
    with Ledger(SqliteStore(folder / "receipts.db", clock=lambda: time.time() + offset), actor="agent:pay") as ledger:
        guarded, calls = counted(ledger)
        Worker(ledger).sweep()
        receipt = guarded("o-1")
        quiet = any(json.loads(e.record).get("quiesced") for e in ledger.history(receipt.id).events[1:])
    assert calls == []
    return receipt.outcome, quiet


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0.0, 300.0, 86_400.0, -300.0])
def test_r22_r24_no_clock_takes_a_send_out_of_a_living_hand(tmp_path, offset):
    """A worker whose clock is past every deadline sends nothing while the sender lives; the late answer settles it."""
    with Sender(tmp_path) as sender:
        late = offset > 30.0
        assert second_worker(tmp_path, offset) == (Outcome.UNKNOWN if late else Outcome.UNOBSERVED, False)
        assert sender.go_on() == "succeeded"
    assert second_worker(tmp_path, offset) == (Outcome.SUCCEEDED, True)
    assert len((tmp_path / "effects").read_text().split()) == 1


@pytest.mark.slow
def test_r23_a_paused_sender_is_not_replaced(tmp_path):
    """Stopped in its send past every deadline it still holds its claim; woken up, its answer is accepted."""
    with Sender(tmp_path) as sender:
        os.kill(sender.child.pid, signal.SIGSTOP)
        try:
            assert second_worker(tmp_path, 86_400.0) == (Outcome.UNKNOWN, False)
        finally:
            os.kill(sender.child.pid, signal.SIGCONT)
        assert sender.go_on() == "succeeded"
    assert second_worker(tmp_path, 86_400.0) == (Outcome.SUCCEEDED, True)
    assert len((tmp_path / "effects").read_text().split()) == 1


def test_r24_a_clock_that_steps_back_shortens_nothing(tmp_path):
    """The store's time never runs backwards: deadlines, due looks and ages stay what they were."""
    world = World(tmp_path / "w", "lab.key", "reply_lost")
    with world.open() as ledger:
        lost = world.call(ledger)
        seen = ledger.store.now()
        world.now -= 86_400.0
        assert seen <= ledger.store.now() < seen + SECONDS  # time goes on from where it was
        (operation,) = ledger.store.unresolved()
        assert (operation.due_at, operation.deadline) == (lost.operation.due_at, lost.operation.deadline)
        assert ledger.get(lost.id).outcome is Outcome.UNKNOWN
    with world.open() as ledger:
        assert seen <= ledger.store.now() < seen + SECONDS


def test_r22_tokens_and_numbers_never_go_back(ledger, book):
    """Attempts are numbered densely and no token is used twice, over any number of processes."""
    tokens = []
    for number in range(1, 5):
        ledger = book()
        till = Till(ledger, counterfoil.NotSent())
        receipt = till.pay("o-1")
        begun = [json.loads(e.record)["attempt"] for e in ledger.history(receipt.id).events if e.kind.value == "begun"]
        assert [b["number"] for b in begun] == list(range(1, number + 1))
        tokens = [b["token"] for b in begun]
    assert len(set(tokens)) == 4


SIGNALLED = """
import os, signal, sys
import counterfoil
from counterfoil.runtime.executor import Executor

folder, signum, step, when = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
number, perform = iter(range(99)), Executor.perform

def signalled(self, effect):
    mine = next(number)
    if (mine, when) == (step, "before"):
        os.kill(os.getpid(), signum)
    reply = perform(self, effect)
    if (mine, when) == (step, "after"):
        os.kill(os.getpid(), signum)
    return reply

Executor.perform = signalled

def pay(order):
    with open(folder + "/effects", "a") as effects:
        effects.write("one\\n")
    return {"id": "re_1"}

with counterfoil.open(folder + "/receipts.db", actor="agent:pay") as ledger:
    ledger.action(pay, key=lambda order: order, owner="payments", authoriser="payments-lead")("o-1")
"""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", [0, 1, 2])
def test_r25_every_signal_leaves_a_safe_state(tmp_path, step, when):
    """Terminated, interrupted or killed at each of six points: one effect at most, true outcomes, nothing claimable."""
    folders = {signum: tmp_path / signum.name for signum in SIGNALS}
    children = {}
    for signum, folder in folders.items():
        folder.mkdir()
        command = [sys.executable, "-c", SIGNALLED, str(folder), str(int(signum)), str(step), when]
        children[signum] = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    assert all(child.wait(SECONDS) != 0 for child in children.values())
    for signum, folder in folders.items():
        effects = folder / "effects"
        happened = len(effects.read_text().split()) if effects.exists() else 0
        with counterfoil.open(folder / "receipts.db", actor="agent:pay") as ledger:
            guarded, calls = counted(ledger)
            Worker(ledger).sweep()
            receipt = guarded("o-1")
            assert happened + len(calls) <= 1
            # Only Ctrl+C lets the process say what it knows: before the send it still knows that nothing left.
            claimed = (step, when) != (0, "before")
            assert calls == [] or not claimed or (signum == signal.SIGINT and not happened)
            if receipt.outcome is Outcome.SUCCEEDED:
                assert happened + len(calls) == 1
            else:
                assert (receipt.outcome, receipt.operation.exposure) == (Outcome.UNKNOWN, 1)
            assert [found for history in ledger.store.histories() for found in audit(history)] == []


# -- 3: fingerprints -------------------------------------------------------------------------------------------------


def test_r26_the_order_of_keys_is_nothing_and_a_text_stays_a_text(ledger):
    """Equal objects are one intent at any depth; JSON inside a text is text, and another text is another intent."""
    till = Till(ledger)
    one = till.pay("o-1", {"a": 1, "b": {"c": 2, "d": 3}})
    assert till.pay("o-1", {"b": {"d": 3, "c": 2}, "a": 1}).id == one.id
    till.pay("o-2", '{"a":1,"b":2}')
    for text in ('{"b":2,"a":1}', '{"a": 1, "b": 2}'):
        with pytest.raises(KeyConflict):
            till.pay("o-2", text)
    assert till.calls[1][1] == '{"a":1,"b":2}'


@pytest.mark.parametrize("big", [2**53, 2**60, 2**68, 10**40])
def test_r27_integers_are_exact(ledger, big):
    """Neighbours beyond a double's reach are two intents, and what is sent is the integer."""
    till = Till(ledger)
    till.pay("o-1", big)
    with pytest.raises(KeyConflict):
        till.pay("o-1", big + 1)
    assert till.pay("o-1", big).standing is Standing.EXISTING
    assert till.calls[0][1] == big


R28 = [5, 5.0, "5", Decimal("5.00"), Decimal(5), -0.0, 0.0, 1e-7, 1e20, 10**20]
R29 = [1, True, 0, False, None, "", "1", Decimal(1), "None", uuid.UUID(int=1), str(uuid.UUID(int=1)), b"a", "a"]


@pytest.mark.parametrize("values", [R28, R29], ids=["numbers", "types"])
def test_r28_r29_distinct_values_are_distinct_intents(ledger, values):
    """No two of them collide, each replays as itself, and each is sent as the very value that was given."""
    till = Till(ledger)
    for place, value in enumerate(values):
        till.pay(f"o-{place}", value)
        assert till.pay(f"o-{place}", value).standing is Standing.EXISTING
        for other in values[:place] + values[place + 1 :]:
            with pytest.raises(KeyConflict):
                till.pay(f"o-{place}", other)
    assert [(call[1], type(call[1])) for call in till.calls] == [(value, type(value)) for value in values]


def test_r28_floats_are_refused_where_money_stands(ledger):
    """Minor units or decimal text; a float is refused with its place, before anything is claimed."""
    till = Till(ledger, floats="refuse")
    with pytest.raises(PayloadRefused, match="/amount"):
        till.pay("o-1", 5.0)
    assert till.calls == ledger.store.operations(limit=1) == []
    assert till.pay("o-1", Decimal("5.00")).outcome is Outcome.SUCCEEDED


def test_r29_a_default_left_out_is_the_default(ledger):
    """Bound first: leaving an argument to its default and writing it out are one call."""
    till = Till(ledger)
    ids = {till.pay("o-1").id, till.pay("o-1", 10).id, till.pay(order="o-1", amount=10, note="").id}
    assert (len(ids), len(till.calls)) == (1, 1)


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Line:
    sku: str
    when: date = date(2027, 1, 15)


class Basket(msgspec.Struct):
    lines: list[Line]
    id: uuid.UUID = uuid.UUID(int=7)
    at: datetime = datetime(2027, 1, 15, 12, tzinfo=UTC)
    colour: Colour = Colour.RED


def test_r30_a_model_and_its_plain_form_are_one_intent(ledger):
    """A structure with ids, dates and enums has the print of the equal plain dict, and is handed over as it is."""
    till = Till(ledger)
    basket = Basket(lines=[Line(sku="a")])
    plain = {
        "lines": [{"sku": "a", "when": date(2027, 1, 15)}], "id": uuid.UUID(int=7),
        "at": datetime(2027, 1, 15, 12, tzinfo=UTC), "colour": "red",
    }  # fmt: skip
    assert till.pay("o-1", basket).id == till.pay("o-1", plain).id
    assert [call[1] for call in till.calls] == [basket]


class Hidden:
    """A secret as some libraries wrap it."""

    def __repr__(self):
        return "Hidden('**********')"

    def reveal(self):
        return "sk_live_1"


@pytest.mark.parametrize(
    "odd",
    [Hidden(), object(), datetime(2027, 1, 15, tzinfo=UTC).replace(tzinfo=None), iter([]), 1j, range(3)],
    ids=lambda v: type(v).__name__,
)
def test_r30_what_has_no_form_is_refused_before_the_claim(ledger, odd):
    """Clearly, with its place; neither a wrapped secret nor its mask comes to rest anywhere."""
    till = Till(ledger)
    with pytest.raises(PayloadRefused, match="/amount") as caught:
        till.pay("o-1", {"deep": [odd]}["deep"][0])
    assert "sk_live" not in str(caught.value)
    assert till.calls == ledger.store.operations(limit=1) == []


def test_r31_unset_is_not_null(ledger):
    """Skipping a field and wiping it are two intents; what is sent is what was given."""
    till = Till(ledger)
    till.pay("o-1", {"name": "x"})
    with pytest.raises(KeyConflict):
        till.pay("o-1", {"name": "x", "due": None})
    till.pay("o-2", {"name": "x", "due": None})
    assert [call[1] for call in till.calls] == [{"name": "x"}, {"name": "x", "due": None}]


@pytest.mark.parametrize("bad", ["\ud800", "a\udfffb", float("nan"), float("inf"), float("-inf")])
def test_r32_no_text_and_no_number_is_mended(ledger, bad):
    """A lone surrogate, NaN and the infinities are refused before the claim, wherever they stand."""
    till = Till(ledger)
    for payload in (bad, [bad], {"x": {"y": bad}}):
        with pytest.raises(PayloadRefused):
            till.pay("o-1", payload)
    with pytest.raises((PayloadRefused, BadValue)):
        till.pay("o-\ud800")
    assert till.calls == ledger.store.operations(limit=1) == []


def test_r32_a_zero_byte_is_a_character(ledger):
    """It is frozen, sent and read back; nothing later stumbles over it."""
    till = Till(ledger)
    receipt = till.pay("o-1", "a\x00b\u2028")
    assert till.calls[0][1] == "a\x00b\u2028"
    assert "o-1" in ledger.briefing() or receipt.outcome is Outcome.SUCCEEDED
    assert till.pay("o-1", "a\x00b\u2028").standing is Standing.EXISTING


def test_r33_a_print_names_its_rule(ledger):
    """Keys are ordered by one rule whatever they are made of, and every print says which form it is of."""
    till = Till(ledger)
    one = till.pay("o-1", {"\ue000": 1, "\U0001f600": 2})
    assert till.pay("o-1", {"\U0001f600": 2, "\ue000": 1}).id == one.id
    assert one.operation.fingerprint.startswith("cf1:")


PRINTS = """
import counterfoil, sys
with counterfoil.open(sys.argv[1], actor="a") as ledger:
    guarded = ledger.action(lambda **fields: None, name="pay", key=lambda fields: "k", owner="o", authoriser="a")
    order = guarded.order((), {"b": 2, "a": {"z": "ü", "y": [1, 2.5, None, True]}, "c": "x"})
    print(order.intent.fingerprint, order.intent.effect, order.action.code)
"""


@pytest.mark.slow
def test_r35_every_process_makes_the_same_print(tmp_path):
    """Fingerprint, effect identity and code digest are the same under any hash seed; a set is refused."""
    seen = set()
    for seed in ("0", "1", "2"):
        command = [sys.executable, "-c", PRINTS, str(tmp_path / "receipts.db")]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        seen.add(
            subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
        )
    assert len(seen) == 1
    with counterfoil.open(tmp_path / "receipts.db", actor="a") as ledger:
        for values in ({1, 2}, frozenset("ab")):
            with pytest.raises(PayloadRefused, match="set"):
                Till(ledger, name=f"pay{len(ledger.registry)}").pay("o-1", values)


# -- 4: keys that change ---------------------------------------------------------------------------------------------


def test_r36_a_fresh_key_of_the_model_is_no_fresh_intent(ledger):
    """The tool asks the model for a key and it makes a new one: the effect is the same and waits for a person."""
    calls = []

    def charge(customer, amount, idempotency_key):
        calls.append(idempotency_key)
        raise TimeoutError

    tool = ledger.action(
        charge, occurrence="once", immaterial={"/idempotency_key": "made up by the model"}, **WHO
    ).as_tool()
    first = tool(customer="c-1", amount=10, idempotency_key="K1")
    again = tool(customer="c-1", amount=10, idempotency_key="K2")
    assert (first["operation"], again["retry"], again["recovery_action"]) == (
        again["operation"],
        "blocked",
        "no_replay",
    )
    assert calls == ["K1"]


def test_r37_call_ids_are_no_keys(ledger):
    """Three tool calls with the same arguments are one intent; two that are meant are two, by their business keys."""
    till = Till(ledger, key=None, occurrence="run")
    with ledger.within(run="r-1"):
        ids = {till.pay("c-1", 10).id for _ in ("call_1", "call_2", "call_3")}
    assert (len(ids), len(till.calls)) == (1, 1)
    meant = {till.pay.with_key(order)("c-1", 10).id for order in ("o-1", "o-2")}
    assert (len(meant), len(till.calls)) == (2, 3)


def replying(world, reply):
    """The provider does it, and says something else."""
    send = world.provider.send
    world.provider.send = lambda order, flight: (send(order, flight), reply)[1]


@pytest.mark.parametrize(
    ("status", "error", "seconds", "means"),
    [(422, "key_reused", 0.0, "key_conflict"), (409, "key_in_use", 7.0, "in_flight")],
    ids=["r38", "r39"],
)
def test_r38_r39_a_busy_or_bound_key_means_an_earlier_request(tmp_path, status, error, seconds, means):
    """Never rejected: somebody's request with that key exists or runs. It is looked at, when the provider says so."""
    world = World(tmp_path / "w", "lab.key")
    headers = (("retry-after", "7"),) if seconds else ()
    replying(world, Replied(status=status, headers=headers, body=json.dumps({"error": error}).encode()))
    with world.open() as ledger:
        doubtful = world.call(ledger)
        assert doubtful.outcome is Outcome.UNKNOWN
        assert json.loads(ledger.history(doubtful.id).events[-1].record)["reason"] == means
        assert doubtful.operation.step == "look"
        world.rest(ledger)
        found = ledger.get(doubtful.id)
        assert (found.outcome, found.operation.settled_by) == (Outcome.SUCCEEDED, "succeeded:look")
    assert world.provider.sent == 1


def test_r40_the_caller_names_the_occurrence(ledger):
    """Two equal payments on one day under two order ids are two sends; the same order id is one."""
    till = Till(ledger, key=None, occurrence="day", siblings="held")
    ids = {till.pay.with_key(order)("customer", 10).id for order in ("o-1", "o-2", "o-1")}
    assert (len(ids), len(till.calls)) == (2, 2)
    assert till.pay("customer", 10).id == till.pay("customer", 10).id
    assert len(till.calls) == 3
