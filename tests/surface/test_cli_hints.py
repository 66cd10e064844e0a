"""What a command suggests can be copied, and what it could not do says what is missing."""

from __future__ import annotations

import re
import shlex
import signal
import sys
from pathlib import Path

import pytest

from counterfoil.lab.processes import start_provider

pytestmark = pytest.mark.slow  # each test starts at least one interpreter

EXAMPLES = Path(__file__).parents[2] / "examples"

SHOP = """
import counterfoil

print("a greeting")
ledger = counterfoil.open("receipts.db")


@ledger.action(owner="o", authoriser="a", key=lambda n, how: n)
def pay(n, how):
    if how == "rejected":
        raise counterfoil.Rejected("the card is closed")
    if how == "not_sent":
        raise counterfoil.NotSent("refused")
    if how == "unknown":
        raise TimeoutError
"""


@pytest.fixture
def module(commands):
    """A module with an action, in the folder, and its lines of intents."""
    (commands.folder / "shop.py").write_text(SHOP, "utf-8")

    def write(*hows):
        commands.write("pay.jsonl", *({"action": "pay", "payload": {"n": n, "how": h}} for n, h in enumerate(hows)))
        return ("run", "pay.jsonl", "--actions", "shop:ledger")

    return write


def copied(line):
    """The words of a printed command."""
    return shlex.split(line.partition("counterfoil ")[2])


def test_the_run_ends_with_the_command_that_goes_on(shop):
    """A store that only the actions file names is named in what `run` prints last, and it works as printed."""
    (shop.folder / "lab.yaml").write_text("store: lab.db" + (shop.folder / "lab.yaml").read_text("utf-8"), "utf-8")
    shop.faults({"route": "*", "behaviour": "lose_reply"})
    shop.intents(7, "lab.nothing")
    said = shop("run", "lab.jsonl")
    lines = said.err.splitlines()
    assert lines[-2:] == ["and 2 more", "next: counterfoil list --unresolved --store lab.db"]
    assert len(lines) == 7
    assert "7 unresolved" in shop(*copied(lines[-1])).out
    assert "The effect may have happened." in shop(*copied(lines[0])).out


def test_the_steps_of_a_receipt_run_as_printed(shop):
    """`show` prints commands that reach the same store and actions, and ask for nothing but what only people know."""
    shop.faults({"route": "*", "behaviour": "lose_request", "times": 1})
    shop.intents(1)
    shop("run", "lab.jsonl", "--wait", "0.001", "--store", "other.db")
    (line,) = shop("list", "--json", "--store", "other.db").lines
    out = shop("show", line["id"], "--store", "other.db", "--actions", "lab.yaml").out.replace(" \\\n  ", " ")
    look, resolve = (
        next(x for x in out.splitlines() if x.startswith(f"counterfoil {v}")) for v in ("reconcile", "resolve")
    )
    assert shop(*copied(look)).code == 1
    assert shop.looks() == 1
    words = [{"OUTCOME": "rejected", "NAME=VALUE": "ticket=T-1"}.get(word, word) for word in copied(resolve)]
    assert shop(*words).code == 0
    out = shop("show", line["id"], "--store", "other.db", "--actions", "lab.yaml").out.replace(" \\\n  ", " ")
    (again,) = (x for x in out.splitlines() if x.startswith("counterfoil "))
    assert shop(*copied(again)).code == 0
    assert shop.effects() == [0]


def test_commands_without_known_actions_say_which_variable(shop):
    """Where `show` was given no actions the command reads them from the environment, and says so where it has none."""
    shop.faults({"route": "*", "behaviour": "lose_request", "times": 1})
    shop.intents(1)
    shop("run", "lab.jsonl", "--wait", "0.001")
    (line,) = shop("list", "--json").lines
    out = shop("show", line["id"]).out
    assert f'counterfoil reconcile {line["id"]} --actions "$COUNTERFOIL_ACTIONS"' in out
    said = shop("reconcile", line["id"], "--actions", "")
    assert said.err == (
        "counterfoil: no actions file is named: pass --actions FILE.yaml or MODULE:LEDGER, or set COUNTERFOIL_ACTIONS"
        " (CF-109)\n"
    )
    env = {"COUNTERFOIL_ACTIONS": "lab.yaml"}
    assert f"reconcile {line['id']}\n" in shop("show", line["id"], env=env).out
    assert shop("reconcile", line["id"][:15], env=env).code == 1


