"""`counterfoil policy`: what a file means, what changes, whose decision it was; and nobody's is lost."""

from __future__ import annotations

import contextlib
import getpass
import json
import re
import sqlite3
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each test starts at least one interpreter

EXAMPLE = Path(__file__).parents[2] / "examples" / "policy.yaml"
NAMED = ("--as", "Dana", "--reason", "agreed on Monday")
ONE = 'name: one\notherwise: refuse\nrules:\n  - {name: refunds, when: {actions: ["refund*"]}, approval: none}\n'
TWO = ONE.replace("name: one", "name: two").replace("approval: none", "approval: {people: 2}")
SHOP = """
import counterfoil

ledger = counterfoil.open("shop.db")
said = {"account": "acct", "owner": "o", "authoriser": "p"}
ledger.action(lambda n, amount: n, name="refund", key=lambda n, amount: n, value=lambda n, amount: amount, **said)
ledger.action(lambda n: n, name="refund.partial", key=lambda n: n, **said)
ledger.action(lambda n: n, name="article.publish", key=lambda n: n, **said)
ledger.action(lambda n: n, name="lookup", key=lambda n: n, consequence="none", **said)
"""


@pytest.fixture
def adopt(commands):
    """Adopt a policy's text as somebody."""

    def adopt(text, *words, name="policy.yaml"):
        (commands.folder / name).write_text(text, "utf-8")
        return commands("policy", "adopt", name, "--new", *NAMED, *words)

    return adopt


# -- check -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 200])
def test_a_policy_reads_in_any_terminal(commands, columns):
    """Each rule with what it speaks of, whose approval, how many people and how final; no line is too long."""
    code, shown = commands.in_terminal("policy", "check", EXAMPLE, env={"COLUMNS": str(columns), "NO_COLOR": "1"})
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert code == 0
    assert max(len(line) for line in plain.splitlines()) <= min(columns, 140)
    for words in (
        "large-refunds",
        "refund* above 500",
        "dana, mara, jo",
        "1 d",
        "absolute",
        "refused: payroll",
        "2,000",
    ):
        assert words in plain
    assert ("people" in plain) is (columns == 200)
    assert ("2 of dana, mara, jo" in plain) is (columns == 80)


def test_the_json_of_a_check_is_the_whole_policy(commands):
    """Its digest, its content and what a person should know; standard output holds nothing else."""
    said = commands("policy", "check", EXAMPLE, "--json")
    assert (said.code, said.err) == (0, "")
    assert said.json["ok"] is True
    assert said.json["digest"].startswith("pl1:")
    assert said.json["policy"]["rules"][0]["approval"]["seconds"] == 86_400
    assert (said.json["warnings"], said.json["actions"]) == ([], None)
    assert commands("policy", "--json", "check", EXAMPLE).json == said.json
    assert list(commands.folder.iterdir()) == []


@pytest.mark.parametrize("columns", ["80", "200"])
def test_each_action_is_shown_under_its_rule(commands, columns):
    """By value at risk where that matters; an unmatched one is marked, and one that could never be called is wrong."""
    (commands.folder / "shop.py").write_text(SHOP, "utf-8")
    code, shown = commands.in_terminal(
        "policy", "check", EXAMPLE, "--actions", "shop:ledger", env={"COLUMNS": columns, "NO_COLOR": "1"}
    )
    assert code == 1
    for words in ("no rule: otherwise", "none can decide", "declares no value at risk", "up to 500", "above 500"):
        assert words in shown
    told = commands("policy", "check", EXAMPLE, "--actions", "shop:ledger", "--json").json
    falls = [(f["action"], f["value"], f["rule"], f["unmatched"], f["wrong"]) for f in told["actions"]]
    assert falls == [
        ("article.publish", "any", "", True, False),
        ("lookup", "any", "", False, False),
        ("refund", "up to 500", "refunds", False, False),
        ("refund", "above 500", "large-refunds", False, False),
        ("refund.partial", "undeclared", "", False, True),
    ]
    assert told["ok"] is False


def test_ranges_under_one_rule_are_one_line(commands):
    """An amount that another rule names parts nothing where the rule before decides, and neither does an override's."""
    (commands.folder / "shop.py").write_text(SHOP, "utf-8")
    rules = (
        "  - {name: acct, when: {accounts: [acct], tenants: [default]}, approval: none}\n"
        "  - {name: large, when: {above: 5}, approval: {}}\n"
        "  - {name: larger, when: {tenants: [other], above: 2}, approval: {}}\n"
    )
    (commands.folder / "p.yaml").write_text(
        f"name: p\notherwise: allow\noverride: {{above: 9}}\nrules:\n{rules}", "utf-8"
    )
    told = commands("policy", "check", "p.yaml", "--actions", "shop:ledger", "--json").json
    assert [(f["value"], f["rule"]) for f in told["actions"] if f["action"] == "refund"] == [("any", "acct")]
    assert told["ok"] is True


