"""`counterfoil contracts`: the catalogue, one contract, a beginning for one more, and what is wrong with one."""

from __future__ import annotations

import re

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.cli import clauses, scaffold
from counterfoil.domain.contract import ProviderBudget, ReadBudget
from counterfoil.domain.errors import BadValue

COUNTS = ("key_retention_mismatch", "found_by_look", "found_by_known_look", "repeated", "fence_or_absence")


@pytest.mark.slow
def test_the_catalogue_is_counted(commands):
    """Providers by group, and how many can do what; a group by itself."""
    told = commands("contracts", "list", "--json").json
    assert [row["id"] for row in told["catalogue"]] == contracts.names()
    assert told["contracts"] == sum(told["groups"].values()) == len(contracts.names()) - told["laboratory"]
    assert all(0 < told[name] < told["contracts"] for name in COUNTS)
    chat = commands("contracts", "list", "--group", "chat", "--json").json
    assert {row["group"] for row in chat["catalogue"]} == {"chat"}
    nobody = commands("contracts", "list", "--group", "mail")
    assert (nobody.code, "chat" in nobody.err) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_tables_read_in_any_terminal(commands, columns):
    """Every contract on the list, every clause of one, and no line too long."""
    environment = {"COLUMNS": str(columns), "NO_COLOR": "1"}
    for words, shown_words in (
        (("list",), ("stripe.v1.refunds_create", "provider actions", "lost answer", "sent again", "kept")),
        (("show", "lab.key"), ("answers[6]", "Sources")),
    ):
        code, shown = commands.in_terminal("contracts", *words, env=environment)
        plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
        assert code == 0
        assert max(len(line) for line in plain.splitlines()) <= min(columns, 140)
        assert all(word in plain for word in shown_words)


@pytest.mark.slow
def test_one_contract_is_told_with_what_follows(commands):
    """Clauses with their sources, consequences and the digest that receipts pin; no name that is none."""
    told = commands("contracts", "show", "stripe.v1.refunds_create", "--json").json
    assert told["digest"].startswith("ct1:")
    quarter = "while the key protects, within 6 h unless a longest_delivery is assumed"
    assert told["follows"]["the same key again"] == f"up to 2 by itself, {quarter}"
    assert {said["clause"] for said in told["clauses"]} >= {"protection", "repeat", "answers[0]", "looks[0]"}
    assert all(said["source"] in told["contract"]["sources"] for said in told["clauses"])
    refused = commands("contracts", "show", "nobody.knows", "--json")
    assert (refused.code, "nobody.knows" in refused.out) == (4, True)


@pytest.mark.parametrize(("kept", "said"), [
    (86_399, "while the key protects, where a longest_delivery is assumed: it is kept for "),
    (86_400, "while the key protects, within 6 h unless a longest_delivery is assumed"),
    ("never_expires", "while the key protects"),
])  # fmt: skip
def test_for_how_long_a_key_goes_again_is_told_with_what_it_needs(kept, said):
    """What a deployment that assumes nothing may count on is what the retry decision grants."""
    key = contracts.load("lab.key")
    lasting = msgspec.structs.replace(key.protection, retention_seconds=kept)
    told = dict(clauses.follows(msgspec.structs.replace(key, protection=lasting)))["the same key again"]
    assert told.partition(", ")[2].startswith(said)


def test_what_a_look_cannot_find_is_not_promised():
    """A look that takes nothing for ours leaves a lost answer to people."""
    found = contracts.load("lab.lookup")
    nobodys = msgspec.structs.replace(found.looks[0].match, account="unknown")
    blind = msgspec.structs.replace(found, looks=(msgspec.structs.replace(found.looks[0], match=nobodys),))
    assert dict(clauses.follows(blind))["a lost answer"] == "by a person"
    assert "never ours" in next(said.says for said in clauses.clauses(blind) if said.clause == "looks[0]")
    assert "look" in dict(clauses.follows(found))["a lost answer"]