def test_a_store_that_is_not_there_names_those_that_are(shop):
    """A reading verb without `--store` says which receipts files this folder has, and makes none."""
    (shop.folder / "lab.yaml").write_text(
        "store: books/lab.db" + (shop.folder / "lab.yaml").read_text("utf-8"), "utf-8"
    )
    (shop.folder / "books").mkdir()
    shop.intents(1)
    assert shop("run", "lab.jsonl").code == 0
    assert shop("run", "lab.jsonl", "--store", "other.db").code == 0
    (shop.folder / "unrelated.yaml").write_text("a: [1\n", "utf-8")
    for verb in ("list", "verify", "brief"):
        said = shop(verb)
        assert said.code == 4
        assert (
            "receipts.db: does not exist; in this folder there is other.db, books/lab.db (the store of lab.yaml)"
            in said.err
        )
    assert not (shop.folder / "receipts.db").exists()


def test_a_finding_needs_no_actions(commands, module):
    """`resolve` sends nothing: the contract the receipt pins will do, and the module is not imported for it."""
    assert commands(*module("unknown")).code == 1
    (line,) = commands("list", "--json").lines
    (commands.folder / "shop.py").unlink()
    words = ("resolve", line["id"][:15], "--outcome", "succeeded", "--evidence", "id=re_1")
    said = commands(*words)
    assert said.code == 2
    assert "nobody is named who decides: pass --as NAME and --reason TEXT" in said.err
    said = commands(*words, "--as", "dana", "--reason", "seen", "--json")
    assert (said.code, said.json["outcome"], said.json["result"]) == (0, "succeeded", {"id": "re_1"})
    assert commands("verify").code == 0


def test_a_contract_of_ones_own_needs_its_actions(shop):
    """Where the receipt pins a contract that is not of the catalogue, `resolve` says that, and what to pass."""
    from counterfoil.contracts.loader import CATALOGUE

    text = (CATALOGUE / "lab.nothing.yaml").read_text("utf-8").replace("id: lab.nothing", "id: lab.own")
    (shop.folder / "own.yaml").write_text(text, "utf-8")
    shop.actions(own="own.yaml")
    shop.faults({"route": "*", "behaviour": "lose_reply"})
    shop.intents(1, "own")
    shop("run", "lab.jsonl")
    (line,) = shop("list", "--json").lines
    words = ("resolve", line["id"], "--outcome", "succeeded", "--evidence", "a=b", "--as", "dana", "--reason", "seen")
    said = shop(*words)
    assert said.code == 2
    assert "the contract this receipt pins is not of the catalogue" in said.err
    assert shop(*words, "--actions", "lab.yaml").code == 0


def test_a_modules_own_words_stay_out_of_the_json(commands, module):
    """What an imported module prints goes to standard error: with `--json` standard output is JSON only."""
    said = commands(*module("fine"), "--json")
    assert said.json["succeeded"] == 1
    assert "a greeting" in said.err


def test_the_summary_says_why(commands, module):
    """What was rejected or not sent stands with its reasons and their counts."""
    said = commands(*module("rejected", "not_sent", "rejected", "fine"))
    assert re.search(r"rejected +2 +the card is closed \(2\)", said.out)
    assert re.search(r"not_sent +1 +not_sent \(1\)", said.out)
    assert all(line == line.rstrip() for line in said.out.splitlines())


def test_what_a_closed_door_refused_is_said(shop):
    """A connection that could not be made is named as the reason of all that was not sent."""
    shop.intents(3)
    port = shop.port
    assert shop.child.stop() == 0
    assert re.search(r"not_sent +3 +\w+ \(3\)", shop("run", "lab.jsonl").out)
    with start_provider(shop.folder / "truth", port=port):
        assert shop("run", "lab.jsonl").code == 0


def test_one_refusal_of_many_lines_is_said_once(shop):
    """Lines that are refused for the same reason are named as a range behind the first."""
    del shop.env["LAB_AUTH"]
    shop.intents(20)
    said = shop("run", "lab.jsonl", "--concurrency", "1")
    assert said.err.count("CF-204") == 1
    assert "the same as line 1: lines 2-20" in said.err


def test_the_calendar_server_says_which_reply_it_lost(tmp_path):
    """The example prints a line for each reply it loses, by its number and its path."""
    import http.client
    from subprocess import PIPE, Popen

    argv = [sys.executable, str(EXAMPLES / "calendar_server.py"), "--port", "0", "--folder", str(tmp_path / "calendar")]
    with Popen(argv, stdout=PIPE, text=True) as server:
        try:
            port = int(server.stdout.readline().rpartition(":")[2])
            for number in range(1, 4):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                connection.request("PUT", f"/demo/appointments/{number}.ics", b"")
                if number < 3:
                    connection.getresponse().read()
                else:
                    with pytest.raises(http.client.RemoteDisconnected):
                        connection.getresponse()
                connection.close()
            assert server.stdout.readline() == "lost the reply of PUT 3: /demo/appointments/3.ics\n"
        finally:
            server.send_signal(signal.SIGTERM)
