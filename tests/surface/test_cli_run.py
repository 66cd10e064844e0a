"""`counterfoil run`: each intent at most once, wherever it is killed; what is unknown is settled by looking."""

from __future__ import annotations

import base64
import shutil
import signal
import sqlite3
import sys
from pathlib import Path

import pytest

from counterfoil.cli.run import CONCURRENCY
from counterfoil.domain.event import EventKind, evidence_of
from counterfoil.lab.processes import Child, start_provider

LOSES_EVERY_THIRD = {"route": "*", "behaviour": "lose_reply", "every": 3}
SLOW = {"route": "*", "behaviour": "slow", "seconds": 0.05}

pytestmark = pytest.mark.slow  # each test starts a provider and at least one interpreter


def observed(folder):
    """Every piece of evidence in a store."""
    from counterfoil.bootstrap import open_ledger

    with open_ledger(folder / "receipts.db") as ledger:
        return [
            evidence_of(event)
            for history in ledger.store.histories()
            for event in history.events
            if event.kind is EventKind.OBSERVED
        ]


def test_each_line_is_sent_once_and_a_second_run_sends_nothing(shop):
    """A finished file that is run again returns its receipts."""
    shop.intents(12)
    first, second = shop("run", "lab.jsonl"), shop("run", "lab.jsonl", "--json")
    assert (first.code, second.code) == (0, 0)
    assert second.json["succeeded"] == second.json["operations"] == 12
    assert second.json["new"] == 0
    assert sorted(shop.effects()) == list(range(12))
    assert shop.sends() == 12


@pytest.mark.parametrize("action", ["lab.lookup", "lab.key"])
def test_lost_replies_are_settled_by_looking(shop, action):
    """The run is the worker of its file: it ends with nothing unknown, and with one effect for each line."""
    shop.faults(LOSES_EVERY_THIRD)
    shop.intents(12, action)
    said = shop("run", "lab.jsonl", "--json")
    assert (said.code, said.json["succeeded"], said.json["unresolved"]) == (0, 12, 0)
    assert sorted(shop.effects()) == list(range(12))
    assert shop.sends() == 12


def test_what_cannot_be_looked_for_is_left_to_a_person(shop):
    """Where the contract knows no look, a lost reply is never called anything but unresolved, nor sent again."""
    shop.faults(LOSES_EVERY_THIRD)
    shop.intents(6, "lab.nothing")
    said = [shop("run", "lab.jsonl", "--json") for _ in range(2)]
    assert [s.code for s in said] == [1, 1]
    assert [(s.json["succeeded"], s.json["manual_review"]) for s in said] == [(4, 2), (4, 2)]
    assert shop.sends() == 6


def killed_twice(shop):
    """Kill a run twice in its middle, then let it finish."""
    shop.faults(LOSES_EVERY_THIRD, SLOW)
    for sent in (6, 16):
        process = shop.start("run", "lab.jsonl")
        shop.until_sent(sent)
        process.kill()
        process.communicate(timeout=30)
        assert process.returncode == -signal.SIGKILL
    return shop("run", "lab.jsonl", "--json")


def test_killed_in_the_middle_and_run_again(shop):
    """SIGKILL anywhere loses nothing and repeats nothing: the next run recovers what the dead one began."""
    shop.intents(40, "lab.key")
    said = killed_twice(shop)
    assert (said.code, said.json["succeeded"]) == (0, 40)
    assert sorted(shop.effects()) == list(range(40))


def test_killed_before_a_send_without_a_key(shop):
    """Where a repeat would be a second effect, a send that was killed on its way is a person's and never repeated."""
    shop.intents(40)
    said = killed_twice(shop)
    counted = said.json
    assert counted["succeeded"] + counted["manual_review"] == counted["operations"] == 40
    assert said.code == (1 if counted["manual_review"] else 0)
    effects = shop.effects()
    assert len(effects) == len(set(effects)) == counted["succeeded"]


EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_example_against_a_real_calendar(commands):
    """Thirty appointments, every third reply lost, one SIGKILL: each event stands once, each receipt is settled."""
    folder = commands.folder / "calendar"
    server = [
        sys.executable,
        str(EXAMPLES / "calendar_server.py"),
        "--parent-pipe",
        "--port",
        "0",
        "--folder",
        str(folder),
    ]
    commands.env["CALENDAR_AUTH"] = "Basic " + base64.b64encode(b"demo:demo-password").decode()
    with Child(server) as child:
        actions = (EXAMPLES / "appointments.yaml").read_text("utf-8").replace("http://127.0.0.1:5233", child.ready)
        (commands.folder / "appointments.yaml").write_text(actions, "utf-8")
        shutil.copy(EXAMPLES / "appointments.jsonl", commands.folder)
        process = commands.start("run", "appointments.jsonl")
        while process.poll() is None and (folder / "wire.jsonl").read_bytes().count(b"PUT") < 9:
            pass  # the file is the condition; it is written before the answer
        process.kill()
        process.communicate(timeout=30)
        said = commands("run", "appointments.jsonl", "--json")
    events = [p for p in folder.rglob("appointments/*.ics") if ".Radicale.cache" not in p.parts]
    # What was killed between its claim and its first byte is not in the calendar, and is a person's to decide.
    assert said.json["succeeded"] == len(events)
    assert said.json["succeeded"] + said.json["manual_review"] == said.json["operations"] == 30
    assert said.json["manual_review"] <= CONCURRENCY


def test_two_runs_of_one_file_at_once(shop):
    """Two processes on one file share it: one effect for each line, and both end with all of it settled."""
    shop.faults(LOSES_EVERY_THIRD, SLOW)
    shop.intents(24)
    both = [shop.start("run", "lab.jsonl", "--json") for _ in range(2)]
    said = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sorted(shop.effects()) == list(range(24))
    assert shop.sends() == 24


def test_sigterm_records_what_is_known_of_a_send_under_way(shop):
    """A send cut short by SIGTERM is recorded as unknown with its reason; the next run settles it by a look."""
    shop.faults({"route": "*", "behaviour": "hang", "nth": [3]})
    shop.intents(6)
    process = shop.start("run", "lab.jsonl", "--concurrency", "1", "--json")
    shop.until_sent(3)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 143, err
    assert '"stopped": true' in out
    assert "interrupted_terminated" in {evidence.reason for evidence in observed(shop.folder)}
    shop.faults()
    said = shop("run", "lab.jsonl", "--json")
    assert (said.code, said.json["succeeded"]) == (0, 6)
    assert sorted(shop.effects()) == list(range(6))


def test_ctrl_c_lets_the_other_threads_come_home(shop):
    """Calls that other threads have under way are awaited and recorded, and nothing new is begun."""
    shop.faults({"route": "*", "behaviour": "slow", "seconds": 1.0})
    shop.intents(40)
    process = shop.start("run", "lab.jsonl")
    shop.until_sent(4)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "stopping: waiting for" in err
    assert "run it again" in err
    answered = [evidence for evidence in observed(shop.folder) if evidence.finding == "succeeded"]
    assert len(answered) == shop.sends() - 1  # the main thread's own was interrupted
    assert shop.sends() < 40


def test_a_second_signal_leaves_at_once(shop):
    """Whoever signals twice does not wait for a provider that hangs; what is left behind is recovered later."""
    shop.faults({"route": "*", "behaviour": "hang", "times": 4})
    shop.intents(8)
    process = shop.start("run", "lab.jsonl")
    shop.until_sent(4)
    process.send_signal(signal.SIGTERM)
    assert "stopping" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=6)  # the grace for one signal is longer
    assert process.returncode == 143
    assert "had not come back" in err
    said = shop("run", "lab.jsonl", "--json")
    assert (said.code, said.json["succeeded"]) == (0, 8)
    assert sorted(shop.effects()) == list(range(8))


def test_a_held_line_is_asked_again_when_its_holder_is_settled(shop):
    """Another occurrence of an unknown effect waits for the look, and only then is sent."""
    shop.faults({"route": "*", "behaviour": "lose_reply", "times": 1})
    intent = {"action": "lab.lookup", "payload": {"n": 7}}
    shop.write("lab.jsonl", {**intent, "key": "a"}, {**intent, "key": "b"}, {**intent, "key": "c"})
    said = shop("run", "lab.jsonl", "--json")
    assert (said.code, said.json["succeeded"], said.json["held"]) == (0, 3, 0)
    assert shop.effects() == [7, 7, 7]


def test_a_line_held_by_what_only_a_person_can_settle_stays_held(shop):
    """Nothing is waited for that no automatic step will end."""
    shop.faults({"route": "*", "behaviour": "lose_reply", "times": 1})
    intent = {"action": "lab.nothing", "payload": {"n": 7}}
    shop.write("lab.jsonl", {**intent, "key": "a"}, {**intent, "key": "b"})
    said = shop("run", "lab.jsonl", "--json", "--concurrency", "1")
    assert (said.code, said.json["manual_review"], said.json["held"]) == (1, 1, 1)
    assert shop.sends() == 1


