"""`counterfoil show`: the receipt, whole, at every width and without colour."""

from __future__ import annotations

import json
import re

import pytest
from tests.surface.books import SECRET, Book

import counterfoil
from counterfoil.cli import leaf, marks
from counterfoil.cli.story import Lane, Point, Span, Story
from counterfoil.cli.timeline import draw
from counterfoil.domain.answer import Silent
from counterfoil.domain.words import Dispatch, Outcome, Permission, Source
from counterfoil.runtime import actions

slow = pytest.mark.slow  # each of these starts at least one interpreter
CASES = ("succeeded", "rejected", "unknown", "not_sent", "sent_later", "resolved", "contradicted", "held")


@pytest.fixture
def book(tmp_path):
    """A closed receipts file with every outcome in it."""
    return Book(tmp_path).write(*CASES)


def shown(commands, book, key, *words):
    """The sheet of one operation, as a pipe gets it: no line ends in a blank or is wider than 120 columns."""
    said = commands("show", book.ids[key], "--store", book.path, *words)
    assert said.code == 0, said
    lines = said.out.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    assert "--json" in words or "--payload" in words or max(map(len, lines)) <= 120
    return said.out


SAYS = {
    "succeeded": ("✓ succeeded", "The effect took place.", "names  refund", "nothing is owed"),
    "rejected": ("☒ rejected", "The effect did not take place.", "function.refused", "refusal the card is closed"),
    "unknown": ("⬖ unknown", "The effect may have happened.", "No timer ends it.", "Whether the effect took place."),
    "not_sent": ("⇢ not_started", "Nothing left.", "→ call again  permitted"),
    "sent_later": ("dispatch 2", "not_sent: every attempt is proven not to have left", "⇢ not_sent", "✓ succeeded"),
    "resolved": ("✎ operator", "refund_id = re_7", "by user:mara", "in the dashboard"),
    "contradicted": (
        "≠ open",
        "≠ disagrees",
        "nothing was overwritten",
        "Which of the evidence that disagrees is right.",
    ),
    "held": ("Nothing was sent: it is held.", "⊘ call again  blocked", "of the same effect is unresolved"),
}


@slow
@pytest.mark.parametrize("key", SAYS)
def test_the_receipt_says_what_is_on_record(commands, book, key):
    """Authorized, attempted, observed, unknown and next, each in the words of its columns."""
    out = shown(commands, book, key)
    assert all(part in out for part in SAYS[key]), out
    assert all(band in out for band in ("Authorized", "Attempted", "Observed", "Unknown, and next", "History"))
    assert "≡ chain intact" in out


@slow
def test_blocked_steps_are_shown_with_their_rule(commands, book):
    """A step that may not be taken has no button: it is a line with the rule that blocks it."""
    short = shown(commands, book, "unknown")
    assert re.search(r"⊘ send again, on any basis  blocked\n[ ┊]+show --all", short)
    assert short.count("send again") == short.count("counterfoil resolve") == 1
    out = shown(commands, book, "unknown", "--all")
    assert "→ resolve with evidence  permitted" in out
    assert re.search(r"⊘ look  blocked\n[ ┊]+the contract names no look", out)
    assert re.search(r"⊘ send again, not_sent  blocked\n[ ┊]+an attempt may have left", out)
    assert re.search(r"⊘ send again, operator_override  blocked\n[ ┊]+no override is decided", out)
    assert "⊘ send again, on any basis  blocked" in shown(commands, book, "succeeded")


@slow
def test_what_is_missing_before_a_negative_counts(shop):
    """After a look that found nothing: each condition that failed, the fields compared, and the earliest time."""
    shop.faults({"route": "*", "behaviour": "lose_request", "times": 1})
    shop.intents(1)
    assert shop("run", "lab.jsonl", "--wait", "0.001").code == 1
    (line,) = shop("list", "--json").lines
    assert shop("reconcile", line["id"], "--actions", "lab.yaml").code == 1
    out = shop("show", line["id"]).out
    assert "Absence: 9 of 12 conditions met" in out
    assert "☐ missing: no longest_delivery is assumed, so the request may still arrive" in out
    assert "A negative never counts, as things are." in out
    assert "⌕ look  not found" in out
    assert "→ look  permitted" in out


