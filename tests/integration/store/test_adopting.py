"""Adopting a policy: one compare-and-set on the policy that was seen, chained, append-only, and done once."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from counterfoil.domain import policy as model
from counterfoil.domain.command import Adopt, Adopted, Declined
from counterfoil.domain.decision import Decider
from counterfoil.domain.errors import BadValue, InvariantBroken, PolicyInvalid
from counterfoil.domain.event import Decided
from counterfoil.domain.policy import Escalation, Otherwise, Override, Policy, Retention, Rule, When
from counterfoil.domain.policy_chain import audit_policies
from counterfoil.domain.terms import Breaker, Required
from counterfoil.runtime import policies
from counterfoil.store import opening
from counterfoil.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[3]


def named(name):
    """A policy that differs from others by its name."""
    return Policy(name=name, rules=(), otherwise=Otherwise.REFUSE)


def adoption(name, seen, *, record=b""):
    """The command that adopts it."""
    policy = named(name)
    return Adopt(seen=seen, digest=model.digest(policy), policy=model.encode(policy), record=record or name.encode())


def adopt(store, name, seen, *, by="dana", reason="because", replaces=""):
    """The decision as a person takes it."""
    return policies.adopt(
        store, named(name), Decider(by=by, reason=reason, how="test", seen=seen), replaces=replaces
    )  # fmt: skip


def test_before_the_first_there_is_none(store):
    """No row is no policy, and it has the number 0."""
    assert (store.policy(), store.policies()) == (None, [])
    assert policies.in_force(store) == (0, None)


def test_the_last_one_is_in_force(store):
    """Each is numbered after the one before, all of them stay, and each says who, why, what and in whose place."""
    for seen, name in enumerate(["a", "b", "c"]):
        reply = adopt(store, name, seen, replaces=model.digest(named("a")))
        assert (type(reply), reply.n) == (Adopted, seen + 1)
    assert policies.in_force(store) == (3, named("c"))
    rows = store.policies()
    assert [model.decode(row.policy).name for row in rows] == ["a", "b", "c"]
    assert list(audit_policies(rows)) == []
    decided = json.loads(rows[2].record)
    assert decided == {
        "decision": "change_policy", "by": "user:dana", "reason": "because", "how": "test", "seen_seq": 2,
        "facts": {"digest": model.digest(named("c")), "from": model.digest(named("a"))},
    }  # fmt: skip
    assert Decided(**decided).decision == "change_policy"


@pytest.mark.parametrize("seen", [0, 2, 7])
def test_who_saw_another_one_is_told_and_nothing_changes(store, seen):
    """The policy that was judged is the one that must stand."""
    adopt(store, "a", 0)
    reply = adopt(store, "b", seen)
    assert reply == Declined(because=(f"policy 1 is in force, and {seen} was seen",))
    assert policies.in_force(store) == (1, named("a"))


def test_a_command_that_is_run_again_recognises_its_own_write(store):
    """The answer was lost, the decision was not: the same record has the same answer, whatever came after."""
    first = store.write(adoption("a", 0))
    assert store.write(adoption("a", 0)) == first
    store.write(adoption("b", 1))
    assert store.write(adoption("a", 0)) == first
    assert isinstance(store.write(adoption("c", 0)), Declined)
    assert [row.n for row in store.policies()] == [1, 2]


def test_an_agent_decides_nothing(store):
    """Nor does nobody, or without a reason."""
    for who in ({"by": "agent:x"}, {"by": ""}, {"reason": ""}, {"by": "a\nb"}):
        with pytest.raises(BadValue):
            adopt(store, "a", 0, **who)
    assert store.policy() is None


def ruled(approval=None, **when):
    """The one rule of a policy."""
    return {"rules": (Rule(name="r", when=When(**when), approval=approval),)}


NAN, INF = float("nan"), float("inf")
WRONG = [
    *(({"escalation": (Escalation(after_seconds=n),)}, "escalation.0.after_seconds: is ") for n in (NAN, INF, 0, -1)),
    ({"escalation": (Escalation(repeat_seconds=NAN),)}, "escalation.0.repeat_seconds: is nan s; a duration is greater"),
    ({"escalation": (Escalation(after_seconds=10**400),)}, "escalation.0.after_seconds: number out of range"),
    ({"retention": (Retention(sensitivity="s", bodies_seconds=NAN, receipts_seconds=1.0),)}, "retention.0.bodies_se"),
    ({"retention": (Retention(sensitivity="s", receipts_seconds=0.0),)}, "retention.0.receipts_seconds: is 0 s"),
    (ruled(Required(seconds=INF)), "rules.0.approval.seconds: is inf s"),
    (ruled(Required(seconds=1e12)), "rules.0.approval.seconds: is 1e+12 s; a duration is greater than 0, and at most"),
    *((ruled(above=n), f"rules.0.when.above: is {n:g}; a limit is finite") for n in (NAN, INF, -INF, 0)),
    *(({"override": Override(above=n)}, f"override.above: is {n:g}; a limit") for n in (NAN, INF, -1)),
    *(({"breakers": (Breaker(name="b", unknown_exposure_max=n),)}, "breakers.0.unknown_exp") for n in (NAN, INF, 0)),
    (ruled(Required(people=10**40)), "rules.0.approval.people: is 1"),
    (ruled(Required(uses=101)), "rules.0.approval.uses: is 101; at least 1 attempt is wanted, and at most 100"),
    (ruled(Required(attempts=("frist",))), "rules.0.approval.attempts.0: invalid enum value 'frist'"),
    (ruled(Required(approvers=tuple(map(str, range(1001))))), "rules.0.approval.approvers: has 1001 entries"),
    (ruled(actions="refund"), "rules.0.when.actions: expected `array`, got `str`"),
    (ruled(actions=tuple(map(str, range(1001)))), "rules.0.when.actions: has 1001 entries; at most 1000"),
    ({"rules": ruled()["rules"] * 1001}, "rules: has 1001 entries; at most 1000 are wanted"),
    ({"rules": ruled()["rules"] * 2}, "rules.1.name: 'r' stands twice"),
    ({"otherwise": "maybe"}, "otherwise: invalid enum value 'maybe'"),
    ({"name": "a\ud800"}, "name: must be 1 to 200 characters that print"),
    ({"name": object()}, "encoding objects of type object is unsupported"),
]


@pytest.mark.parametrize(("wrong", "said"), WRONG)
def test_a_policy_made_in_code_is_judged_as_a_file_is(store, wrong, said):
    """What would be read back as another policy, or not at all, is never put on record: the field is named."""
    adopt(store, "a", 0)
    made = msgspec.structs.replace(named("b"), **wrong)
    with pytest.raises(PolicyInvalid) as refused:
        policies.adopt(store, made, Decider(by="dana", reason="because", seen=1), replaces="")
    assert str(refused.value).startswith(f"the policy: {said}")
    assert policies.in_force(store) == (1, named("a"))


def test_what_is_adopted_is_what_is_read_back(store):
    """Whole numbers and bare words become what they mean, so that the digest on record is the one it is judged by."""
    made = Policy(name="a", otherwise="allow", **ruled(Required(seconds=60), actions=["refund"], above=5))
    policies.adopt(store, made, Decider(by="dana", reason="because", seen=0), replaces="")
    (kept,) = store.policies()
    assert model.digest(policies.in_force(store)[1]) == kept.digest
    assert list(audit_policies(store.policies())) == []


def test_sixteen_threads_adopt_at_once_and_one_wins(open_sqlite):
    """The others are told which one stands; a refusal is a value, and no batch mate pays for it."""
    store = open_sqlite()
    barrier, replies = threading.Barrier(16), {}

    def run(i):
        barrier.wait()
        replies[i] = adopt(store, f"p{i}", 0)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [i for i, reply in replies.items() if isinstance(reply, Adopted)]
    assert len(winners) == 1
    assert policies.in_force(store) == (1, named(f"p{winners[0]}"))
    assert all("policy 1 is in force" in replies[i].because[0] for i in replies if i not in winners)


ADOPTS = """
import sys
from tests.integration.store.test_adopting import adopt
from counterfoil.store.sqlite import SqliteStore
path, name, times = sys.argv[1:]
store = SqliteStore(path)
print("ready", flush=True)
sys.stdin.readline()
for seen in range(int(times)):
    print(seen, type(adopt(store, f"{name}{seen}", seen)).__name__, flush=True)
