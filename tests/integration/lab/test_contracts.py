"""The whole catalogue against its providers' behaviour, and what happens to a contract that claims too much."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from tests.integration.lab.playing import played, unsafe

from counterfoil import contracts
from counterfoil.domain.contract import Confidence, Group
from counterfoil.domain.template import LookTemplate
from counterfoil.lab.behaviour import model
from counterfoil.lab.catalogue import command, page
from counterfoil.lab.catalogue.check import check
from counterfoil.lab.catalogue.fences import fences
from counterfoil.lab.catalogue.weaken import weakened
from counterfoil.lab.world.run import folder, virtual

SECONDS = 100
DOCUMENTED = Confidence.DOCUMENTED
TOGETHER = "every clause of protection and repeat"


def lab(*arguments):
    """Run the command as a stranger would."""
    argv = [sys.executable, "-m", "counterfoil.lab", "contracts", *map(str, arguments), "--json"]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert run.stdout, run.stderr
    return run.returncode, json.loads(run.stdout.splitlines()[-1])


@pytest.mark.slow
def test_every_contract_is_safe_and_no_clause_of_it_claims_too_much(tmp_path):
    """Whatever its facts leave open; and the raw truth that is left says the same."""
    result = command.run(command.chosen([]), tmp_path, lambda _: None)
    assert [
        (row["contract"], row["unsafe"], row["misfits"], row["survivors"])
        for row in result["rows"]
        if not row["passed"]
    ] == []
    assert (result["unsafe_answers"], result["weakened_caught"]) == (0, result["weakened"])
    assert result["contracts"] == result["passed"] > 0
    for row in result["rows"]:
        assert row["weakened"] > 0, row["contract"]
        cases = [json.loads(line) for line in (tmp_path / row["contract"] / "cases.jsonl").read_text().splitlines()]
        effects = (tmp_path / row["contract"] / "effects.jsonl").read_text().splitlines()
        assert len(cases) == row["cases"]
        assert sum(case["effects"] for case in cases) == len(effects)
        assert not any(case["unsafe"] for case in cases)
    out = Console(file=io.StringIO(), width=140)
    page.show(result, out)
    assert f"{result['passed']} of {result['contracts']} safe" in out.file.getvalue()


def test_every_provider_action_has_a_behaviour():
    """A contract over HTTP that nothing independent plays is no part of the catalogue; the rest meet real servers."""
    loaded = [contracts.load(name) for name in contracts.names()]
    mine = {one.id for one in loaded if one.group is not Group.LABORATORY and one.request is not None}
    assert mine == set(model.names())


@pytest.mark.slow
def test_the_command_says_what_it_checked(tmp_path):
    """One contract, its counts, and exit code 0."""
    code, told = lab("--check", "--contract", "kubernetes.create", "--keep", tmp_path / "kept")
    assert (code, told["contracts"], told["passed"], told["unsafe_answers"]) == (0, 1, 1, 0)
    assert json.loads((tmp_path / "kept" / "result.json").read_text()) == told
    assert lab("--contract", "kubernetes.create") == (0, {"contracts": ["kubernetes.create"], "ok": True})
    code, told = lab("--check", "--contract", "nobody.knows")
    assert (code, "nobody.knows" in told["error"]) == (3, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant",
    ["retry_on_timeout", "timeout_is_rejected", "error_is_rejected", "retention_ignored", "last_rejection_wins"],
)
def test_a_rule_of_the_house_that_is_off_is_noticed(mutant):
    """By an answer that is unsafe, and exit code 1."""
    code, told = lab("--check", "--contract", "stripe.v1.refunds_create", "--sabotage", mutant)
    assert (code, told["ok"]) == (1, False)
    assert told["unsafe_answers"] > 0


def test_a_contract_of_another_provider_does_not_fit():
    """A route that is not there, and a payload that is another's, are named."""
    contract = contracts.load("resend.emails_send")
    for name, said in (("qonto.external_transfers.create", "no route"), ("moov.transfers.create", "no route")):
        with virtual(), folder() as place:
            found = check(contract, model.load(name), place)
        assert not found.passed
        assert said in found.misfits[0]
    with virtual(), folder() as place:
        found = check(contracts.load("moov.transfers.create"), model.load("resend.emails_send"), place)
    assert "no use for" in found.misfits[0]


def test_a_rule_that_nothing_confirms_is_named():
    """Somebody's word alone makes no rejection, and nothing that is compared may be equal by chance."""
    contract, behaviour = contracts.load("moov.transfers.create"), model.load("moov.transfers.create")
    made_up = msgspec.structs.replace(contract.answers[0], status=("402",), finding="rejected", where={}, match={})
    contract = msgspec.structs.replace(contract, answers=(*contract.answers, made_up))
    same = msgspec.structs.replace(behaviour, played=msgspec.structs.replace(behaviour.played, differs={}))
    with virtual(), folder() as place:
        found = check(contract, same, place)
    assert any("answers[2] is reached by no answer" in said for said in found.misfits)
    assert any("answers[0].match /amount: nothing in `differs`" in said for said in found.misfits)


