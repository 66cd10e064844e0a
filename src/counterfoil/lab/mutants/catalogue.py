"""The catalogue of mutants: each rule that can be turned off, the laws that must break then, and where it is hunted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from counterfoil.lab.mutants import answers, claims, disk, looks, people, running, transport
from counterfoil.lab.world.options import NIGHT_SECONDS

WORLDS, APPROVALS, IMAGES, DEMO, TAMPER = "simulate", "approvals", "images", "demo", "tamper"
MATRIX, RACE = "matrix", "race"
"""What notices a mutant: virtual worlds, cases of approvals, crash images, the demo, a book that is tampered with,
cells of the crash matrix, two callers of one operation in a database."""
BAR = 48
"""The list that must be noticed, whole; what is numbered beyond it, simulation or the field has added."""


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """One rule turned off."""

    number: int
    """As in the list."""
    slug: str
    off: Callable[[], None] | None = None
    """Turns its rule off in the process that calls it; None while what it is about is not built."""
    laws: frozenset[str] = frozenset()
    """One of these must be what breaks: first words of what a checker says. A crash is none."""
    subject: str = WORLDS
    terrain: Mapping[str, Any] = {}
    """Where its worlds differ from those that are drawn, so that it need not be hunted for long; or which cases."""
    weight: int = 1
    """What takes longer begins earlier."""
    tier: str = "pr"
    """When it is tried: before a pull request, or only in full."""
    awaits: str = ""
    """What will build what it is about: until then it is pending."""
    rule: str = ""
    """What is done wrong, of one that cannot say it itself."""

    def says(self) -> str:
        """What is done wrong, in one sentence."""
        return self.rule or ((self.off and self.off.__doc__) or "").strip().partition("\n")[0]


def _hunted(number: int, off: Callable[[], None], *laws: str, **terrain: Any) -> Mutant:
    return Mutant(number=number, slug=off.__name__, off=off, laws=frozenset(laws), terrain=terrain)


def _asked(number: int, off: Callable[[], None], case: str) -> Mutant:
    return Mutant(
        number=number, slug=off.__name__, off=off, laws=frozenset({"I2"}), subject=APPROVALS, terrain={"cases": [case]},
        weight=2,
    )  # fmt: skip


def _elsewhere(number: int, off: Callable[[], None], law: str, subject: str, weight: int = 2) -> Mutant:
    return Mutant(number=number, slug=off.__name__, off=off, laws=frozenset({law}), subject=subject, weight=weight)


def _celled(number: int, off: Callable[[], None], *cells: str) -> Mutant:
    return Mutant(
        number=number, slug=off.__name__, off=off, laws=frozenset({"stands"}), subject=MATRIX, terrain={"cells": cells}
    )


def _pending(number: int, slug: str, rule: str, awaits: str) -> Mutant:
    return Mutant(number=number, slug=slug, rule=rule, awaits=awaits)


ABSENCE = "The contract catalogue, evidence rules, and absence that is actually proven"
LOCAL = "Inside the caller's own transaction: the refund requested once, and a COMMIT whose answer was lost"
"""Issues by their titles, so that whoever builds them finds what awaits them."""

LOST = {"answered": 1.0, "reply_lost": 2.0}
"""Most answers never come: what follows a send that nobody knows about is then tried often."""
BLIND = {"shown": 1.0, "error": 6.0}
"""Looks that mostly say nothing."""
EAGER = {"workers": 2, "sweep_seconds": 2.0, "asks": 0}
"""Two workers that are never far behind, and nobody to be asked."""

CATALOGUE: tuple[Mutant, ...] = (
    _hunted(1, claims.send_before_record, "I1"),
    _hunted(2, claims.send_despite_lost_ack, "I1", "I15"),
    _hunted(3, transport.retry_on_timeout, "I3"),
    _hunted(4, claims.new_key_per_attempt, "I9"),
    _hunted(5, claims.recovery_makes_ready, "I3", "I5", sends=LOST, rates={"crash": 0.03}),
    _hunted(6, claims.claim_ignores_state, "I3", "I11"),
    _hunted(
        7, claims.settle_not_fenced, "I5",
        kinds=("natural",), sends=LOST, looks=BLIND, looks_max=1, rates={"stop": 0.3}, stop_at="before Send",
        stops=(60.0,), **EAGER,
    ),
    _asked(8, people.approval_before_claim, "worker: revoked before effect 4 (Amend)"),
    _asked(9, people.expiry_ignored, "clock: forth over the end and back"),
    _asked(10, people.approval_not_bound, "contract: answers"),
    _hunted(
        11, claims.clock_before_claim, "I2",
        rates={"stop": 0.1}, stop_at="before Amend", stops=(310.0,), workers=3, sweep_seconds=2.0, asks=1,
    ),
    _hunted(12, answers.timeout_is_rejected, "I5"),
    _hunted(13, answers.error_is_rejected, "I5"),
    _hunted(14, answers.bad_json_is_success, "I4"),
    _hunted(15, answers.accepted_is_success, "I4"),
    _hunted(
        16, looks.not_found_is_absent, "I5",
        kinds=("lookup",), assumed=True, sends=LOST, looks={"shown": 1.0, "not_found": 4.0, "empty": 2.0},
    ),
    _hunted(17, looks.eventual_absence, "I5", kinds=("eventual",)),
    _hunted(
        18, looks.absence_without_horizon, "I5",
        kinds=("lookup",), assumed=True, sends={"answered": 1.0, "applied_late": 3.0}, looks={"shown": 1.0},
    ),
    _hunted(
        19, claims.retention_ignored, "I3",
        kinds=("key",), sends=LOST, looks=BLIND, night_seconds=NIGHT_SECONDS, key_seconds=86_400.0, asks=0, looks_max=0,
    ),
    _hunted(
        20, claims.short_retention_accepted, "I3",
        kinds=("key",), assumed=True, sends={"answered": 1.0, "reset_late": 4.0}, looks=BLIND, looks_max=1,
        key_seconds=40.0, asks=0, sweep_seconds=2.0,
    ),
    _hunted(21, claims.no_deadline_before_write, "A2", rates={"stop": 0.05}),
    _hunted(
        22, answers.last_rejection_wins, "I5",
        kinds=("key",), sends=LOST | {"refused": 2.0}, looks=BLIND, looks_max=1, asks=0,
    ),
    _hunted(
        23, answers.not_sent_is_ready, "I3", "I5",
        kinds=("key", "natural"), sends=LOST | {"connect_refused": 2.0}, looks=BLIND, looks_max=1, asks=0,
    ),
    _hunted(24, answers.late_evidence_dropped, "I6", sends={"answered": 1.0, "reply_late": 3.0}),
    _hunted(25, people.abandon_does_not_block, "I8", sends=LOST, looks=BLIND, looks_max=1),
    _hunted(26, looks.read_budget_ignored, "I12", operations=6, kinds=("lookup",), sends=LOST, looks=BLIND),
    _pending(
        27, "pause_before_write", "Write after a pause between the last check and the first byte.",
        f"the kernel-bounded sender, which {ABSENCE!r} leaves for later",
    ),
    _elsewhere(28, claims.select_then_update, "I11", RACE, 3),
    _hunted(29, answers.exception_only, "I6", rates={"interrupt": 0.05}),
    _elsewhere(30, disk.synchronous_normal, "I6", IMAGES, 9),
    _elsewhere(31, transport.transport_retries, "I3", DEMO, 5),
    _hunted(
        32, answers.stale_sweep, "I5",
        kinds=("key",), sends={"answered": 0.2, "request_lost": 1.0, "reply_lost": 1.0}, assumed=True,
        looks={"shown": 1.0, "error": 2.0}, looks_max=0, rates={"stop": 0.3}, stop_at="after Look", stops=(60.0,),
        **EAGER | {"workers": 3},
    ),
    _hunted(
        33, claims.recovery_ignores_hand, "I11",
        kinds=("key",), looks=BLIND, looks_max=1, rates={"stop": 0.1}, stops=(9.0,), **EAGER | {"sweep_seconds": 1.0},
    ),
    _hunted(34, running.recovery_at_start_only, "L1"),
    _hunted(35, running.sweep_stops_at_error, "L1", rates={"store_busy": 0.05}),
    _hunted(36, claims.conflict_returns_receipt, "I9"),
    _hunted(37, claims.fingerprint_drops_field, "I9"),
    _hunted(
        38, answers.absent_overwrites_found, "I5", "I6",
        kinds=("lookup", "key"), beyond=True, assumed=True, sends=LOST, looks={"shown": 1.0, "behind": 1.0},
        rates={"stop": 0.05}, stops=(8.0,), **EAGER | {"workers": 3},
    ),
    _hunted(39, people.override_reusable, "I3", sends=LOST, looks=BLIND, looks_max=1, asks=0),
    _asked(40, people.approver_is_requester, "who: the requester"),
    _elsewhere(41, transport.secret_in_error, "I13", DEMO, 5),
    _elsewhere(42, people.chain_skips_tail, "I6", TAMPER),
    _hunted(
        43, looks.wrong_account_absent, "I5",
        kinds=("lookup",), assumed=True, sends=LOST, looks={"shown": 1.0, "wrong_account": 4.0},
    ),
    _pending(
        44, "receipt_in_second_transaction", "Write a business row and its receipt in two transactions.",
        LOCAL,
    ),
    _pending(45, "restore_keeps_ready", "Send what a restored backup says was never sent.", "restore from a backup"),
    _hunted(46, claims.token_compared_loosely, "I6", rates={"stop": 0.05}, **EAGER),
    _hunted(47, claims.alive_is_in_hand, "L1", rates={"ack_lost": 0.05}, far=False),
    _hunted(48, answers.sigterm_is_cancelled, "I5", rates={"interrupt": 0.05}),
    _hunted(49, claims.replay_in_flight, "I11", kinds=("key",), rates={"stop": 0.1}, stops=(9.0,), asks=0),
    _hunted(50, answers.status_line_is_success, "I4"),
    _celled(51, answers.answer_not_insisted, "13-LS", "16-LS"),
    _celled(52, answers.duplicate_is_one, "29-LS"),
    _celled(53, people.decided_unseen, "34-LS"),
    _celled(54, claims.clock_goes_back, "24-LS"),
    _celled(55, people.two_clicks_two_people, "33-B"),
    _hunted(56, claims.loser_goes_on, "I1"),
    _hunted(
        57, looks.absence_by_wall_clock, "I5",
        kinds=("lookup",), assumed=True, sends={"answered": 1.0, "applied_late": 3.0}, looks={"shown": 1.0},
        rates={"clock_step": 0.05}, ahead=True, asks=0,
    ),
    _hunted(
        58, looks.key_by_wall_clock, "I3",
        kinds=("key",), assumed=True, sends=LOST, looks=BLIND, looks_max=1, rates={"clock_step": 0.1},
        key_seconds=100.0, night_seconds=200.0, reboot=False, far=False, asks=0,
    ),
)  # fmt: skip
"""Every mutant, by number."""
MUTANTS: Mapping[str, Mutant] = {mutant.slug: mutant for mutant in CATALOGUE}
"""The same by name."""