@pytest.mark.slow
def test_what_is_read_is_told():
    """How often, how soon and how far apart; and what all operations of an account share."""
    found = contracts.load("lab.lookup")
    budget = ReadBudget(looks_max=3, first_after_seconds=2, spacing_seconds=15)
    once = msgspec.structs.replace(budget, looks_max=1, provider=ProviderBudget(looks=30, per_seconds=60))
    told = [dict(clauses.follows(msgspec.structs.replace(found, read_budget=each)))["looks"] for each in (budget, once)]
    assert told[0] == "at most 3, the first after 2.0 s, then 15 s apart"
    assert told[1] == "at most 1, the first after 2.0 s; all of an account together 30 in 1 m"
    assert "looks" not in dict(clauses.follows(contracts.load("lab.nothing")))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("stripe.refund", "there is stripe.v1.refunds_create"),
        ("kubernetes", "there is kubernetes.create"),
        ("xyz", "nor a similar one"),
    ],
)
def test_a_name_that_there_is_not_offers_another(commands, name, meant):
    """Not all of them at once."""
    run = commands("contracts", "show", name)
    assert (run.code, meant in run.err, len(run.err) < 300) == (4, True, True)


def test_a_beginning_is_sound_and_is_written_over_by_nothing(commands):
    """It is linted, shown, and refused a second time."""
    made = commands("contracts", "new", "shop.refund", "--look", "/v1/refunds", "--retention", "86400", "--json")
    assert (made.code, made.json) == (0, {"file": "shop.refund.yaml"})
    assert commands("contracts", "lint", "shop.refund.yaml", "--json").json["ok"]
    assert commands("contracts", "show", "shop.refund.yaml", "--json").json["contract"]["id"] == "shop.refund"
    assert commands("contracts", "new", "shop.refund", "--json").code == 2


@pytest.mark.slow
def test_whatever_is_wrong_is_named_by_line_and_clause(commands):
    """Every flaw of every file, exit code 1; what is no YAML is one flaw."""
    commands("contracts", "new", "shop.refund", "--json")
    path = commands.folder / "shop.refund.yaml"
    path.write_text(path.read_text().replace("source: docs", "source: nowhere"))
    (commands.folder / "broken.yaml").write_text("id: [")
    said = commands("contracts", "lint", "shop.refund.yaml", "broken.yaml", "--json")
    assert (said.code, said.json["ok"]) == (1, False)
    first, second = said.json["files"]
    lines = path.read_text().splitlines()
    assert [flaw["clause"] for flaw in first["flaws"]] == [
        "$.protection.source",
        "$.repeat.source",
        "$.answers[0].source",
    ]
    assert all("nowhere" in lines[flaw["line"] - 1] for flaw in first["flaws"])
    assert len(second["flaws"]) == 1
    shown = commands("contracts", "lint", "shop.refund.yaml")
    assert shown.code == 1
    assert "$.protection.source" in shown.out


@pytest.mark.parametrize("key", ["none", "header:X-Key", "body:/client_id"])
@pytest.mark.parametrize("retention", ["never", "unknown", "3600"])
@pytest.mark.parametrize("look", ["none", "/v1/things"])
def test_every_beginning_is_sound(tmp_path, key, retention, look):
    """Whatever was answered, what comes of it holds and claims nothing."""
    given = {"id": "a.b", "key": key, "retention": retention, "look": look}
    said = scaffold.answered(given, ask=None)
    (tmp_path / "a.b.yaml").write_text(scaffold.written(said))
    contract = contracts.load(tmp_path / "a.b.yaml")
    assert contract.automatic_attempts.same_key_replay == 0
    assert dict(clauses.follows(contract))["the same key again"].startswith("never")


def test_whoever_is_there_is_asked_for_what_was_not_said():
    """Each question once, with its usual answer."""
    asked = []

    def ask(question, usual):
        asked.append(question)
        return usual

    said = scaffold.answered({"id": "a.b", "key": "none"}, ask=ask)
    assert (said.key, said.request, len(asked)) == ("none", "POST /v1/things", 4)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", "Shop"),
        ("request", "GET /x"),
        ("key", "cookie:x"),
        ("retention", "a day"),
        ("url", "docs"),
        ("look", "x"),
    ],
)
def test_an_answer_that_is_none_is_refused(name, value):
    """With what it must be."""
    with pytest.raises(BadValue) as refused:
        scaffold.answered({"id": "a.b"} | {name: value}, ask=None)
    assert refused.value.name == name