ITEM = {
    "id": "$id", "account": "$account", "reference": "$header/x-client-reference", "state": "$state",
    "payload": "$sent",
}  # fmt: skip
LOOK = {
    "path": "/lookup/effects", "by": {"query:reference": "$header/x-client-reference"}, "item": ITEM,
    "found": {"status": 200, "body": {"account": "$account", "complete": "$whole", "items": "$items"}},
    "consistency": "strong", "pages": "short",
}  # fmt: skip
REFUSALS = {422: "refused", 401: "unauthorized", 400: "not_json", 413: "body_too_large"}
LOOKUP = {
    "id": "lab.lookup", "facts": [], "method": "POST", "path": "/lookup/effects", "ends": "never", "looks": [LOOK],
    "answers": {
        "done": {"status": 201, "body": {"id": "$id", "state": "done"}}, "errors": [{"status": 500}],
        "refusals": [{"status": status, "body": {"error": error}} for status, error in REFUSALS.items()],
    },
    "played": {"payload": {"amount": 7}, "differs": {"/amount": 8}, "known": {"/amount": 0}, "control": "control"},
}  # fmt: skip
"""A provider of which absence can be proven: as the laboratory's own promises it."""


@pytest.mark.parametrize(
    ("otherwise", "unsafe"),
    [
        ({}, set()),
        ({"looks": [LOOK | {"consistency": "eventual"}]}, {"eventual_read"}),
        ({"ends": "gone"}, {"ended"}),
    ],
)
def test_absence_is_proven_only_where_the_provider_keeps_its_word(otherwise, unsafe):
    """A look that lags, or a thing that was deleted, turns the same contract's word into a second effect."""
    with virtual(), folder() as place:
        found = check(contracts.load("lab.lookup"), msgspec.convert(LOOKUP | otherwise, model.Behaviour), place)
    assert {said.partition(":")[0] for said in found.unsafe} == unsafe
    assert (found.misfits, found.survivors) == ([], [])
    assert "looks[0].complete" in found.caught


def test_a_look_by_post_and_in_pages_is_as_good_as_any():
    """The same promises, asked for in the body of a POST and shown in two pages."""
    contract, (look,) = contracts.load("lab.lookup"), contracts.load("lab.lookup").looks
    asked = {"reference": ["{provider_key}", "{control}", "{negative}"], "after": "{cursor}"}
    request = LookTemplate(path="/lookup/search", method="POST", read_only="service", body=asked)
    sources = contract.sources | {
        "service": msgspec.structs.replace(contract.sources["service"], confidence=DOCUMENTED)
    }
    look = msgspec.structs.replace(look, request=request, next_page="/next", stable_pages=True)
    contract = msgspec.structs.replace(contract, looks=(look,), sources=sources)
    found = LOOK["found"] | {"body": LOOK["found"]["body"] | {"next": "$cursor"}}
    shown = LOOK | {
        "path": "/lookup/search", "method": "POST", "by": {"body:/reference": "$header/x-client-reference"},
        "next": "body:/after", "found": found,
    }  # fmt: skip
    for otherwise, wrong in (({}, set()), ({"next": ""}, set()), ({"consistency": "eventual"}, {"eventual_read"})):
        with virtual(), folder() as place:
            behaviour = msgspec.convert(LOOKUP | {"looks": [shown | otherwise]}, model.Behaviour)
            checked = check(contract, behaviour, place)
        assert {said.partition(":")[0] for said in checked.unsafe} == wrong
        assert (checked.misfits, checked.survivors) == ([], [])
        assert "looks[0].complete" in checked.caught
        short = "succeeded" if not otherwise else "unknown"
        assert wrong or checked.outcomes[f"eventual_read: {short}"] == 1


# -- surprises: a repeat that is not safe, or a status that lies -------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        ("binance.spot.new_order", "ended"),  # A1: a filled order frees its id
        ("aws.sqs.fifo_send", "key_expiry"),  # A2: five minutes
        ("qonto.external_transfers.create", "key_expiry"),  # A2: half an hour
        ("mastodon.statuses_create", "key_expiry"),  # A2: an hour
        ("square.payments.create", "lost_response"),  # A2: nobody says how long
        ("mastodon.statuses_create", "replayed_error"),  # A4: the key is written after the insert
        ("checkout_com.payments", "replayed_error"),  # B6: after a 5xx it is a fresh payment
        ("kubernetes.create", "ended"),  # C13: created and deleted looks like never created
        ("sendgrid.mail_send", "lost_response"),  # no key at all
        ("slack.chat_post_message", "lost_response"),  # E21: client_msg_id is no input
    ],
)
def test_a_naive_repeat_doubles_it_and_ours_does_not(name, scenario):
    """Whoever repeats because a key, or a hope, is there makes a second one; the contract knows better."""
    clause = next(
        w.clause for w in weakened(contracts.load(name)) if w.clause in (TOGETHER, "protection.retention_seconds")
    )
    clauses = [w.clause for w in weakened(contracts.load(name))]
    naive = unsafe(played(name, scenario, TOGETHER if TOGETHER in clauses else clause))
    assert "second_effect" in naive or "replay_after_retention" in naive
    assert unsafe(played(name, scenario)) == set()


