"""What a command line may name: no agent anywhere, no path that no file system takes, no pipe that never ends."""

from __future__ import annotations

import argparse
import importlib
import os

import pytest

from counterfoil.cli import parser

pytestmark = pytest.mark.slow  # each test starts interpreters

NEEDS = {
    "resolve": ("--outcome", "rejected", "--evidence", "a=b"), "assign": ("lea",), "escalate": ("--to", "lead"),
    "wait": ("--for", "2h"), "investigate": ("--channel", "support"), "policy": ("adopt", "policy.yaml"),
    "evidence": ("add", "--webhook", "policy.yaml"),
}  # fmt: skip
"""What a verb needs beside the operation."""


def options(made):
    """Every option of a verb and of what stands below it."""
    for action in made._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from options(below)


def deciding_verbs():
    """Every verb that takes `--as`, found in the parser."""
    for name, _ in parser.VERBS:
        verb = argparse.ArgumentParser()
        importlib.import_module(f"counterfoil.cli.{name}").add(verb)
        if "--as" in set(options(verb)):
            yield name


@pytest.mark.parametrize("verb", list(deciding_verbs()))
def test_no_agent_passes_as_whoever_decides(shop, verb):
    """CF-109, whatever the verb and the spelling, and nothing is on record."""
    shop.faults({"route": "*", "behaviour": "lose_reply", "times": 1})
    shop.intents(1, "lab.nothing")
    shop("run", "lab.jsonl")
    (lost,) = shop("list", "--json").lines
    (shop.folder / "policy.yaml").write_text("name: p\nrules: []\notherwise: allow\n")
    about = () if verb in {"policy", "evidence"} else (lost["id"],)
    said = shop(
        verb, *about, *NEEDS.get(verb, ()), "--actions", "lab.yaml", "--as", "Agent :bot", "--reason", "it failed"
    )
    assert (said.code, "CF-109" in said.err) == (2, True), said
    assert "agent" in said.err
    assert shop("list", "--json").lines[0]["seq"] == lost["seq"]


def test_paths_that_no_file_system_takes(commands):
    """One sentence, and no traceback."""
    for path in ("x" * 5000, "x" * 250, "d/" * 2500 + "r.db"):
        said = commands("list", "--store", path)
        assert (said.code, "CF-109" in said.err, "Traceback" in said.err) == (2, True, False)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_a_policy_is_a_file(commands, kind):
    """Nothing else is read, and nothing is waited for."""
    path = commands.folder / "policy.yaml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    named = "/dev/zero" if kind == "device" else "policy.yaml"
    said = commands("policy", "adopt", named, "--new", "--as", "lea", "--reason", "r")
    assert (said.code, "CF-206" in said.err) == (4, True), said