@slow
def test_fields_that_were_compared_are_shown_beside_their_verdict(shop):
    """Evidence by a look names what agreed, never one weak field alone."""
    shop.faults({"route": "*", "behaviour": "lose_reply", "times": 1})
    shop.intents(1)
    assert shop("run", "lab.jsonl").code == 0
    (line,) = shop("list", "--json").lines
    out = shop("show", line["id"]).out
    assert "= payload  = account  = reference" in out
    assert re.search(r"dispatch +⇸ started ─+ ⇄ completed", out)
    assert re.search(r"outcome +◌ unobserved ┄+ +⬖ unknown [█/]+✓ succeeded ━+", out)


@slow
def test_payloads_are_shown_only_when_asked_for(commands, book):
    """Neither the payload nor what it returns is on the sheet or in its JSON, unless somebody asks."""
    for key in book.ids:
        assert SECRET not in shown(commands, book, key)
        assert SECRET not in shown(commands, book, key, "--json")
    assert shown(commands, book, "succeeded", "--payload").count(SECRET) == 2
    assert shown(commands, book, "succeeded", "--payload", "--json").count(SECRET) == 2


@slow
def test_hostile_text_is_text(commands, book):
    """What came from outside is shown with its control characters spelled out."""
    out = shown(commands, book, "resolved")
    assert "\\x1b[31mred\\u202e" in out
    assert "\x1b" not in out
    assert "\u202e" not in out


@slow
@pytest.mark.parametrize("width", [40, 60, 89, 120, 200])
def test_no_line_is_wider_than_the_terminal(commands, book, width):
    """At every width each line fits, and the id stands whole."""
    for key in ("unknown", "sent_later", "held"):
        env = {"COLUMNS": str(width), "NO_COLOR": "1"}
        code, out = commands.in_terminal("show", book.ids[key], "--store", book.path, env=env)
        assert code == 0
        assert max(len(line) for line in out.splitlines()) <= min(width, 120)
        assert book.ids[key] in out
        assert "\x1b" not in out


@slow
def test_a_beginning_of_an_id_is_enough(commands, book):
    """A beginning that fits one operation names it; one that fits more, or is too short, is an error that says so."""
    whole = book.ids["unknown"]
    assert whole in commands("show", whole[:-4], "--store", book.path).out
    assert whole in commands("show", whole[3:-4], "--store", book.path).out
    several = commands("show", whole[:8], "--store", book.path)
    assert (several.code, several.out) == (2, "")
    assert "write more of it" in several.err
    assert commands("show", "op_0", "--store", book.path).code == 2
    for nobody in ("op_ffffffff", "zzzzzzzz", "op_%", "op_____", ""):
        assert commands("show", nobody, "--store", book.path).code == 2


@slow
def test_json_is_the_export(commands, book):
    """`--json` is the export document on one line."""
    one = commands("show", book.ids["resolved"], "--store", book.path, "--json").json
    assert one == json.loads(commands("export", book.ids["resolved"], "--store", book.path).out)


@slow
def test_a_broken_chain_is_red_and_named(commands, book):
    """A sheet of a record that was edited says so where its seal stands, and which event it is."""
    at = int(book.ids["unknown"][3:15], 16) * 32768 + 2
    book.sqlite(("UPDATE event SET at = at - 1 WHERE id = ?", (at,)))
    out = shown(commands, book, "unknown")
    assert "✗" in out
    assert "event 2: chain: its hash does not cover what stands there" in out
    env = {"COLORTERM": "truecolor"}
    assert "38;2;208;59;59m✗" in commands.in_terminal("show", book.ids["unknown"], "--store", book.path, env=env)[1]


@slow
@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE event SET record = x'7b' WHERE id = ?", 4),
        ("UPDATE event SET kind = 'guessed' WHERE id = ?", 4),
        ("UPDATE event SET at = 1e300 WHERE id = ?", 0),
        ("UPDATE event SET at = -5.0 WHERE id = ?", 0),
        ("UPDATE event SET body = x'00' WHERE id = ?", 0),
        ("DELETE FROM event WHERE id = ?", 0),
    ],
)
def test_a_damaged_record_is_no_traceback(commands, book, statement, code):
    """Whatever somebody did to the file, the command says what it finds in a sentence."""
    at = int(book.ids["resolved"][3:15], 16) * 32768 + 3
    book.sqlite((statement, (at,)))
    for words in (("show",), ("show", "--json"), ("show", "--payload"), ("export", "--payload")):
        said = commands(words[0], book.ids["resolved"], *words[1:], "--store", book.path)
        assert said.code == code, said
        assert "Traceback" not in said.err