def test_the_first_of_two_lines_with_one_key_wins(commands):
    """Equal keys are asked in the order of the file, however long the first takes; another payload is refused."""
    (commands.folder / "book.py").write_text(
        "import threading, counterfoil\n"
        "ledger = counterfoil.open('receipts.db')\n"
        "def check(order, n):\n"
        "    return None if n == 2 else threading.Event().wait(0.5) or None\n"
        "@ledger.action(owner='o', authoriser='a', check=check)\n"
        "def book(order, n):\n"
        "    print(order, n, file=open('sent', 'a'))\n",
        "utf-8",
    )
    first = {"action": "book", "key": "a", "payload": {"order": "a", "n": 1}}
    commands.write("a.jsonl", first, {**first, "payload": {"order": "a", "n": 2}}, first)
    said = commands("run", "a.jsonl", "--actions", "book:ledger", "--json", "--concurrency", "8")
    assert (said.code, said.json["operations"], said.json["succeeded"]) == (2, 1, 1)
    assert [(error["line"], error["code"]) for error in said.json["errors"]] == [(2, "CF-102")]
    assert (commands.folder / "sent").read_text("utf-8") == "a 1\n"


BROKEN = [
    ("{", "CF-103", "is not JSON"),
    ('{"action":"lab.lookup","key":"x","payload":{"a":1,"a":2}}', "CF-103", "more than once"),
    ('{"action":"lab.lookup","key":"x","key":"y","payload":{}}', "CF-103", "more than once"),
    ('{"action":"lab.lookup","key":"x","payload":NaN}', "CF-103", "NaN"),
    ('{"action":"lab.lookup","key":"x","payload":{},"pay":1}', "CF-109", "unknown field 'pay'"),
    ('{"action":"lab.lookup","key":"x"}', "CF-109", "no 'payload'"),
    ('{"key":"x","payload":{}}', "CF-109", "no 'action'"),
    ('{"action":"","key":"x","payload":{}}', "CF-109", "'action'"),
    ('{"action":"lab.lookup","key":true,"payload":{}}', "CF-109", "'key'"),
    ('{"action":"lab.lookup","key":null,"payload":{}}', "CF-109", "'key'"),
    ('{"action":"lab.lookup","key":"","payload":{}}', "CF-109", "'key'"),
    ('{"action":"lab.lookup","key":"x","payload":{},"mentioned":{"a":1}}', "CF-109", "'mentioned'"),
    ("[1]", "CF-109", "not a JSON object"),
    ('{"action":"lab.lookup","payload":{}}', "CF-101", "no key"),
    ('{"action":"nope","key":"x","payload":{}}', "CF-104", "lab.key, lab.lookup, lab.nothing"),
    ('{"action":"lab.lookup","key":"x","payload":' + "[" * 70 + "]" * 70 + "}", "CF-103", "deeper"),
    ('{"action":"lab.lookup","key":"x","payload":"' + "a" * (1 << 20) + '"}', "CF-109", "longer than"),
]


def test_a_broken_line_is_named_and_the_rest_goes_on(shop):
    """Every broken line is named by its number and its fault; the good ones around it are sent once."""
    good = [{"action": "lab.lookup", "key": f"k{n}", "payload": {"n": n}} for n in range(2)]
    shop.write("lab.jsonl", good[0], "", *(line for line, _, _ in BROKEN), good[1])
    said = shop("run", "lab.jsonl", "--json")
    assert said.code == 2
    assert (said.json["succeeded"], said.json["refused"]) == (2, len(BROKEN))
    named = {error["line"]: error for error in said.json["errors"]}
    for number, (_, code, problem) in enumerate(BROKEN, start=3):
        assert named[number]["code"] == code, named[number]
        assert problem in named[number]["problem"]
    assert sorted(shop.effects()) == [0, 1]
    assert "aaaa" not in said.out


def test_bytes_that_are_no_text_break_only_their_line(shop):
    """A line that is not UTF-8 is named like any other, on standard error where no JSON was asked for."""
    path = shop.intents(1)
    path.write_bytes(b'{"action": "\xff"}\r\n' + path.read_bytes())
    said = shop("run", "lab.jsonl")
    assert said.code == 2
    assert "line 1: " in said.err
    assert "UTF-8" in said.err
    assert shop.effects() == [0]