def test_checking_a_file_of_actions_makes_no_receipts(commands):
    """A lint leaves nothing behind, and needs no secret's value."""
    (commands.folder / "shop.yaml").write_text(
        "store: shop.db\nactions: {pay: {contract: lab.key, base_url: 'http://127.0.0.1:1', account: a, owner: o,"
        " authoriser: p, secrets: {/headers/authorization: 'env:NOT_SET'}}}\n",
        "utf-8",
    )
    said = commands("policy", "check", EXAMPLE, "--actions", "shop.yaml", "--json")
    assert [f["action"] for f in said.json["actions"]] == ["pay"]
    assert [path.name for path in commands.folder.iterdir()] == ["shop.yaml"]


@pytest.mark.parametrize("act", ["check", "adopt"])
def test_a_wrong_file_is_named_with_its_line(commands, act):
    """The code, the file, the line and the key; no store is made for it."""
    (commands.folder / "p.yaml").write_text(ONE + "  - {name: refunds, when: {}, refuse: no way}\n", "utf-8")
    words = ("policy", act, "p.yaml", *(("--new", *NAMED) if act == "adopt" else ()))
    said = commands(*words)
    assert (said.code, said.out) == (4, "")
    assert said.err == "counterfoil: p.yaml:5: rules.1.name: 'refunds' stands twice (first at rules.0) (CF-206)\n"
    assert commands(*words, "--json").json["error"]["code"] == "CF-206"
    assert [path.name for path in commands.folder.iterdir()] == ["p.yaml"]


# -- adopt and show ----------------------------------------------------------------------------------------------------


def test_a_policy_is_adopted_and_shown(commands, adopt):
    """Who, when, why and how they were known stand beside what is in force, in words and as JSON."""
    said = adopt(ONE, "--json")
    assert (said.code, said.err) == (0, "")
    assert (said.json["adopted"], said.json["n"]) == (True, 1)
    told = commands("policy", "show", "--json").json["policy"]
    assert (told["by"], told["reason"], told["seen"], told["from"]) == ("user:dana", "agreed on Monday", 0, "")
    assert getpass.getuser() in told["how"]
    assert (told["digest"], told["policy"]["name"]) == (said.json["digest"], "one")
    shown = commands("policy", "show").out
    for words in ("policy 1  one", "user:dana", "agreed on Monday", "UTC", said.json["digest"], "refund*"):
        assert words in shown


def test_what_changes_is_said_before_it_is_decided(commands, adopt):
    """Against the one in force: what goes and what comes, on standard error, and in the JSON."""
    first = adopt(ONE)
    assert (first.code, first.out) == (0, "policy 1 is in force\n")
    assert "+ rule refunds: refund* → goes without approval" in first.err
    second = adopt(TWO)
    assert (second.code, second.out) == (0, "policy 2 is in force\n")
    assert "- rule refunds: refund* → goes without approval" in second.err
    assert "+ rule refunds: refund* → approval by 2 people, not the requester" in second.err
    assert "otherwise" not in second.err
    told = adopt(ONE, "--json").json
    assert (told["n"], {c["sign"] for c in told["changes"]}) == (3, {"-", "+"})
    history = commands("policy", "show", "--history", "--json").json["policies"]
    assert [(kept["n"], kept["policy"]["name"], kept["seen"]) for kept in history] == [
        (3, "one", 2), (2, "two", 1), (1, "one", 0),
    ]  # fmt: skip
    assert history[0]["from"] == history[1]["digest"]


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_history_is_newest_first(commands, adopt, columns):
    """Every policy that ever was, by whom and why."""
    adopt(ONE)
    adopt(TWO)
    _, shown = commands.in_terminal("policy", "show", "--history", env={"COLUMNS": columns, "NO_COLOR": "1"})
    assert shown.index("two") < shown.index("one")
    assert shown.count("user:dana") == shown.count("agreed on Monday") == 2
    assert max(map(len, shown.splitlines())) <= int(columns)


def test_the_same_policy_is_adopted_once(commands, adopt):
    """Nothing to decide: it says so, and no second row is written."""
    adopt(ONE)
    said = adopt("# only a comment\n" + ONE)
    assert (said.code, said.out) == (0, "policy 1 is this very policy\n")
    assert len(commands("policy", "show", "--history", "--json").json["policies"]) == 1


def test_before_the_first_policy_there_is_none(commands):
    """It is said in a sentence, and is null."""
    import counterfoil

    counterfoil.open(commands.folder / "receipts.db").close()
    assert "no policy was ever adopted" in commands("policy", "show").out
    assert "no policy was ever adopted" in commands("policy", "show", "--history").out
    assert commands("policy", "show", "--json").json == {"policy": None}
    assert commands("policy", "show", "--history", "--json").json == {"policies": []}


@pytest.mark.parametrize("words", [("adopt", "p.yaml", *NAMED), ("show",)])
def test_no_store_is_made_unless_that_is_asked_for(commands, words):
    """A wrong path is not a new book with a policy of its own."""
    (commands.folder / "p.yaml").write_text(ONE, "utf-8")
    said = commands("policy", *words)
    assert said.code == 4
    assert "receipts.db: does not exist" in said.err
    assert [path.name for path in commands.folder.iterdir()] == ["p.yaml"]