def test_b5_stripe_v1_replays_a_500_for_ever():
    """The same key never heals it: it stays unknown, or is found by a look, and is never told as failed."""
    results = played("stripe.v1.refunds_create", "replayed_error")
    assert unsafe(results) == set()
    assert {result.run.outcome.value for result in results} <= {"unknown", "succeeded"}


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        ("qonto.external_transfers.create", "answers[0].match /external_transfer/amount"),
        ("mastodon.statuses_create", "answers[0].match /visibility"),
    ],
)
def test_b7_another_body_under_a_key_is_accepted_silently(name, clause):
    """The cached answer is of somebody else's request: what it says is compared with what was asked for."""
    assert unsafe(played(name, "mismatch", clause)) & {"mismatch_told_as_success", "false_acceptance"}
    results = played(name, "mismatch")
    assert unsafe(results) == set()
    assert any(result.run.stood[-1].contradicted for result in results)


def test_b8_paypal_answers_with_the_current_state():
    """A repeat is read by what it says, and another amount under the key is no success."""
    assert "mismatch_told_as_success" in unsafe(
        played("paypal.payments_v2.refund", "mismatch", "answers[0].match /amount/value")
    )
    assert unsafe(played("paypal.payments_v2.refund", "mismatch")) == set()


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("moov.transfers.create", 1),
        ("kubernetes.create", 1),
        ("aws.s3.put_if_none_match", 1),
        ("github.git_refs_create", 1),
    ],
)
def test_c9_an_error_that_means_that_somebodys_first_landed(name, index):
    """Read as a rejection it denies what happened; read as success it may be somebody else's."""
    assert contracts.load(name).answers[index].means == "first_landed"
    assert "false_rejection" in unsafe(played(name, "concurrent_duplicate", f"answers[{index}].finding"))
    assert unsafe(played(name, "concurrent_duplicate")) == set()
    assert unsafe(played(name, "mismatch")) == set()


def test_c10_plaids_500_may_have_made_the_transfer():
    """It proves nothing."""
    assert "false_rejection" in unsafe(played("plaid.transfer.create", "replayed_error", "answers[1].finding"))
    assert unsafe(played("plaid.transfer.create", "replayed_error")) == set()


def test_c10_every_5xx_of_binance_is_unknown():
    """An order is looked for by its id, after recvWindow."""
    results = played("binance.spot.new_order", "replayed_error")
    assert unsafe(results) == set()
    assert {result.run.outcome.value for result in results} == {"unknown", "succeeded"}


def test_c11_resend_has_two_different_409s():
    """The key that is spent on another body is never read as delivered, the one in flight never as refused."""
    rules = {rule.where.get("/name"): rule.means for rule in contracts.load("resend.emails_send").answers if rule.where}
    assert rules == {"invalid_idempotent_request": "key_conflict", "concurrent_idempotent_requests": "in_flight"}
    assert {result.run.outcome.value for result in played("resend.emails_send", "mismatch")} == {"unknown"}
    assert "false_rejection" in unsafe(played("resend.emails_send", "concurrent_duplicate", "answers[2].finding"))


def test_c14_sendgrid_takes_in_what_it_may_drop():
    """That it was taken in is all that is told as done, and nobody waits for more."""
    assert "false_success" in unsafe(played("sendgrid.mail_send", "other_state", "answers[0].finding"))
    results = played("sendgrid.mail_send", "other_state")
    assert unsafe(results) == set()
    assert {result.run.outcome.value for result in results} == {"succeeded", "unknown"}
    told = {effect for result in results for effect in result.run.effects.values()}
    assert told == {"accepted by SendGrid", ""}


def test_c14_a_200_of_slack_may_say_that_nothing_was_posted():
    """The body's own word counts, and only a named error denies it."""
    assert "false_success" in unsafe(played("slack.chat_post_message", "refused", "answers[0].where /ok"))
    assert unsafe(played("slack.chat_post_message", "refused")) == set()


def test_d15_square_shows_a_payment_after_seconds():
    """What is not shown is not absent; what stands on another page is asked for."""
    results = played("square.payments.create", "eventual_read")
    assert unsafe(results) == set()
    outcomes = [(result.case.sight.short, result.run.outcome.value) for result in results]
    assert sorted(outcomes) == [(False, "unknown"), (True, "succeeded")]


def test_d17_a_fence_closes_the_name_for_good():
    """S3: a placeholder that is there first keeps the late original out, and says which of the two it was."""
    contract, behaviour = contracts.load("aws.s3.put_if_none_match"), model.load("aws.s3.put_if_none_match")
    assert fences(contract, behaviour) == []
    (fence,) = contract.fences
    everything = msgspec.structs.replace(fence, won=("200", "412"))
    assert fences(msgspec.structs.replace(contract, fences=(everything,)), behaviour) != []


def test_the_pages_of_the_catalogue_are_fresh():
    """`scripts/contract_pages.py` has nothing to write."""
    script = Path(__file__).parents[3] / "scripts" / "contract_pages.py"
    run = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