@pytest.mark.parametrize("words", [("--concurrency", n) for n in ("0", "-1", "257", "1e3", "four", "٣", "9" * 5000)])
def test_a_concurrency_that_makes_no_sense_is_refused(shop, words):
    """Zero, negative, huge and unreadable numbers are refused with their bounds; nothing is sent."""
    shop.intents(1)
    said = shop("run", "lab.jsonl", *words)
    assert (said.code, said.out) == (2, "")
    assert "from 1 to 256" in said.err or "expected one argument" in said.err
    assert shop.sends() == 0


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "1e99", "soon"])
def test_a_wait_that_makes_no_sense_is_refused(shop, seconds):
    """Zero, negative, endless and unreadable waits are refused with their bounds; nothing is sent."""
    shop.intents(1)
    said = shop("run", "lab.jsonl", "--wait", seconds)
    assert (said.code, said.out) == (2, "")
    assert "from 0.001 to 86400" in said.err or "expected one argument" in said.err
    assert shop.sends() == 0


def test_the_wait_is_bounded(shop):
    """A look that never says anything ends the run at --wait with the outcome unknown, not with a guess."""
    shop.faults({"route": "*", "behaviour": "lose_reply"}, {"route": "*", "behaviour": "look_500"})
    shop.intents(2)
    said = shop("run", "lab.jsonl", "--wait", "0.5", "--json")
    assert (said.code, said.json["unknown"], said.json["unresolved"]) == (1, 2, 2)
    assert shop.sends() == 2


def test_a_missing_secret_sends_nothing(shop):
    """A secret that has no value is named by its pointer; it is the deployment's to mend."""
    shop.intents(3)
    del shop.env["LAB_AUTH"]
    said = shop("run", "lab.jsonl", "--json")
    assert said.code == 4
    assert {error["code"] for error in said.json["errors"]} == {"CF-204"}
    assert shop.sends() == 0


def test_the_secret_reaches_the_provider_and_nothing_else(shop):
    """Neither the store, its logs and folders, nor what a command says holds the secret, whatever went wrong."""
    shop.faults(LOSES_EVERY_THIRD, {"route": "*", "behaviour": "look_401"})
    shop.intents(6)
    said = [shop("run", "lab.jsonl", "--wait", "0.5"), shop("run", "lab.jsonl", "--json", "--wait", "0.5")]
    secret = shop.env["LAB_AUTH"].removeprefix("Bearer ")
    for told in said:
        assert secret not in told.out + told.err
    kept = [path for path in shop.folder.rglob("*") if path.is_file()]
    assert "receipts.db" in {path.name for path in kept}
    assert [path.name for path in kept if secret.encode() in path.read_bytes()] == []


def test_what_was_not_sent_is_sent_by_the_next_run(shop):
    """A provider that closes its door before a byte left leaves operations that the next run sends, once each."""
    shop.intents(3)
    port = shop.port
    assert shop.child.stop() == 0
    said = shop("run", "lab.jsonl", "--json")
    assert (said.code, said.json["not_sent"], said.json["unresolved"]) == (1, 3, 0)
    with start_provider(shop.folder / "truth", port=port):
        said = shop("run", "lab.jsonl", "--json")
        assert (said.code, said.json["succeeded"], said.json["new"]) == (0, 3, 3)
    assert sorted(shop.effects()) == [0, 1, 2]


def test_a_store_that_another_process_holds_sends_nothing(shop):
    """A locked store is unavailable, not broken: nothing was decided and the same run may be made again."""
    shop.intents(4)
    assert shop("run", "lab.jsonl").code == 0
    shop.intents(8)
    holder = sqlite3.connect(shop.folder / "receipts.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    said = shop("run", "lab.jsonl", "--json")
    holder.execute("ROLLBACK")
    holder.close()
    assert (said.code, said.json["error"]["code"]) == (5, "CF-301")
    assert shop.sends() == 4
    assert shop("run", "lab.jsonl").code == 0
    assert sorted(shop.effects()) == list(range(8))


def test_a_full_disk_stops_the_run_and_loses_nothing(shop):
    """When the store can be written no more nothing more is sent; with room again the file is finished, once each."""
    import resource

    shop.faults(SLOW)
    shop.intents(1, name="first.jsonl")
    assert shop("run", "first.jsonl", "--actions", "lab.yaml").code == 0
    shop.intents(60)
    full = 150_000

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (full, full))

    said = shop("run", "lab.jsonl", "--json", preexec_fn=limit)
    assert said.code == 5, said
    assert said.json["stopped"] is True
    assert len(shop.effects()) < 60
    said = shop("run", "lab.jsonl", "--json")
    assert (said.code, said.json["succeeded"]) == (0, 60)
    assert sorted(shop.effects()) == list(range(60))


