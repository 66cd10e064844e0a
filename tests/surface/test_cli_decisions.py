"""What only a person may do: each decision is shown whole, taken by name, recorded once, and sends nothing."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from counterfoil.cli import leaf

pytestmark = pytest.mark.slow  # each test starts at least one interpreter

SHOP = """
import sys
import counterfoil

ledger = counterfoil.open("receipts.db", actor="agent:test")
said = {"account": "acct", "owner": "desk", "authoriser": "lead", "key": lambda order, **_: order}
said |= {"value": lambda amount, **_: amount}

@ledger.action(immaterial={"/note": "ours, never shown"}, **said)
def refund(order: str, amount: int, to: str = "ann", note: str | None = None) -> dict:
    with open("sent", "a") as sent:
        sent.write(order + "\\n")
    if order.startswith("lost"):
        raise TimeoutError
    return {"id": "re_" + order}

if __name__ == "__main__":
    told = refund(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
    print(told.id, told.permission, told.outcome)
"""
POLICY = """
name: shop
otherwise: allow
rules:
  - {name: large, when: {actions: [refund], above: 100}, approval: {people: 2, approvers: [dana, mara, jo]}}
  - {name: small, when: {actions: [refund], above: 10}, approval: {}}
"""
WHY = ("--reason", "looked at it")


class Counter:
    """A folder with a guarded function, a policy in force, and callers in processes of their own."""

    def __init__(self, commands) -> None:
        self.commands, self.folder = commands, commands.folder
        (self.folder / "shop.py").write_text(SHOP, "utf-8")
        self.adopt(POLICY)

    def __call__(self, verb, operation, *words, by="dana"):
        return self.commands(verb, operation, *words, "--as", by, *WHY)

    def adopt(self, text):
        (self.folder / "policy.yaml").write_text(text, "utf-8")
        said = self.commands("policy", "adopt", "policy.yaml", "--new", "--as", "boss", "--reason", "agreed")
        assert said.code == 0, said

    def refund(self, *words):
        """Call in a process of its own; return what it was told."""
        argv = [sys.executable, "shop.py", *map(str, words)]
        done = subprocess.run(
            argv, cwd=self.folder, env=self.commands.env, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout.split()

    @property
    def sent(self):
        """The orders that really went, from the disk."""
        file = self.folder / "sent"
        return file.read_text("utf-8").split() if file.exists() else []

    def shown(self, operation):
        """The approval that is asked, as a script reads it."""
        return self.commands("show", operation, "--json").json

    def work(self):
        return self.commands("worker", "--once", "--actions", "shop:ledger")


@pytest.fixture
def desk(commands):
    """A shop whose refunds need people."""
    return Counter(commands)


# -- permission --------------------------------------------------------------------------------------------------------


def test_two_people_approve_and_the_worker_sends_it_once(desk):
    """One of two leaves it pending (exit code 1), the second authorizes it, and one attempt leaves for it."""
    operation, permission, outcome = desk.refund("o1", 500)
    assert (permission, outcome, desk.sent) == ("pending", "unobserved", [])
    first = desk("approve", operation, "--json")
    assert (first.code, first.json["permission"], first.json["next"]) == (1, "pending", "approve")
    again = desk("approve", operation, "--json")
    assert (again.code, again.json["error"]["code"]) == (2, "CF-111")
    assert "dana has approved it already" in again.json["error"]["message"]
    second = desk("approve", operation, "--json", by="mara")
    assert (second.code, second.json["permission"], second.json["next"]) == (0, "authorized", "dispatch")
    assert desk.sent == []
    done = desk.work()
    assert (done.code, desk.sent) == (0, ["o1"])
    assert f"{operation}  refund o1  succeeded" in done.out
    assert desk.refund("o1", 500)[2] == "succeeded"
    desk.work()
    assert desk.sent == ["o1"]


def test_the_question_is_shown_whole_before_it_is_answered(desk):
    """Payload, account, destination, digests as far as an eye compares them, rule, people, end and what is left out."""
    operation, *_ = desk.refund("o1", 500)
    asked = desk.shown(operation)["approval"]
    said = desk("approve", operation)
    assert said.out.startswith(f"{operation}  refund o1  planned, permission pending, next: people approve or deny it")
    for words in (
        '  "amount": 500,\n  "note": null,\n  "order": "o1",\n  "to": "ann"\n}',
        "destination    none",
        "asked by       agent:test",
        "rule           large",
        "2 of dana, mara, jo",
        "nobody yet",
        "question ends",
        "/note: ours, never shown",
        "1 attempt that may leave: first, after_not_sent",
        asked["binding"],
        *(leaf.short(asked["bound"][name]) for name in ("fingerprint", "payload_digest", "wire", "policy", "code")),
        f"{leaf.short(asked['bound']['contract'])} (",
    ):
        assert words in said.err, words
    assert "asked anew" not in said.err
    assert "approved by    user:dana" in desk("approve", operation, by="mara").err


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_terminal_shows_the_question_and_asks_for_the_end_of_the_id(desk, columns):
    """At every width; what deceives the eye stands there as its code, named beside it, and is sent as it is."""
    operation, *_ = desk.refund("o1", 50, "p\u0430ypal\u202e")
    env = {"COLUMNS": str(columns), "NO_COLOR": "1"}
    code, shown = desk.commands.in_terminal(
        "approve", operation, env=env, typed=f"{operation[-6:]}\nit is right\n", until="to confirm"
    )
    assert code == 0, shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    page = plain[: plain.index("Type the last")].splitlines()[:-2]
    assert max(map(len, page)) <= min(columns, 120)
    assert "p\\u0430ypal\\u202e" in plain
    assert "\u202e" not in plain
    assert "\u0430" not in plain
    words = " ".join(plain.split())
    assert "! U+0430 CYRILLIC SMALL LETTER A looks like another letter (look-alike)" in words
    assert "! U+202E RIGHT-TO-LEFT OVERRIDE changes the order of what is shown (bidirectional)" in words
    found = desk.shown(operation)["approval"]
    assert [(odd["code"], odd["in"]) for odd in found["suspicious"]] == [("U+0430", "payload"), ("U+202E", "payload")]


def test_neither_agents_nor_whoever_asked_decide(desk):
    """Nobody approves their own request, an agent approves nothing, and neither does a stranger."""
    operation, *_ = desk.refund("o1", 500)
    for by, why in (
        ("agent:test", "an agent decides nothing"),
        ("agent:other", "an agent decides nothing"),
        ("zoe", "user:zoe is not one of dana, mara, jo"),
    ):
        for verb in ("approve", "deny"):
            said = desk(verb, operation, by=by)
            assert (said.code, said.out) == (2, "")
            assert why in said.err
    (desk.folder / "shop.py").write_text(SHOP.replace("agent:test", "dana"), "utf-8")
    own, *_ = desk.refund("o2", 500)
    said = desk("approve", own)
    assert (said.code, "dana asked for it, so somebody else decides" in said.err) == (2, True)
    assert desk.commands("show", operation, "--json").json["permission"] == "pending"


def test_whoever_decides_on_something_older_is_told(desk):
    """While a person reads, somebody else decides: nothing is recorded for the one who was late."""
    operation, *_ = desk.refund("o1", 50)

    def meanwhile():
        assert desk("deny", operation, by="mara").code == 0
        return f"{operation[-6:]}\nfine\n"

    code, shown = desk.commands.in_terminal("approve", operation, typed=meanwhile, until="to confirm")
    assert code == 2
    assert "it changed since it was seen: event 1 was its last, now it is 2" in " ".join(shown.split())
    assert desk.shown(operation)["permission"] == "denied"


@pytest.mark.parametrize("verb", ["deny", "revoke"])
def test_another_end_of_the_id_decides_nothing(desk, verb):
    """A slip of the hand is no decision."""
    operation, *_ = desk.refund("o1", 50)
    code, _ = desk.commands.in_terminal(verb, operation, typed="000000\n", until="to confirm")
    assert code == 2
    said = desk.commands(verb, operation, "--reason", "x")
    assert (said.code, "--as NAME and --reason TEXT" in said.err) == (2, True)
    assert desk.shown(operation)["chain"]["seq"] == 1


def test_nobody_is_asked_what_would_be_refused(desk):
    """At a terminal the reason comes before the question, whatever is decided, and nothing is recorded."""
    (denied, *_), (done, *_), (lost, *_) = desk.refund("o1", 50), desk.refund("o2", 5), desk.refund("lost1", 5)
    assert desk("deny", denied).code == 0
    by_actions = ("--actions", "shop:ledger")
    before = [desk.shown(operation)["chain"]["seq"] for operation in (denied, done, lost)]
    for operation, why, verb, *words in (
        (denied, "permission is denied", "approve"),
        (denied, "permission is denied", "deny"),
        (denied, "permission is denied", "revoke"),
        (done, "the effect took place", "override", *by_actions),
        (done, "nothing holds it", "release", *by_actions),
        (done, "nothing of it is unresolved", "abandon"),
        (done, "nothing of it is unresolved", "wait", "--for", "2h"),
        (done, "nothing of it is unresolved", "investigate", "--channel", "the console"),
        (done, "nothing of it is unresolved", "escalate", "--to", "finance"),
        (done, "desk owns it already", "assign", "desk"),
        (lost, "it is unresolved", "erase"),
        (denied, "nothing of it was attempted", "resolve", "--outcome", "rejected", "--evidence", "a=1", *by_actions),
    ):
        code, shown = desk.commands.in_terminal(verb, operation, *words, typed="no\n", until="to confirm")
        assert (code, why in " ".join(shown.split()), "to confirm" in shown) == (2, True, False), (verb, shown)
    assert [desk.shown(operation)["chain"]["seq"] for operation in (denied, done, lost)] == before


def test_what_was_seen_may_be_named(desk):
    """A script that names another binding than the one that is asked approves nothing."""
    operation, *_ = desk.refund("o1", 50)
    other, *_ = desk.refund("o2", 50)
    seen = desk.shown(operation)["approval"]["binding"]
    said = desk("approve", other, "--bound", seen)
    assert (said.code, "it was shown something else than what is asked now" in said.err) == (2, True)
    assert desk("approve", operation, "--bound", seen).code == 0


def test_a_denial_is_final(desk):
    """It is never sent, whoever approves it later and however often it is asked for."""
    operation, *_ = desk.refund("o1", 50)
    said = desk("deny", operation)
    assert (said.code, said.out) == (0, f"{operation}  refund o1  planned, permission denied; recorded: denied\n")
    assert desk("approve", operation, by="mara").code == 2
    assert desk.refund("o1", 50)[1] == "denied"
    desk.work()
    assert desk.sent == []
    page = desk.commands("show", operation).out
    assert "Nothing was sent: it was denied." in page
    assert "⊗ denied" in page
    assert re.search(r"⊘ call again  blocked\n[ ┊]+it was denied, for good", page)
    assert "denied by user:dana: looked at it" in page


def test_an_approval_is_taken_back(desk):
    """What was approved and not sent is not sent once that was revoked."""
    operation, *_ = desk.refund("o1", 50)
    assert desk("approve", operation).code == 0
    assert "Approved, and not sent yet." in desk.commands("show", operation).out
    assert "approved, not sent" in desk.commands("list").out
    assert desk("revoke", operation, by="mara").code == 0
    desk.work()
    assert desk.refund("o1", 50)[1] == "revoked"
    assert desk.sent == []
    page = desk.commands("show", operation).out
    assert "its permission was taken back" in page
    assert re.search(r"permission +⊙ pending.*⊛ authorized.*⊝ revoked", page)


def test_nobody_answering_is_expiry(desk):
    """It reads as expired before it is recorded, the worker records that, and the same call asks anew."""
    desk.adopt(POLICY.replace("approval: {}}", "approval: {within: 1s}}"))
    operation, *_ = desk.refund("o1", 50)
    assert desk.refund("o1", 50)[1] == "pending"
    while desk.commands("list", "--json").json["permission"] == "pending":
        pass
    entry = desk.commands("list", "--json").json
    assert (entry["permission_recorded"], entry["why"]) == ("pending", "its permission has expired")
    late = desk("approve", operation)
    assert (late.code, "nobody answered in time" in late.err) == (2, True)
    done = desk.work()
    assert f"{operation}  refund o1  planned, permission expired; expired by house: nobody answered" in done.out
    page = desk.commands("show", operation).out
    assert "nobody answered, or nobody sent it, in time." in page
    assert "people are asked anew" in page
    assert desk.refund("o1", 50)[1] == "pending"
    assert "asks 1 person, by rule 'small' anew: it expired" in desk.commands("show", operation).out
    assert desk.sent == []


def test_whoever_approves_is_told_what_holds_it(desk):
    """Another operation of the same effect may have happened already: its id stands in the question."""
    source = SHOP.replace('"key": lambda order, **_: order}', '"key": lambda order, **_: order, "effect_by": ("/to",)}')
    (desk.folder / "shop.py").write_text(source, "utf-8")
    holder, *_ = desk.refund("lost1", 5)
    operation, *_ = desk.refund("o2", 50)
    said = desk("approve", operation)
    assert f"held by        {holder}: the same effect, unresolved; an approval lifts no hold" in said.err
    desk.work()
    assert desk.sent == ["lost1"]
    other, *_ = desk.refund("o3", 50, "zoe")
    assert "held by" not in desk("approve", other).err


# -- exposure ----------------------------------------------------------------------------------------------------------


def test_an_override_is_a_decision_and_the_attempt_another(desk):
    """Without one the basis is refused; with one the next attempt goes, once, and the override is used up."""
    operation, *_ = desk.refund("lost1", 5)
    assert desk.sent == ["lost1"]
    again = ("attempt", operation, "--basis", "operator_override", "--actions", "shop:ledger")
    refused = desk(*again)
    assert (refused.code, "no override is on record" in refused.err) == (2, True)
    assert "no override is decided" in desk.commands("show", operation, "--all").out
    needs = desk("override", operation)
    assert (needs.code, "--actions" in needs.err) == (2, True)
    decided = desk("override", operation, "--actions", "shop:ledger")
    assert (decided.code, desk.sent) == (0, ["lost1"])
    assert "→ send again, operator_override  permitted" in desk.commands("show", operation).out
    desk(*again)
    assert desk.sent == ["lost1", "lost1"]
    assert desk(*again).code == 2
    assert "one more attempt allowed by user:dana: looked at it" in desk.commands("show", operation).out


def test_an_override_that_takes_two_people_says_so(desk):
    """The first alone is exit code 1, and lets nothing go."""
    desk.adopt(POLICY + "override: {people: 2, approvers: [dana, mara]}\n")
    operation, *_ = desk.refund("lost1", 5)
    words = ("override", operation, "--actions", "shop:ledger")
    first = desk(*words)
    assert first.code == 1
    assert "recorded: override 1 of 2; one more person must decide it too" in first.out
    again = ("attempt", operation, "--basis", "operator_override", "--actions", "shop:ledger")
    assert "1 of 2 people have decided it" in desk(*again).err
    assert "more people must decide it: so far user:dana" in desk.commands("show", operation, "--all").out
    assert desk(*words, by="zoe").code == 2
    second = desk(*words, by="mara")
    assert second.code == 0
    assert f"recorded: override 2 of 2: now counterfoil attempt {operation} --basis operator_override" in second.out
    page = desk.commands("show", operation).out
    assert "one more attempt allowed, 1 of 2 people, by user:dana" in page
    assert "one more attempt allowed, 2 of 2 people, by user:mara" in page
    assert f"counterfoil attempt {operation} --basis operator_override" in page
    unnamed = desk("attempt", operation, "--actions", "shop:ledger")
    assert "only --basis operator_override uses it" in unnamed.err
    assert "attempt 2 on basis operator_override" in desk(*again).out
    assert desk.sent == ["lost1", "lost1"]


def test_every_decision_says_what_was_recorded(desk):
    """Until when, to whom, by which way and how many people: whoever decides reads it where they decided it."""
    operation, *_ = desk.refund("lost1", 5)
    for words, said in {
        ("assign", operation, "mara"): "recorded: assigned to mara",
        ("escalate", operation, "--to", "jo"): "recorded: passed up to jo",
        ("investigate", operation, "--channel", "ticket 4711"): "recorded: looked into by dana, ticket 4711, decided",
        ("wait", operation, "--until", "2027-01-01T00:00Z"): "recorded: put off until 2027-01-01 00:00:00 UTC",
    }.items():
        assert said in desk(*words).out
    asked, *_ = desk.refund("o9", 500)
    one = desk("approve", asked)
    assert "recorded: approval 1 of 2; one more person must decide it too" in one.out
    assert desk("approve", asked, "--json", by="mara").json["happened"] == ["recorded: approval 2 of 2"]


def test_a_stale_question_is_not_answered(desk):
    """After a change of the policy nobody approves in vain: the command says so, and so do list, show and queue."""
    operation, *_ = desk.refund("o1", 500)
    desk.adopt(POLICY.replace("people: 2", "people: 1"))
    said = desk("approve", operation)
    assert said.code == 2
    assert "in force no longer" in said.err
    (entry,) = desk.commands("queue", "--json").json["queue"]
    assert (entry["stale"], entry["why"]) == (True, "asked under an earlier policy, which counts no longer")
    assert entry["next"].startswith("ask again: ")
    (line,) = desk.commands("list", "--json").lines
    assert (line["why"], line["next"]) == (entry["why"], "the same call asks people anew")
    page = " ".join(desk.commands("show", operation).out.split())
    assert "approve blocked" in page
    assert f"counterfoil approve {operation}" not in page
    desk.refund("o1", 500)
    assert desk("approve", operation).code == 0


def test_a_released_call_goes_when_its_caller_asks_again_and_never_by_itself(desk):
    """The hold is lifted, nothing leaves for it, and the next call of its caller is sent beside the unknown one."""
    source = SHOP.replace('"key": lambda order, **_: order}', '"key": lambda order, **_: order, "effect_by": ("/to",)}')
    (desk.folder / "shop.py").write_text(source, "utf-8")
    holder, *_ = desk.refund("lost1", 5)
    held, *_ = desk.refund("o2", 5)
    assert desk.sent == ["lost1"]
    page = desk.commands("show", held).out
    assert "→ release  permitted" in page
    assert f"counterfoil release {held}" in page
    assert desk("release", holder, "--actions", "shop:ledger").code == 2
    said = desk("release", held, "--actions", "shop:ledger", "--json")
    assert (said.code, said.json["held_by"]) == (0, "")
    desk.work()
    assert desk.sent == ["lost1"]
    assert f"hold released, beside {holder}, by user:dana" in desk.commands("show", held).out
    assert desk.refund("o2", 5)[2] == "succeeded"
    assert desk.sent == ["lost1", "o2"]


def test_what_is_approved_and_held_is_released_by_as_many_as_it_takes(desk):
    """One of two: exit code 1 and held as before; both: 0. The worker sends it at no time, its caller does."""
    source = SHOP.replace('"key": lambda order, **_: order}', '"key": lambda order, **_: order, "effect_by": ("/to",)}')
    (desk.folder / "shop.py").write_text(source, "utf-8")
    desk.adopt(POLICY + "override: {people: 2}\n")
    holder, *_ = desk.refund("lost1", 5)
    operation, *_ = desk.refund("o2", 50)
    said = desk("approve", operation, "--json")
    assert (said.code, said.json["next"], said.json["held_by"]) == (0, "call", holder)
    desk.work()
    release = ("release", operation, "--actions", "shop:ledger", "--json")
    assert [desk(*release).code, desk(*release).code] == [1, 2]
    assert desk.refund("o2", 50)[1:] == ["authorized", "unobserved"]
    last = desk(*release, by="mara")
    assert (last.code, last.json["held_by"], last.json["next"]) == (0, "", "call")
    assert "nothing holds it" in desk(*release[:-1], by="jo").err
    desk.work()
    assert desk.sent == ["lost1"]
    assert "only its caller sends it" in desk.commands("show", operation).out
    assert desk.refund("o2", 50)[2] == "succeeded"
    assert desk.sent == ["lost1", "o2"]


def test_a_release_needs_no_actions_where_the_policy_speaks_of_no_amount(desk):
    """The receipts say the rest; where amounts matter, only the action says them."""
    source = SHOP.replace('"key": lambda order, **_: order}', '"key": lambda order, **_: order, "effect_by": ("/to",)}')
    (desk.folder / "shop.py").write_text(source, "utf-8")
    desk.refund("lost1", 5)
    held, *_ = desk.refund("o2", 5)
    needs = desk("release", held)
    assert (needs.code, "the policy in force speaks of amounts" in needs.err) == (2, True)
    desk.adopt("name: plain\notherwise: allow\nrules: []\n")
    assert desk("release", held).code == 0


def test_an_abandoned_operation_keeps_its_outcome_and_its_hold(desk):
    """No outcome comes of it, the call is still answered with what stands there, and it is listed."""
    operation, *_ = desk.refund("lost1", 5)
    assert desk("override", operation, "--actions", "shop:ledger").code == 0
    said = desk("abandon", operation, "--json")
    assert said.code == 0
    assert (said.json["outcome"], said.json["unresolved"], said.json["next"]) == ("unknown", True, "rest")
    assert desk.refund("lost1", 5)[2] == "unknown"
    assert desk.sent == ["lost1"]
    page = desk.commands("show", operation).out
    assert "⊡ abandoned" in page
    assert "nobody works on it any more" in page
    assert "→ send again" not in page
    assert "the operation was abandoned" in desk.commands("show", operation, "--all").out
    again = desk("attempt", operation, "--basis", "operator_override", "--actions", "shop:ledger")
    assert (again.code, desk.sent) == (2, ["lost1"])
    (line,) = desk.commands("list", "--unresolved", "--json").lines
    assert line["why"] == "abandoned; what became of it is unknown"
    assert "1 is abandoned" in desk.work().out
    found = ("resolve", operation, "--outcome", "succeeded", "--evidence", "id=re_9", "--actions", "shop:ledger")
    assert desk(*found).code == 0
    assert desk.commands("show", operation, "--json").json["outcome"] == "succeeded"


# -- care --------------------------------------------------------------------------------------------------------------


def test_the_work_on_it_is_recorded_and_changes_no_outcome(desk):
    """Owner, channel, waiting and passing up: each an event with who and why, none of them evidence."""
    operation, *_ = desk.refund("lost1", 5)
    for verb, *words in (
        ("assign", "ann"),
        ("investigate", "--channel", "support, ticket 4711", "--whom", "ann"),
        ("wait", "--for", "2h"),
        ("wait", "--until", "2026-12-31T00:00+01:00"),
        ("escalate", "--to", "finance"),
    ):
        said = desk(verb, operation, *words, "--json")
        assert (said.code, said.json["outcome"]) == (0, "unknown"), (verb, said)
    page = desk.commands("show", operation).out
    assert "owner ann" in page
    for words in (
        "assigned to ann by user:dana: looked at it",
        "looked into by ann, support, ticket 4711, decided by user:dana",
        "put off until 2026-12-30 23:00:00 UTC by user:dana",
        "passed up to finance by user:dana",
    ):
        assert words in page
    assert all(
        f"counterfoil {verb} {operation}" in desk.commands("show", operation, "--all").out
        for verb in ("wait", "investigate", "assign", "escalate", "abandon")
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--for", "soon"), "no duration"),
        (("--for", "400d"), "a year at most"),
        (("--until", "tomorrow"), "no time such as"),
        (("--until", "2020-01-01"), "that time has passed"),
        ((), "one of the arguments"),
    ],
)
def test_a_time_that_is_none_is_refused(desk, words, says):
    """Nothing is recorded for it."""
    operation, *_ = desk.refund("lost1", 5)
    said = desk("wait", operation, *words)
    assert (said.code, said.out) == (2, "")
    assert says in said.err


def test_reads_are_added_where_the_contract_knows_a_look(shop):
    """Where the contract is of the catalogue the receipts alone will do, and the worker looks again."""
    shop.faults({"route": "*", "behaviour": "lose_reply", "times": 1})
    shop.intents(1, "lab.nothing")
    assert shop("run", "lab.jsonl").code == 1
    operation = shop("list", "--json").json["id"]
    named = ("--as", "dana", *WHY, "--channel", "the console")
    said = shop("investigate", operation, *named, "--looks", "3")
    assert (said.code, "its contract knows no look" in said.err) == (2, True)
    assert shop("investigate", operation, *named).code == 0
    shop.faults({"route": "*", "behaviour": "lose_request", "times": 1})
    shop.write("more.jsonl", {"action": "lab.lookup", "key": "k9", "payload": {"n": 9}})
    assert shop("run", "more.jsonl", "--actions", "lab.yaml", "--wait", "0.001").code == 1
    (other,) = [o["id"] for o in shop("list", "--json").lines if o["key"] == "k9"]
    assert shop("investigate", other, *named, "--looks", "3").code == 0


def test_a_finding_is_recorded_on_what_was_seen_and_says_what_it_settles(desk):
    """Evidence that disagrees is settled by a person's finding, and the receipt says that it was."""
    operation, *_ = desk.refund("lost1", 5)
    seen = ("--evidence", "ticket=1", "--actions", "shop:ledger")
    assert desk("resolve", operation, "--outcome", "rejected", *seen).code == 0
    assert desk("resolve", operation, "--outcome", "succeeded", *seen, by="mara").code == 1
    assert desk.shown(operation)["discrepancy"] == "open"

    def meanwhile():
        assert desk("assign", operation, "ann").code == 0
        return f"{operation[-6:]}\nfine\n"

    words = ("resolve", operation, "--outcome", "succeeded", "--evidence", "ticket=2", "--actions", "shop:ledger")
    code, shown = desk.commands.in_terminal(*words, typed=meanwhile, until="to confirm")
    assert code == 2, shown
    assert "and settle the evidence that disagrees" in " ".join(shown.split())
    assert "it changed since it was seen" in " ".join(shown.split())
    assert desk(*words, by="jo").code == 0
    page = desk.commands("show", operation).out
    assert "= settled" in page
    assert "a person's finding settled it" in page


# -- a file of intents, and the worker ---------------------------------------------------------------------------------


def test_a_line_waits_for_people_and_is_sent_once_afterwards(shop):
    """`run` counts it as pending and sends nothing; after the approval the next run sends it, and only once."""
    rules = "name: p\notherwise: allow\nrules: [{name: all, when: {}, approval: {}}]\n"
    (shop.folder / "policy.yaml").write_text(rules, "utf-8")
    assert shop("policy", "adopt", "policy.yaml", "--new", "--as", "boss", "--reason", "agreed").code == 0
    shop.intents(2)
    said = shop("run", "lab.jsonl", "--json")
    assert (said.code, said.json["pending"], shop.sends()) == (1, 2, 0)
    first, second = (entry["id"] for entry in shop("list", "--json").lines)
    assert shop("approve", first, "--as", "dana", *WHY).code == 0
    assert shop.sends() == 0
    said = shop("run", "lab.jsonl", "--json")
    assert (said.json["succeeded"], said.json["pending"], shop.sends()) == (1, 1, 1)
    assert shop("approve", second, "--as", "dana", *WHY).code == 0
    done = shop("worker", "--once", "--actions", "lab.yaml")
    assert (done.code, shop.sends()) == (0, 2)
    said = shop("run", "lab.jsonl", "--json")
    assert (said.code, said.json["succeeded"], said.json["new"], shop.sends()) == (0, 2, 0, 2)


def test_the_worker_says_to_whom_it_was_passed_up(desk):
    """One line for each escalation, with the policy's word for whom."""
    desk.adopt(POLICY + "escalation: [{after: 1s, repeat: 30d, to: payments-oncall}]\n")
    operation, *_ = desk.refund("o1", 50)
    out = ""
    while operation not in out:
        out = desk.work().out
    line = f"{operation}  refund o1  planned, permission pending, next: people approve or deny it; passed up to"
    assert f"{line} payments-oncall by house: unsettled for too long, owned by desk" in out
    assert "nothing is due; 1 waits for an approval" in desk.work().out