@slow
@pytest.mark.parametrize("width", [40, 60, 120])
def test_a_name_and_its_value_stay_together(commands, book, width):
    """However narrow the terminal, no line ends between a fact and its name."""
    env = {"COLUMNS": str(width), "NO_COLOR": "1"}
    _, out = commands.in_terminal("show", book.ids["unknown"], "--store", book.path, env=env)
    assert all(
        pair in out for pair in ("owner payments", "exposure 100", "why the contract names no look", "next a person")
    )
    assert "a person is next" in " ".join(out.split())


@slow
def test_one_colour_sequence_for_one_stretch(commands, book):
    """A bar of one style is one run on the terminal, and not one sequence for each of its cells."""
    env = {"COLORTERM": "truecolor", "COLUMNS": "100"}
    _, out = commands.in_terminal("show", book.ids["unknown"], "--store", book.path, env=env)
    (bar,) = [line for line in out.splitlines() if "permission" in line and "⊛" in line and "─" in line]
    assert bar.count("\x1b[") <= 12


# -- the timeline itself -----------------------------------------------------------------------------------------------


def told(*times, ongoing=True, many=1):
    """A story whose outcome is unknown from the second time on, with evidence at each later one."""
    end = times[-1]
    span = lambda start, stop, word: Span(start, stop, marks.mark_of(word), word.value)  # noqa: E731 - a table below
    lanes = [Lane("permission", (span(times[0], end, Permission.AUTHORIZED),))]
    lanes += [Lane(f"dispatch {i + 1}", (span(times[0], end, Dispatch.STARTED),)) for i in range(many)]
    parts = [span(times[0], times[1], Outcome.UNOBSERVED), span(times[1], end, Outcome.UNKNOWN)]
    lanes.append(Lane("outcome", tuple(parts)))
    points = [Point(t, marks.mark_of(Source.LOOK), f"e{i}", "not found") for i, t in enumerate(times[1:-1], start=1)]
    return Story(lanes=tuple(lanes), points=tuple(points), end=end, ongoing=ongoing)


T = 1_800_000_000.0
SHAPES = {
    "one moment": told(T, T, ongoing=False),
    "milliseconds": told(T, T + 0.004, T + 0.02),
    "hours": told(T, T + 0.01, T + 3600, T + 90_000),
    "four years": told(T, T + 0.001, T + 4 * 365 * 86_400),
    "a hundred looks": told(*(T + 7 * i for i in range(102))),
    "over": told(T, T + 1, T + 2, ongoing=False),
}


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 300])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_timeline_fits_its_width(shape, width):
    """However long and however crowded, no line is wider than asked, and the outcome's glyph is always there."""
    lines = [line.plain for line in draw(SHAPES[shape], width)]
    assert max(map(len, lines)) <= max(width, 22)
    assert any("⬖" in line for line in lines if line.startswith("outcome"))


def test_a_long_gap_is_cut_and_says_how_long_it_was():
    """What took hours is cut, with its length; what took milliseconds beside it is not."""
    axis = next(line.plain for line in draw(SHAPES["hours"], 120) if line.plain.startswith("UTC"))
    assert re.search(r"// 59 m 59 s //.*// 1 d //", axis) or re.search(r"// 1 h //.*// 1 d //", axis)
    assert axis.count("//") == 4
    assert "//" not in "".join(line.plain for line in draw(told(T, T + 1, T + 2, T + 3), 120))


def test_crowded_evidence_shares_a_mark():
    """Where there is more evidence than room, neighbours stand under one mark that names the first and the last."""
    lane = next(line.plain for line in draw(SHAPES["a hundred looks"], 60) if line.plain.startswith("evidence"))
    assert re.search(r"e1-\d+", lane)