store.close()
"""


@pytest.mark.slow
def test_two_processes_adopt_at_once_and_one_wins_each_time(path):
    """Forty rounds on one file: every number has one winner, the other is told, and the chain is whole."""
    rounds = 40
    SqliteStore(path).close()
    command = [sys.executable, "-c", ADOPTS, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    with contextlib.ExitStack() as stack:
        both = [stack.enter_context(subprocess.Popen([*command, name, str(rounds)], **pipes)) for name in "ab"]
        for process in both:
            stack.callback(process.kill)
            assert process.stdout.readline() == "ready\n"
        for process in both:
            process.stdin.write("go\n")
            process.stdin.flush()
        told = [dict(line.split() for line in process.stdout) for process in both]
    won = [{seen for seen, word in words.items() if word == "Adopted"} for words in told]
    assert won[0] & won[1] == set()
    assert {word for words in told for word in words.values()} <= {"Adopted", "Declined"}
    with contextlib.closing(SqliteStore(path)) as store:
        rows = store.policies()
        assert [row.n for row in rows] == list(range(1, len(won[0] | won[1]) + 1))
        assert len(rows) == rounds
        assert list(audit_policies(rows)) == []
        for row in rows:
            name = model.decode(row.policy).name
            assert str(row.n - 1) in won["ab".index(name[0])]


def test_time_never_goes_back_in_the_chain(open_sqlite):
    """Another process's clock may have been ahead: the later policy is not the earlier one."""
    ahead, behind = open_sqlite(clock=lambda: 2_000.0), open_sqlite(clock=lambda: 1_000.0)
    ahead.write(adoption("a", 0))
    assert behind.write(adoption("b", 1)) == Adopted(n=2, at=2_000.0)