@pytest.mark.parametrize("words", [(), ("--as", "Dana"), ("--reason", "x"), ("--as", " ", "--reason", "x")])
def test_without_a_terminal_it_needs_a_name_and_a_reason(commands, words):
    """Nobody to ask and nobody named: nothing is put in force."""
    (commands.folder / "p.yaml").write_text(ONE, "utf-8")
    assert commands("policy", "adopt", "p.yaml", "--new", *words).code == 2
    assert commands("policy", "show", "--json").json == {"policy": None}


def test_a_terminal_confirms_by_the_policys_own_digest(commands, adopt):
    """What changes is shown, the end of its digest must be typed, then the reason is asked for."""
    adopt(ONE)
    (commands.folder / "two.yaml").write_text(TWO, "utf-8")
    digest = commands("policy", "check", "two.yaml", "--json").json["digest"]
    code, shown = commands.in_terminal("policy", "adopt", "two.yaml", typed="yes\n", until="to confirm")
    assert (code, "nothing was decided" in shown) == (2, True)
    code, shown = commands.in_terminal(
        "policy",
        "adopt",
        "two.yaml",
        typed=f"{digest[-6:]}\nfewer mistakes\n",
        until="to confirm",
        env={"NO_COLOR": "1"},
    )
    assert code == 0, shown
    assert shown.index("+ rule refunds") < shown.index("in place of policy 1?")
    told = commands("policy", "show", "--json").json["policy"]
    assert (told["n"], told["reason"]) == (2, "fewer mistakes")
    assert told["how"].startswith("confirmed at a terminal by ")


def test_who_comes_second_is_told(commands, adopt):
    """Somebody adopted another one while this person was reading: exit 1, and theirs is not in force."""
    adopt(ONE)
    (commands.folder / "two.yaml").write_text(TWO, "utf-8")
    digest = commands("policy", "check", "two.yaml", "--json").json["digest"]
    third = ONE.replace("name: one", "name: three")
    seen = []

    def meanwhile():
        seen.append(adopt(third, name="three.yaml").code)
        return f"{digest[-6:]}\nmine\n"

    code, shown = commands.in_terminal("policy", "adopt", "two.yaml", typed=meanwhile, until="to confirm")
    assert (seen, code) == ([0], 1)
    assert "policy 2 is in force, and 1 was seen: nothing was changed" in shown
    assert commands("policy", "show", "--json").json["policy"]["policy"]["name"] == "three"


def test_a_warning_is_said_and_stops_nothing(commands, adopt):
    """What could never be used is named with its line, on standard error and in the JSON."""
    text = TWO.replace("{people: 2}", "{attempts: [first, same_key]}")
    said = adopt(text)
    assert (said.code, said.out) == (0, "policy 1 is in force\n")
    assert "warning: policy.yaml:4: rules.0.approval.attempts.1: same_key could never be used" in said.err
    told = commands("policy", "check", "policy.yaml", "--json")
    assert [warning.split(": ")[0] for warning in told.json["warnings"]] == ["policy.yaml:4"]


def test_what_is_shown_cannot_move_the_cursor(commands, adopt):
    """A name in a policy prints, or is refused; a reason on record is shown, not obeyed."""
    assert adopt(ONE.replace("name: one", 'name: "\\e[2K"')).code == 4
    adopt(ONE)
    with contextlib.closing(sqlite3.connect(commands.folder / "receipts.db")) as db:
        db.execute("DROP TRIGGER policy_is_final")
        record = json.loads(db.execute("SELECT record FROM policy").fetchone()[0]) | {"reason": "\x1b[2K"}
        db.execute("UPDATE policy SET record = ?", (json.dumps(record).encode(),))
        db.commit()
    assert "\x1b" not in commands("policy", "show").out
    assert "\\x1b[2K" in commands("policy", "show").out


# -- verify ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE policy SET at = at + 1 WHERE n = 1", ("policy 1", "chain")),
        (
            "UPDATE policy SET record = CAST(replace(record, 'user:dana', 'user:mara') AS BLOB) WHERE n = 2",
            ("policy 2", "chain"),
        ),
        (
            "UPDATE policy SET policy = CAST(replace(policy, ':\"refuse\"', ':\"allow\"') AS BLOB) WHERE n = 2",
            ("policy 2", "chain"),
        ),
        ("DELETE FROM policy WHERE n = 1", ("policy 2", "chain")),
    ],
)
def test_verify_finds_an_edited_policy(commands, adopt, statement, expected):
    """The chain of policies is part of what is verified: honest it is whole, edited it is named."""
    adopt(ONE)
    adopt(TWO)
    assert commands("verify", "--json").json["violations"] == []
    with contextlib.closing(sqlite3.connect(commands.folder / "receipts.db")) as db:
        guards = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE name LIKE 'policy_is_%'").fetchall())
        for name in guards:
            db.execute(f"DROP TRIGGER {name}")
        db.execute(statement)
        for guard in guards.values():
            db.execute(guard)
        db.commit()
    said = commands("verify", "--json")
    assert said.code == 1
    assert [(v["operation"], v["law"]) for v in said.json["violations"]] == [expected]
    assert f"the first: {expected[0]}\n" in commands("verify").out
