"""Every field report by number: the test that covers it, or what has to be built before one can."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

import pytest

PERMISSION, PROOF, POSTGRESQL, CATALOGUE, LOCAL, API, CONSOLE, PUBLISHING, GATEWAY = range(3, 12)
"""The issues that build what a report waits for, by their numbers."""
INTEGRATIONS = 0
"""Queues, durable engines and agent frameworks: a part of the design that no issue builds yet."""
ISSUES = frozenset({INTEGRATIONS, PERMISSION, PROOF, POSTGRESQL, CATALOGUE, LOCAL, API, CONSOLE, PUBLISHING, GATEWAY})

REPORTS_MAX = 82
NUMBERED = re.compile(r"test_((?:r\d+_)+)")


class Report(NamedTuple):
    """Where one report stands: a test that covers it, what is still awaited, or a part of each."""

    test: str = ""
    awaits: tuple[tuple[int, str], ...] = ()


def covered(test: str, *awaits: tuple[int, str]) -> Report:
    """It is tried on the product as it is; what is awaited is named beside it."""
    return Report(test, awaits)


def pending(*awaits: tuple[int, str]) -> Report:
    """Nothing of it can be tried yet."""
    return Report(awaits=awaits)


DUPLICATES = {
    1: covered("test_r01_an_answer_that_is_lost_after_the_commit_is_asked_for_once"),
    2: covered("test_r02_a_run_that_starts_again_meets_the_receipt", (INTEGRATIONS, "a real framework's retries")),
    3: pending((GATEWAY, "an error of a tools/call is passed on and never a reason to reconnect and call again")),
    4: pending((GATEWAY, "one upstream call per request, and a cancellation is no proof")),
    5: covered("test_r05_a_model_that_asks_again_is_told_to_wait", (GATEWAY, "a slow tool behind an MCP time-out")),
    6: covered("test_r06_the_text_of_an_unknown_outcome_asks_for_no_repeat"),
    7: covered("test_r07_a_workflow_that_is_restarted_keeps_its_key", (INTEGRATIONS, "a real engine's new run id")),
    8: covered(
        "test_r08_a_forced_second_attempt_is_two_peoples_decision",
    ),
    9: covered("test_r09_an_object_of_somebody_else_is_not_our_success"),
    10: covered("test_r10_the_receipt_counts_what_the_server_counted"),
    11: covered("test_r11_only_what_was_found_is_undone_and_both_receipts_say_so"),
    12: covered("test_r12_a_look_that_lags_behind_proves_no_absence"),
    13: covered("test_r13_callers_who_gave_up_on_the_store_do_not_add_up", (POSTGRESQL, "a server that is away")),
    14: covered("test_r14_whatever_is_no_clear_answer_to_the_final_dot_is_unknown"),
    15: covered("test_r15_what_the_provider_has_and_no_receipt_explains_is_listed"),
    16: covered("test_r16_twelve_threads_with_one_intent_send_once"),
}
"""Section 1."""

STUCK = {
    17: covered("test_r17_no_expiry_makes_a_started_send_claimable_again"),
    18: covered("test_r18_an_orphan_is_visible_and_has_a_way_out", (CONSOLE, "the same on a page")),
    19: covered("test_r19_nothing_falsy_is_an_absence"),
    20: covered("test_r20_charged_and_then_raised_is_unknown"),
    21: covered("test_r21_fifty_parallel_calls_are_one_send"),
    22: covered("test_r22_tokens_and_numbers_never_go_back"),
    23: covered("test_r23_a_paused_sender_is_not_replaced", (PROOF, "SIGSTOP at every point and past the horizon")),
    24: covered("test_r22_r24_no_clock_takes_a_send_out_of_a_living_hand", (POSTGRESQL, "the server's clock")),
    25: covered("test_r25_every_signal_leaves_a_safe_state"),
}
"""Section 2."""

FINGERPRINTS = {
    26: covered("test_r26_the_order_of_keys_is_nothing_and_a_text_stays_a_text"),
    27: covered("test_r27_neighbouring_integers_differ"),
    28: covered("test_r28_r29_distinct_values_are_distinct_intents", (GATEWAY, "numbers from a JavaScript client")),
    29: covered("test_r29_values_of_another_type_never_share_a_print"),
    30: covered("test_r30_a_model_and_its_plain_form_are_one_intent"),
    31: covered("test_r31_unset_is_not_null", (CONSOLE, "null against missing, shown to the approver")),
    32: covered("test_r32_no_text_and_no_number_is_mended"),
    33: covered("test_r33_a_print_names_its_rule", (API, "keys ordered alike from a TypeScript client")),
    34: covered("test_r34_what_differs_immaterially_is_recorded_and_never_sent"),
    35: covered("test_r35_every_process_makes_the_same_print"),
}
"""Section 3."""

KEYS = {
    36: covered("test_r36_a_fresh_key_of_the_model_is_no_fresh_intent"),
    37: covered("test_r37_call_ids_are_no_keys"),
    38: covered("test_r38_r39_a_busy_or_bound_key_means_an_earlier_request"),
    39: covered("test_r38_r39_a_busy_or_bound_key_means_an_earlier_request"),
    40: covered("test_r40_the_caller_names_the_occurrence"),
    41: covered("test_r41_a_task_that_is_redelivered_after_retention_is_never_sent"),
    42: covered(
        "test_r42_past_its_time_a_key_is_no_protection", (CATALOGUE, "real keys' lifetimes, escalated in time")
    ),
}
"""Section 4."""

APPROVALS = {
    43: covered(
        "test_r43_an_approval_is_bound_to_what_it_was_given_for", (INTEGRATIONS, "a replayed interrupt of a graph")
    ),
    44: covered("test_r44_every_part_of_a_call_is_bound", (CATALOGUE, "the process adapter's whole command line")),
    45: covered(
        "test_r45_a_sibling_that_is_done_answers_from_its_receipt",
        (INTEGRATIONS, "a graph's node that runs again with its siblings"),
    ),
    46: covered("test_r46_an_answer_is_given_once", (INTEGRATIONS, "a checkpoint that is resumed twice")),
    47: covered("test_r47_nobody_answering_is_expiry"),
    48: covered("test_r48_a_wait_that_ends_changes_nothing"),
    49: covered("test_r49_r82_approved_and_not_sent_is_seen_and_sent_once"),
    50: covered("test_r50_an_approval_that_is_left_over_runs_out"),
    51: covered("test_r51_no_window_lets_an_approval_be_used_twice"),
}
"""Section 5."""

STORES = {
    52: covered("test_r52_a_claim_nobody_answered_for_sends_nothing", (LOCAL, "the caller's own row and its receipt")),
    53: covered(
        "test_r53_a_commit_that_answers_rollback_is_no_commit", (LOCAL, "the same in the caller's transaction")
    ),
    54: covered("test_r54_what_fails_at_the_commit_is_run_again_from_zero", (LOCAL, "re-runs from zero")),
    55: covered("test_r55_cancelled_callers_leave_whole_receipts"),
    56: covered("test_r56_eight_processes_claim_while_a_writer_commits"),
    57: covered("test_r57_every_connection_syncs_fully"),
    58: covered("test_r58_a_worker_whose_row_vanished_does_not_insert_and_send_again"),
    59: covered("test_r59_nothing_rests_on_a_session"),
}
"""Section 6."""

TRANSPORT = {
    60: covered(
        "test_r60_each_tool_of_a_cancelled_batch_says_what_became_of_it", (INTEGRATIONS, "a graph's own batch")
    ),
    61: covered("test_r61_a_tool_that_is_interrupted_while_it_runs_is_unknown"),
    62: covered("test_r62_a_client_that_gave_up_does_not_lose_the_answer", (GATEWAY, "a downstream client that left")),
    63: covered("test_r63_r64_a_connection_that_was_kept_alive_is_not_trusted"),
    64: covered("test_r63_r64_a_connection_that_was_kept_alive_is_not_trusted"),
    65: covered("test_r65_what_fails_after_the_first_byte_is_unknown"),
    66: covered("test_r66_what_somebody_else_doubled_is_found_and_needs_a_person"),
    67: pending((PUBLISHING, "the browser that submits once")),
}
"""Section 7."""

QUEUES = {
    68: pending((INTEGRATIONS, "a queue that redelivers what still runs")),
    69: pending((INTEGRATIONS, "a queue's worker that dies right after its send")),
    70: pending((INTEGRATIONS, "a queue whose acknowledgement fails after the success")),
    71: pending((INTEGRATIONS, "an engine that recovers what still runs in another process")),
}
"""Section 8."""

RECONCILIATION = {
    72: covered("test_r72_a_search_that_lags_and_mangles_neither_denies_nor_confirms"),
    73: covered("test_r73_a_read_that_failed_is_not_a_read_that_found_nothing"),
    74: covered("test_r74_forbidden_is_not_absent"),
    75: covered("test_r75_a_killed_bot_finds_its_ticket_when_it_is_started_again"),
}
"""Section 9."""

SECRETS = {
    76: covered(
        "test_r76_no_end_of_a_call_leaves_a_secret_behind",
        (API, "problems and logs of the server"),
        (CONSOLE, "pages"),
        (GATEWAY, "answers to MCP clients"),
    ),
    77: covered("test_r77_a_guessable_value_cannot_be_found_by_its_prints"),
    78: covered("test_r78_what_a_tool_raises_is_not_told_to_the_model", (GATEWAY, "errors of an upstream tool")),
    79: covered("test_r79_the_business_key_never_leaves"),
}
"""Section 10."""

PAGES = {
    80: pending((API, "a decision delivered three times is one"), (CONSOLE, "twenty submits are one decision")),
    81: pending((CONSOLE, "a stale form meets the page of what changed"), (API, "If-Match on every decision")),
    82: covered("test_r49_r82_approved_and_not_sent_is_seen_and_sent_once", (CONSOLE, "the same on a page")),
}
"""Section 11."""

SECTIONS = (
    *(DUPLICATES, STUCK, FINGERPRINTS, KEYS, APPROVALS, STORES),
    *(TRANSPORT, QUEUES, RECONCILIATION, SECRETS, PAGES),
)
REPORTS = {number: report for section in SECTIONS for number, report in section.items()}


def numbers_of(test: str) -> set[int]:
    """The reports a test names: `test_r63_r64_...` is two."""
    named = NUMBERED.match(test)
    return {int(word[1:]) for word in named[1].split("_") if word} if named else set()


def offences(reports: dict[int, Report], tests: Iterable[str]) -> list[str]:
    """What is wrong with a table of reports, given the names of all tests there are."""
    there = set(tests)
    tried = {number for test in there for number in numbers_of(test)}
    found = [f"R{number} is in no row" for number in range(1, REPORTS_MAX + 1) if number not in reports]
    for number, (test, awaits) in sorted(reports.items()):
        if test and test not in there:
            found.append(f"R{number}: there is no {test}")
        if test and number not in numbers_of(test):
            found.append(f"R{number}: {test} does not carry its number")
        if not test and number in tried:
            found.append(f"R{number} is tried and said to be pending")
        if not test and not awaits:
            found.append(f"R{number} is neither covered nor awaited")
        found += [f"R{number} awaits {issue}, {why!r}" for issue, why in awaits if issue not in ISSUES or not why]
    return found + [f"R{number} is no report" for number in sorted(tried | set(reports)) if number > REPORTS_MAX]


@pytest.fixture(scope="module")
def tests(request) -> list[str]:
    """The name of every test function there is, read and not run."""
    trees = [
        ast.parse(path.read_text(encoding="utf-8")) for path in (request.config.rootpath / "tests").rglob("test_*.py")
    ]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        node.name for tree in trees for node in ast.walk(tree) if isinstance(node, kinds) and node.name[:5] == "test_"
    ]


def test_every_report_is_covered_or_awaited(tests):
    """No number is missing, every named test exists and carries its number, and whatever is awaited is named."""
    assert offences(REPORTS, tests) == []


def test_sections_do_not_overlap():
    """A number stands in one section."""
    assert sum(map(len, SECTIONS)) == len(REPORTS) == REPORTS_MAX


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (None, "R3 is in no row"),
        (Report(), "R3 is neither covered nor awaited"),
        (covered("test_r03_gone"), "R3: there is no test_r03_gone"),
        (covered("test_r04_there"), "R3: test_r04_there does not carry its number"),
        (pending((12, "something")), "R3 awaits 12, 'something'"),
        (pending((GATEWAY, "")), "R3 awaits 11, ''"),
    ],
)
def test_a_planted_offence_is_seen(report, said):
    """A row that is missing, empty, misdirected or without a reason is found."""
    table = {number: pending((PROOF, "its turn")) for number in range(1, REPORTS_MAX + 1)}
    table[4] = covered("test_r04_there")
    if report is None:
        del table[3]
    else:
        table[3] = report
    assert offences(table, ["test_r04_there"]) == [said]


def test_a_report_that_came_to_be_tried_leaves_the_pending():
    """Whoever writes a report's test changes its row."""
    table = {number: pending((PROOF, "its turn")) for number in range(1, REPORTS_MAX + 1)}
    assert offences(table, ["test_r03_r14_now_there_is_one"]) == [
        "R3 is tried and said to be pending",
        "R14 is tried and said to be pending",
    ]
    assert offences(table, ["test_r83_of_nothing"]) == ["R83 is no report"]