@pytest.mark.parametrize("statement", ["DELETE FROM policy", "UPDATE policy SET at = 0"])
def test_what_was_decided_stays(open_sqlite, path, statement):
    """The table is append-only for any writer."""
    open_sqlite().write(adoption("a", 0))
    with contextlib.closing(sqlite3.connect(path)) as db, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        db.execute(statement)


def test_a_policy_that_was_edited_is_not_judged_by(open_sqlite, path):
    """What stands there must be what its digest names: until then nothing is judged, and nothing sent."""
    store = open_sqlite()
    store.write(adoption("a", 0))
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("DROP TRIGGER policy_is_final")
        db.execute("UPDATE policy SET policy = CAST(replace(policy, 'refuse', 'allow') AS BLOB)")
        db.commit()
    with pytest.raises(InvariantBroken, match="policy 1 is not the one its digest names"):
        policies.in_force(store)


def test_a_book_from_before_there_were_policies_is_brought_up_to_date(path):
    """Its receipts stay, it takes a policy, and its events are guarded by the newer trigger."""
    path.touch()
    with contextlib.closing(opening.connect(path, writes=True)) as db:
        opening.migrate(db, path, opening.MIGRATIONS[:1])
    with contextlib.closing(SqliteStore(path)) as store:
        assert store.query("PRAGMA user_version") == [(len(opening.MIGRATIONS),)]
        assert isinstance(store.write(adoption("a", 0)), Adopted)
        (guard,) = store.query("SELECT sql FROM sqlite_master WHERE name = 'event_is_kept'")
        assert "removed" in str(guard[0])
