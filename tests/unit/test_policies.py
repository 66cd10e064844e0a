"""Policy files: what is wrong is named with its file, line and key, and nothing wrong is ever put in force."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterfoil.domain.errors import InvariantBroken, PolicyInvalid
from counterfoil.domain.policy import (
    Escalation,
    Otherwise,
    Override,
    Policy,
    Retention,
    Rule,
    When,
    decode,
    digest,
    encode,
)
from counterfoil.domain.terms import Breaker, OneShot, Required
from counterfoil.domain.words import AttemptClass
from counterfoil.runtime import policies
from counterfoil.runtime.policy_entries import seconds

ROOT = Path(__file__).parents[2]
HEAD = "name: shop\notherwise: refuse\n"
WHOLE = """name: shop
rules:
  - name: large
    when: {tenants: [eu], actions: ["refund*"], accounts: [acct], above: 500}
    approval:
      people: 2
      approvers: [dana, mara]
      within: 15m
      attempts: [first, same_key]
      uses: 3
    one_shot: absolute
  - {name: small, when: {actions: ["refund*"]}, approval: none, one_shot: true}
  - {name: rest, when: {}, refuse: not here}
otherwise: allow
override: {people: 1, above: 100, people_above: 2, approvers: [dana, mara]}
breakers: [{name: b, actions: ["refund*"], accounts: [a], unknown_exposure_max: 2000}]
escalation: [{actions: [refund], accounts: [a], after: 90s, repeat: 4h, to: oncall, business_owner: finance}]
retention: [{sensitivity: personal, bodies: 30d, receipts: 86400000}]
"""


@pytest.fixture
def load(tmp_path):
    """Load a policy from text."""

    def load(text):
        path = tmp_path / "policy.yaml"
        path.write_text(text, encoding="utf-8")
        return policies.load(path)

    return load


def rules(*lines, rest=HEAD):
    """A policy file with these rules, each on a line of its own from line 2 on."""
    return "rules:\n" + "".join(f"  - {line}\n" for line in lines) + rest


def rule(**fields):
    """One rule on one line."""
    said = {"name": "r", "when": "{}", "approval": "none"} | fields
    return "{" + ", ".join(f"{key}: {value}" for key, value in said.items() if value is not None) + "}"


def test_every_word_of_a_file_is_in_the_policy(load):
    """A file that says everything: durations are seconds, words are what they mean."""
    loaded = load(WHOLE)
    attempts = (AttemptClass.FIRST, AttemptClass.SAME_KEY)
    asked = Required(people=2, approvers=("dana", "mara"), seconds=900.0, attempts=attempts, uses=3)
    when = When(tenants=("eu",), actions=("refund*",), accounts=("acct",), above=500.0)
    assert loaded.warnings == ()
    assert loaded.policy == Policy(
        name="shop",
        rules=(
            Rule(name="large", when=when, approval=asked, one_shot=OneShot.ABSOLUTE),
            Rule(name="small", when=When(actions=("refund*",)), approval=None, one_shot=OneShot.YES),
            Rule(name="rest", when=When(), approval=None, refuse="not here"),
        ),
        otherwise=Otherwise.ALLOW,
        override=Override(people=1, above=100.0, people_above=2, approvers=("dana", "mara")),
        breakers=(Breaker(name="b", actions=("refund*",), accounts=("a",), unknown_exposure_max=2000.0),),
        escalation=(
            Escalation(
                actions=("refund",), accounts=("a",), after_seconds=90.0, repeat_seconds=14_400.0, to="oncall",
                business_owner="finance",
            ),
        ),
        retention=(Retention(sensitivity="personal", bodies_seconds=2_592_000.0, receipts_seconds=86_400_000.0),),
    )  # fmt: skip
    assert decode(encode(loaded.policy)) == loaded.policy


def test_the_example_may_be_adopted():
    """The policy that comes with the project is sound, and says what its comments say."""
    loaded = policies.load(ROOT / "examples" / "policy.yaml")
    assert loaded.warnings == ()
    assert loaded.policy.otherwise is Otherwise.REFUSE
    assert [rule.one_shot.value for rule in loaded.policy.rules] == ["yes", "no", "absolute", "no", "no"]


def test_what_a_rule_leaves_out_has_its_documented_default(load):
    """One person but the requester, a day, one use, before anything has left."""
    (made,) = load(rules(rule(approval="{}"))).policy.rules
    assert made.approval == Required()
    assert (made.when, made.refuse, made.one_shot) == (When(), "", OneShot.NO)
    bare = load("rules: []\n" + HEAD).policy
    assert bare == Policy(name="shop", rules=(), otherwise=Otherwise.REFUSE)


@pytest.mark.parametrize(
    ("said", "expected"),
    [("90s", 90), ("15m", 900), ("24h", 86_400), ("30d", 2_592_000), ("1.5h", 5_400), (90, 90), (0.5, 0.5)],
)
def test_durations_are_read(said, expected):
    """A number with its unit, or seconds."""
    assert seconds(said) == expected


@pytest.mark.parametrize("said", ["", "24", "h", "24 h", "24H", "-1h", "1h30m", "1w", "٣h", "1e3s"])
def test_nothing_else_is_a_duration(said):
    """What could be read in two ways is not read at all."""
    assert seconds(said) is None


WRONG_WORDS = [
    ("rules: []\nname: x\n", 1, "otherwise is missing: one of allow, refuse"),
    ("rules: []\nname: x\notherwise: maybe\n", 3, "otherwise: invalid enum value 'maybe': one of allow, refuse"),
    ("otherwise: allow\nname: x\n", 1, "rules is missing"),
    ("rules: []\n" + HEAD + "rule: []\n", 4, "rule: unknown key"),
    (rules(rule(whenn="{}")), 2, "rules.0.whenn: unknown key"),
    (rules(rule(when=None)), 2, "rules.0: when is missing"),
    (rules(rule(when="{action: [a]}")), 2, "rules.0.when.action: unknown key"),
    (rules(rule(approval="{peeple: 1}")), 2, "rules.0.approval.peeple: unknown key"),
    (rules(rule(approval="anybody")), 2, "rules.0.approval: invalid enum value 'anybody': one of none, {people: ...}"),
    (rules(rule(approval="{attempts: [frist]}")), 2, "attempts.0: invalid enum value 'frist': one of first, "),
    (rules(rule(one_shot="maybe")), 2, "rules.0.one_shot: invalid enum value 'maybe': one of true, false, absolute"),
    (rules(rule(one_shot="yes")), 2, "put it in quotes"),
    (rules(rule(when="{actions: refund}")), 2, "rules.0.when.actions: expected `array`, got `str`"),
    (rules(rule(approval="{people: true}")), 2, "rules.0.approval.people: expected `int`, got `bool`"),
    ("[]", 1, "expected `object`, got `array`"),
    ("", 1, "is empty"),
    ("name: [", 2, "is not YAML"),
    ("name: a\nname: b\n", 2, "key 'name' stands twice"),
]

FLAWS = [
    (rules(rule(name="' '")), 2, "rules.0.name: must be 1 to 200 characters"),
    (rules(rule(name='"a\\u202Eb"')), 2, "rules.0.name: must be 1 to 200 characters that print"),
    (
        rules(rule(name="a", when="{actions: [a]}"), rule(name="a")),
        3,
        "rules.1.name: 'a' stands twice (first at rules.0)",
    ),
    (rules(rule(name="a"), rule(name="b")), 3, "rule 'b' is never reached: rule 'a' speaks of all of it"),
    (
        rules(rule(name="a", when='{actions: ["re*"]}'), rule(name="b", when="{actions: [refund], above: 5}")),
        3,
        "rule 'b' is never reached",
    ),
    (rules(rule(when="{actions: []}")), 2, "rules.0.when.actions: names nothing"),
    (rules(rule(when='{accounts: ["a?"]}')), 2, "rules.0.when.accounts.0: holds ?; only * is special"),
    (rules(rule(when='{tenants: ["[ab]"]}')), 2, "rules.0.when.tenants.0: holds [ ]; only * is special"),
    (rules(rule(when='{actions: [""]}')), 2, "rules.0.when.actions.0: must be 1 to 2000"),
    *(
        (rules(rule(when=f"{{above: {n}}}")), 2, "rules.0.when.above: is")
        for n in ("0", "-1", "-0.5", f"1{'0' * 400}.0")
    ),
    *((rules(rule(when=f"{{above: {n}}}")), 2, "reads as float") for n in (".nan", ".inf", "1.0e+400")),
    (rules(rule(approval=None)), 2, "rules.0: says neither approval nor refuse; write `approval: none`"),
    (rules(rule(approval="null")), 2, "rules.0: says neither approval nor refuse"),
    (
        rules(rule(approval="none", refuse="not here")),
        2,
        "rules.0: it refuses, and so takes neither approval nor one_shot",
    ),
    (rules(rule(approval=None, refuse="not here", one_shot="true")), 2, "rules.0: it refuses, and so takes"),
    (rules(rule(approval=None, refuse='""')), 2, "rules.0.refuse: must be 1 to"),
    (rules(rule(approval="{people: 0}")), 2, "rules.0.approval.people: is 0; from 1 to 100"),
    (rules(rule(approval="{people: 101}")), 2, "rules.0.approval.people: is 101; from 1 to 100"),
    (rules(rule(approval="{people: 2, approvers: [a]}")), 2, "people: is 2, and 1 may approve: a"),
    (rules(rule(approval="{approvers: []}")), 2, "rules.0.approval.approvers: names nobody"),
    (rules(rule(approval='{approvers: ["agent :x"]}')), 2, "rules.0.approval.approvers.0: 'agent :x' is an agent"),
    (
        rules(rule(approval="{people: 2, approvers: [dana, user:Dana]}")),
        2,
        "'user:Dana' and 'dana' are one person (and 1 more)",
    ),
    (rules(rule(approval="{approvers: [a, A]}")), 2, "rules.0.approval.approvers.1: 'A' and 'a' are one person"),
    (rules(rule(approval='{approvers: ["d\u0430na"]}')), 2, "approvers.0: 'd\\u0430na' passes for another name"),
    (rules(rule(approval="{approvers: [a, a]}")), 2, "rules.0.approval.approvers.1: 'a' stands twice"),
    (rules(rule(approval='{approvers: [""]}')), 2, "rules.0.approval.approvers.0: must be 1 to"),
    (rules(rule(approval="{within: soon}")), 2, "within: is 'soon'; a duration is like 90s, 15m, 24h or 30d"),
    (rules(rule(approval="{within: 0}")), 2, "rules.0.approval.within: is 0 s; a duration is greater than 0"),
    (rules(rule(approval="{within: 40000d}")), 2, "at most 36500d"),
    (rules(rule(approval="{uses: 0}")), 2, "rules.0.approval.uses: is 0; at least 1"),
    (rules(rule(approval="{attempts: []}")), 2, "rules.0.approval.attempts: does not hold first"),
    (rules(rule(approval="{attempts: [first, first]}")), 2, "rules.0.approval.attempts: names an attempt twice"),
    ("rules: []\nname: ' x'\notherwise: allow\n", 2, "name: must be 1 to 200"),
]

SCOPED = [
    ("override: {people: 1, approvers: []}", "override.approvers: names nobody"),
    ("override: {people: 1, approvers: [a, Agent:x]}", "override.approvers.1: 'Agent:x' is an agent"),
    ("override: {people: 0}", "override.people: is 0"),
    ("override: {above: 0}", "override.above: is 0; a limit is finite and greater than 0"),
    ("override: {people_above: 3}", "override.people_above: says nothing without above"),
    ("override: {people: 3, above: 5}", "override.people_above: is fewer than the 3 asked below 5"),
    ("override: {above: 5, approvers: [a]}", "override.people_above: is 2, and 1 may approve: a"),
    ("breakers: [{name: b}]", "breakers.0: unknown_exposure_max is missing"),
    ("breakers: [{name: b, unknown_exposure_max: 0}]", "breakers.0.unknown_exposure_max: is 0"),
    ("breakers: [{name: b, unknown_exposure_max: 1, tenants: [a]}]", "breakers.0.tenants: unknown key"),
    (
        "breakers: [{name: b, unknown_exposure_max: 1}, {name: c, actions: [a], unknown_exposure_max: 1}]",
        "breakers.1: is never reached: breakers.0 speaks of all of it before",
    ),
    (
        "breakers: [{name: b, actions: [a], unknown_exposure_max: 1}, {name: b, unknown_exposure_max: 1}]",
        "breakers.1.name: 'b' stands twice",
    ),
    ("escalation: [{after: 0}]", "escalation.0.after: is 0 s"),
    ("escalation: [{repeat: 1x}]", "escalation.0.repeat: is '1x'"),
    ("escalation: [{to: ' x'}]", "escalation.0.to: must be"),
    ("escalation: [{}, {}]", "escalation.1: is never reached"),
    ("retention: [{sensitivity: s}]", "retention.0: says neither bodies nor receipts"),
    ("retention: [{sensitivity: s, bodies: 2d, receipts: 1d}]", "retention.0.bodies: are kept for longer than"),
    ("retention: [{sensitivity: s, bodies: -1}]", "retention.0.bodies: is -1 s"),
    ("retention: [{sensitivity: s, bodies: x, receipts: 1d}]", "retention.0.bodies: is 'x'"),
    (
        "retention: [{sensitivity: s, bodies: 1d}, {sensitivity: s, bodies: 1d}]",
        "retention.1.sensitivity: 's' stands twice",
    ),
]
SECTIONS = [("rules: []\n" + HEAD + line + "\n", 4, problem) for line, problem in SCOPED]


@pytest.mark.parametrize(("text", "line", "problem"), [*WRONG_WORDS, *FLAWS, *SECTIONS])
def test_a_mistake_is_named_with_its_line_and_key(load, tmp_path, text, line, problem):
    """The file, the line, the key and what is wrong there; where there is more, how much."""
    with pytest.raises(PolicyInvalid) as refused:
        load(text)
    assert str(refused.value).startswith(f"{tmp_path / 'policy.yaml'}:{line}: ")
    assert problem in str(refused.value)


def test_the_first_of_several_mistakes_is_named_and_the_rest_counted(load):
    """In the order of the file."""
    with pytest.raises(PolicyInvalid, match=r":2: rules\.0\.approval\.people: is 0.*\(and 2 more\)"):
        load(rules(rule(approval="{people: 0, uses: 0, within: 0}")))


def test_a_file_that_is_not_there(tmp_path):
    """It is named, without a line."""
    with pytest.raises(PolicyInvalid, match=r"none\.yaml: cannot be read"):
        policies.load(tmp_path / "none.yaml")


def test_an_approver_that_is_spelled_like_a_group_is_warned_of(tmp_path):
    """Approvers are names of people: nobody is in a group that nothing knows."""
    path = tmp_path / "policy.yaml"
    path.write_text(
        "name: p\notherwise: allow\nrules:\n  - {name: r, when: {}, approval: {approvers: ['group:finance', dana]}}\n"
        "override: {approvers: ['team:desk']}\n",
        "utf-8",
    )
    warned = policies.load(path).warnings
    assert [said.partition(" is taken")[0].rpartition(" ")[2] for said in warned] == ["group:finance", "team:desk"]


@pytest.mark.parametrize("word", ["same_key", "after_absence", "override"])
def test_an_attempt_that_could_never_be_used_is_warned_of(load, tmp_path, word):
    """One use is taken by the attempt before: it may be adopted, and a person is told."""
    loaded = load(rules(rule(approval=f"{{attempts: [first, {word}]}}")))
    (warning,) = loaded.warnings
    assert warning.startswith(f"{tmp_path / 'policy.yaml'}:2: rules.0.approval.attempts.1: {word} could never be used")
    assert load(rules(rule(approval=f"{{attempts: [first, {word}], uses: 2}}"))).warnings == ()
    assert load(rules(rule(approval="{attempts: [first, after_not_sent, fence]}"))).warnings == ()


def test_a_narrower_rule_after_another_is_no_mistake(load):
    """Only a rule of which nothing is left is one."""
    above = rule(name="a", when="{above: 5}")
    assert len(load(rules(above, rule(name="b"))).policy.rules) == 2
    assert len(load(rules(above, rule(name="b", when="{above: 4}"))).policy.rules) == 2


def test_equal_files_are_one_policy(load):
    """Comments, order of keys and spelling of numbers are not part of a policy; defaults written out are its own."""
    spelled = rules("{when: {}, approval: {within: 1d, people: 1}, name: r}  # the same")
    assert digest(load(spelled).policy) == digest(load(rules(rule(approval="{within: 86400}"))).policy)


def test_a_stored_policy_that_cannot_be_read_is_an_error():
    """Nothing is judged by what this version does not understand."""
    with pytest.raises(InvariantBroken, match="policy 3 cannot be read by this version"):
        policies.read(3, b'{"name": 1}')
