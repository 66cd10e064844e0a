"""`counterfoil reconcile --unmatched`: exit 1 where the provider has what no receipt explains, or did not show all."""

from __future__ import annotations

import http.client
import json

import pytest
import yaml

from counterfoil.lab.contract_copy import write_copy

pytestmark = pytest.mark.slow  # each test starts a provider and at least one interpreter

WORDS = ("reconcile", "--unmatched", "--actions", "lab.yaml", "--store", "receipts.db")


@pytest.fixture
def till(shop):
    """A shop whose provider can be asked for everything in the account, with one effect of its own."""
    look = {"by": "list", "request": {"path": "/effects", "query": {"limit": "{payload/limit}"}}}
    path = write_copy(shop.folder, "lab.lookup", {})
    found = yaml.safe_load(path.read_text())
    found["looks"][0].update(look)
    path.write_text(yaml.safe_dump(found))
    shop.actions(pay=path.name)
    shop.intents(1, "pay")
    assert shop("run", "lab.jsonl").code == 0
    return shop


def stranger(shop, payload):
    """A write past the book."""
    connection = http.client.HTTPConnection("127.0.0.1", shop.port, timeout=10)
    connection.request("POST", "/lookup/effects", json.dumps(payload), {"Authorization": "Bearer lab-secret"})
    assert connection.getresponse().status == 201
    connection.close()


def test_nothing_unexplained_is_0_and_something_is_1(till):
    """Each thing is listed with why no receipt explains it, and counted."""
    clean = till(*WORDS, "--action", "pay", "--of", "limit=200")
    assert (clean.code, clean.out) == (
        0,
        "pay, account acct_lab: 1 explained, 0 candidate, 0 contradictory, 0 unmatched\n",
    )
    stranger(till, {"n": 99})
    stranger(till, {"n": 0})
    said = till(*WORDS, "--action", "pay", "--of", "limit=200", "--json")
    assert said.code == 1
    assert said.json["counts"] == {"explained": 1, "candidate": 1, "contradictory": 0, "unmatched": 1}
    assert [row["because"] for row in said.json["open"]] == [
        "its content is that of a receipt, and its names are not", "",
    ]  # fmt: skip
    assert (said.json["complete"], said.json["ok"]) == (True, False)
    assert till.sends() == 3


def test_what_was_not_shown_whole_is_1(till):
    """A first page proves nothing of the rest."""
    said = till(*WORDS, "--action", "pay", "--of", "limit=1")
    assert said.code == 1
    assert "incomplete (incomplete): there may be more than was shown" in said.out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "--action NAME"),
        (("--action", "nobody"), "no action is named"),
        (("--action", "pay", "--of", "limit"), "FIELD=VALUE"),
        (("--action", "pay", "--since", "soon"), "is no time"),
        (("--action", "pay", "--since", "2027-01-01"), "created_at"),
    ],
)
def test_a_bad_call_is_named(till, words, problem):
    """Nothing is read for it."""
    before = till.looks()
    said = till(*WORDS, *words)
    assert (said.code, problem in said.err) == (2, True)
    assert till.looks() == before
