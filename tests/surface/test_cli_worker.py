"""`counterfoil worker`: what a dead caller left is recovered and settled by looks, until somebody says stop."""

from __future__ import annotations

import json
import signal

import pytest

pytestmark = pytest.mark.slow  # each test starts a provider and at least one interpreter


def left_behind(shop, action="lab.lookup"):
    """One operation whose effect happened, whose answer is lost and whose caller is dead."""
    shop.faults({"route": "*", "behaviour": "hang", "times": 1})
    shop.intents(1, action)
    process = shop.start("run", "lab.jsonl")
    shop.until_sent(1)
    process.kill()
    process.communicate(timeout=30)


def test_a_dead_callers_operation_is_settled_without_another_send(shop):
    """The worker recovers, looks when the look is due, prints each step once, and ends on SIGTERM with 143."""
    left_behind(shop)
    process = shop.start("worker", "--actions", "lab.yaml", "--interval", "0.1", "--json")
    steps = [json.loads(process.stdout.readline())]
    while steps[-1]["unresolved"]:
        steps.append(json.loads(process.stdout.readline()))
    process.send_signal(signal.SIGTERM)
    rest, err = process.communicate(timeout=30)
    assert (process.returncode, rest, err) == (143, "", "")
    assert [step["lifecycle"] for step in steps] == ["outcome_unknown", "succeeded"]
    assert steps[-1]["settled_by"] == "succeeded:look"
    assert shop.effects() == [0]
    assert shop.sends() == 1


def test_once_takes_what_is_due_and_says_whether_anything_is_left(shop):
    """`--once` ends by itself: 1 while something is unresolved, 0 when nothing is."""
    left_behind(shop, "lab.nothing")
    said = shop("worker", "--actions", "lab.yaml", "--once")
    assert said.code == 1
    assert "manual_review" in said.out
    assert "next: a person" in said.out
    assert shop("worker", "--actions", "lab.yaml", "--once").out == "nothing is due; 1 operation needs a person\n"
    assert shop("worker", "--actions", "lab.yaml", "--once", "--json").out == ""
    assert shop.sends() == 1


def test_a_live_callers_operation_is_left_alone(shop):
    """While its caller is provably alive an attempt is neither recovered nor printed, whoever sweeps."""
    shop.faults({"route": "*", "behaviour": "slow", "seconds": 3.0})
    shop.intents(1)
    process = shop.start("run", "lab.jsonl", "--json")
    shop.until_sent(1)
    said = shop("worker", "--actions", "lab.yaml", "--once", "--json")
    assert (said.code, said.out) == (1, "")
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, json.loads(out)["succeeded"]) == (0, 1)
    assert shop.sends() == 1


def test_two_workers_on_one_store(shop):
    """Two workers at once settle every operation once: no look is paid twice for one due time, nothing is sent."""
    shop.faults({"route": "*", "behaviour": "lose_reply"})
    shop.intents(8)
    assert shop("run", "lab.jsonl", "--wait", "0.001").code == 1
    both = [shop.start("worker", "--actions", "lab.yaml", "--interval", "0.05", "--json") for _ in range(2)]
    while shop("list", "--json", "--unresolved").out:
        assert [process.poll() for process in both] == [None, None]
    for process in both:
        process.send_signal(signal.SIGINT)
    steps = [json.loads(line) for process in both for line in process.communicate(timeout=30)[0].splitlines()]
    assert [process.returncode for process in both] == [130, 130]
    settled = [step["id"] for step in steps if step["lifecycle"] == "succeeded"]
    assert len(set(settled)) == 8
    assert shop.sends() == shop.looks() == 8


def test_a_worker_needs_to_know_its_actions(commands):
    """Without actions nothing can be looked at: the error says what to name, and no store is made."""
    said = commands("worker", "--once")
    assert said.code == 2
    assert "--actions" in said.err
    assert list(commands.folder.iterdir()) == []


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "1e9"])
def test_an_interval_that_makes_no_sense_is_refused(commands, seconds):
    """Zero, negative and endless intervals are refused with their bounds."""
    said = commands("worker", "--actions", "x.yaml", "--interval", seconds)
    assert said.code == 2
    assert "from 0.05 to 3600" in said.err or "expected one argument" in said.err


def test_what_it_has_no_action_for_is_named(shop):
    """An operation that waits for a worker is not passed over in silence: its action is said, once."""
    left_behind(shop, "lab.lookup")
    source = (shop.folder / "lab.yaml").read_text("utf-8")
    (shop.folder / "other.yaml").write_text(source.replace("  lab.lookup:", "  another:"), "utf-8")
    said = shop("worker", "--actions", "other.yaml", "--once")
    assert "1 operation waits for a worker that has the action 'lab.lookup': it is not registered here" in said.err