def test_a_ledger_made_in_python_runs_a_file(commands):
    """`--actions MODULE:LEDGER` takes the ledger of a module in the current folder; a call may make it."""
    (commands.folder / "refunds.py").write_text(
        "import counterfoil\n"
        "def book():\n"
        "    ledger = counterfoil.open('refunds.db')\n"
        "    @ledger.action(owner='payments', authoriser='lead', key=lambda order, amount: order)\n"
        "    def refund(order, amount):\n"
        "        print('sent', order, file=open('sent', 'a'))\n"
        "        return {'order': order}\n"
        "    return ledger\n",
        "utf-8",
    )
    line = {"action": "refund", "payload": {"order": "o-1", "amount": 5}}
    commands.write("refunds.jsonl", line, line, {"action": "refund", "payload": {"order": "o-2"}})
    for _ in range(2):
        said = commands("run", "refunds.jsonl", "--actions", "refunds:book", "--json")
        assert (said.code, said.json["succeeded"]) == (2, 1)
        assert [(error["line"], error["code"]) for error in said.json["errors"]] == [(3, "CF-103")]
    assert (commands.folder / "sent").read_text("utf-8") == "sent o-1\n"


def test_a_terminal_sees_progress_and_no_colour_is_kept(shop):
    """On a terminal a bar is drawn and the summary is readable; NO_COLOR and a dumb terminal get no colour."""
    shop.intents(3)
    code, shown = shop.in_terminal("run", "lab.jsonl")
    assert code == 0
    assert "sending" in shown
    assert "succeeded" in shown
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        code, shown = shop.in_terminal("run", "lab.jsonl", env=env)
        assert code == 0
        assert "\x1b[3" not in shown, env


def test_a_name_with_escape_sequences_reaches_no_terminal(shop):
    """What a file says is shown, not obeyed: control characters become visible text."""
    shop.write("lab.jsonl", {"action": "evil\x1b]0;title\x07\u202e", "key": "x", "payload": {}})
    said = shop("run", "lab.jsonl")
    assert said.code == 2
    assert "\\x1b" in said.err
    assert not any(c in said.err for c in "\x1b\x07\u202e")


def test_the_output_is_one_object_even_when_nobody_reads_errors(shop):
    """With --json standard output is one object; a reader that goes away early ends nothing half-way."""
    shop.intents(3)
    process = shop.start("run", "lab.jsonl", "--json")
    process.stdout.close()
    assert process.wait(30) == 141
    process.stderr.close()
    assert sorted(shop.effects()) == [0, 1, 2]


def test_the_file_must_be_readable(shop):
    """A file that is not there, or is a folder, is named; no store is made for it."""
    for name in ("none.jsonl", "truth"):
        said = shop("run", name, "--actions", "lab.yaml")
        assert said.code == 2
        assert "cannot be read" in said.err
    assert not (shop.folder / "receipts.db").exists()


def test_actions_are_found_beside_the_file_or_asked_for(shop):
    """FILE.yaml beside FILE.jsonl is taken by itself; where there is none the error says what to name."""
    shop.intents(1, name="other.jsonl")
    said = shop("run", "other.jsonl")
    assert said.code == 2
    assert "--actions" in said.err
    assert shop("run", "other.jsonl", env={"COUNTERFOIL_ACTIONS": "lab.yaml"}).code == 0


def test_a_receipt_that_cannot_be_read_stops_no_other_line(shop):
    """It is named once and sent nothing for, its own line is refused, and the deployment is to be mended."""
    shop.intents(2)
    shop("run", "lab.jsonl")
    broken = shop("list", "--json").lines[0]["id"]
    shop.spoil(broken, seq=2)
    shop.intents(4)
    said = shop("run", "lab.jsonl", "--json")
    assert (said.code, said.json["operations"], said.json["refused"], said.json["stopped"]) == (4, 3, 1, False)
    assert {error["code"] for error in said.json["errors"]} == {"CF-299"}
    assert shop.sends() == 4


def test_a_sweep_that_meets_one_stops_no_line(shop):
    """Beside the file's own lines, whatever else is due is worked on; one that cannot be read is said so once."""
    shop.faults({"route": "lookup", "behaviour": "lose_reply"}, {"route": "lookup", "behaviour": "look_500"})
    shop.intents(1)
    shop("run", "lab.jsonl", "--wait", "0.1")
    shop.spoil(shop("list", "--json").lines[0]["id"], seq=1)
    shop.faults()
    shop.write("more.jsonl", {"action": "lab.key", "key": "other", "payload": {"n": 7}})
    said = shop("run", "more.jsonl", "--actions", "lab.yaml", "--json")
    assert (said.code, said.json["succeeded"], said.json["stopped"]) == (4, 1, False)
    assert [error["line"] for error in said.json["errors"]] == [0]
    assert said.json["errors"][0]["problem"].count("op_") == 1