def test_the_end_of_what_is_not_over_is_now():
    """What may still change ends at `now`, and goes on behind it; what is over does not."""
    assert draw(SHAPES["hours"], 100)[-1].plain.endswith("now")
    assert "now" not in draw(SHAPES["over"], 100)[-1].plain


@slow
@pytest.mark.parametrize("columns", ["80", "120"])
def test_a_receipt_with_hundreds_of_attempts_is_read_on_a_page(commands, tmp_path, columns):
    """The first and the last attempts, observations and lanes are drawn, and how many stand between is said."""

    def pay(order):
        raise counterfoil.NotSent("nobody answers")

    with counterfoil.open(tmp_path / "receipts.db", actor="agent:test") as ledger:
        guarded = ledger.action(pay, account="a", owner="o", authoriser="l", key=lambda order: order)
        named = [guarded("o-1") for _ in range(60)][-1].id
    code, page = commands.in_terminal(
        "show", named, "--store", tmp_path / "receipts.db", env={"COLUMNS": columns, "NO_COLOR": "1"}
    )
    lines = page.splitlines()
    assert (code, max(map(len, lines)) <= int(columns), len(lines) < 130) == (0, True, True)
    assert [
        line
        for line in ("and 53 more between", "and 53 attempts between", "and 53 observations between")
        if line not in page
    ] == []
    assert "dispatch 3 " in page
    assert "dispatch 4 " not in page
    assert "dispatch 60" in page
    assert "attempt 60 " in page


OWN = """
id: shop.manual
version: 1
provider: shop
effect: a refund by hand
sources:
  docs: {url: "https://example.com/docs", says: "nothing is documented", confidence: unknown}
request: {method: POST, path: /v1/refunds, body: json}
protection: {kind: none, source: docs}
repeat: {same_payload: unknown, other_payload: unknown, in_flight: unknown, source: docs}
answers:
  - {status: ["201"], finding: succeeded, source: docs}
reconcile: forbidden
send_deadline_seconds: 5
"""
OWN_ACTIONS = """
store: receipts.db
actor: agent:test
actions:
  refund: {contract: own.yaml, base_url: "http://127.0.0.1:9", account: a, owner: o, authoriser: l, key: /order}
"""


@slow
def test_a_contract_of_ones_own_is_at_hand_where_the_actions_are_named(commands, tmp_path):
    """`--actions FILE` brings it; without, nothing is offered that only it could allow, but an override that stands."""
    (tmp_path / "own.yaml").write_text(OWN, "utf-8")
    (tmp_path / "actions.yaml").write_text(OWN_ACTIONS, "utf-8")
    ledger = actions.load(tmp_path / "actions.yaml", store=tmp_path / "receipts.db")
    with ledger:
        registered = ledger.registry["refund"]
        registered.provider = Lost()
        order = registered.order({"order": "o-1"}, actor="agent:test", scopes={})
        named = ledger.call(order).id
    store, file = ("--store", tmp_path / "receipts.db"), ("--actions", tmp_path / "actions.yaml")
    assert "not at hand here" in commands("show", named, *store).out
    assert "→ look" not in commands("show", named, *store).out
    page = commands("show", named, *store, *file).out
    assert "not at hand here" not in page
    assert "the contract names no look" in page
    who = ("--as", "dana", "--reason", "they never got it")
    assert commands("override", named, *store, *file, *who).code == 0
    for words in (store, (*store, *file)):
        assert f"counterfoil attempt {named}" in commands("show", named, *words).out


class Lost:
    """A provider whose answer never comes."""

    def check(self, order):
        """Anything may be sent."""

    def send(self, order, flight, arguments=None):
        flight.may_have_left = True
        return Silent(may_have_left=True, reason="reset")


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_command_can_be_copied_as_it_stands(width):
    """However narrow it is: no line is longer than that, and the shell reads on after each but the last."""
    said = "counterfoil resolve op_0e0ec1c44907d9a131f7c6b5a4938271 --outcome OUTCOME --as YOU --reason 'so it is'"
    *begun, last = leaf.command(said, width).plain.split("\n")
    assert all(line.endswith(" \\") for line in begun)
    assert max(map(len, (*begun, last))) <= width
    assert " ".join(line.removesuffix("\\").strip() for line in (*begun, last)) == said
