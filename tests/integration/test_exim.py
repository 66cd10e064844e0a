"""Mail to Debian's exim: what its own words come to, and what it really holds afterwards (R14)."""

from __future__ import annotations

import contextlib
import smtplib

import pytest
from tests.integration.mailing import exim_or_skip

import counterfoil
from counterfoil.lab.journal import Journal
from counterfoil.lab.real import servers
from counterfoil.lab.real.relay import Fate, Relay

LETTER = {"from": "Ann <ann@example.org>", "to": ["bob@example.org"], "subject": "Grüße", "text": "Hallo\n"}


@pytest.fixture
def exim(tmp_path):
    """A daemon of this test's own."""
    exim_or_skip()
    (tmp_path / "exim").mkdir()
    with servers.exim(tmp_path / "exim") as running:
        yield running


@pytest.fixture
def mailing(tmp_path):
    """The action that sends mail to a port."""
    with counterfoil.open(tmp_path / "receipts.db", actor="robot") as ledger:

        def of(port):
            return ledger.smtp(
                "mail", host="127.0.0.1", port=port, tls="none", account="shop", owner="ann", authoriser="ben"
            )

        yield of


@contextlib.contextmanager
def losing(running, finishing, tmp_path):
    """A relay that passes on what ends with those bytes, and loses the answer to it when exim holds a mail."""
    wire = Journal(tmp_path / "wire.jsonl")
    with (
        contextlib.closing(wire),
        Relay(
            running.place, finishing=finishing, fate=Fate.LOST, committed=lambda: bool(running.held()),
            hold_seconds=0.0, wire=wire,
        ) as relay,
    ):  # fmt: skip
        yield relay


def recipients(folder):
    """Whom exim is to deliver its only mail to: what stands between two marks of its envelope."""
    [envelope] = (folder / "exim" / "spool" / "input").glob("*-H")
    count, *named = envelope.read_text().partition("\nXX\n")[2].partition("\n\n")[0].split("\n")
    assert int(count) == len(named)
    return named


def test_one_is_refused_and_the_other_gets_the_mail(exim, mailing, tmp_path):
    """Exim's 550 to one recipient is on record beside its 250 to the other, and calling again sends nothing."""
    send, letter = mailing(exim.place.port), {**LETTER, "to": ["bob@example.org", "bad@example.org"]}
    receipt, again = send(letter, key="order-1"), send(letter, key="order-1")
    assert (receipt.outcome, again.id, again.result) == ("succeeded", receipt.id, receipt.result)
    assert receipt.result["accepted"] == ["bob@example.org"]
    assert receipt.result["refused"] == {"bad@example.org": "550 5.1.1 nobody of that name"}
    assert receipt.result["said"].startswith("250 OK id=")
    assert exim.held() == [receipt.result["message_id"]] == [f"<{receipt.id}@example.org>"]
    assert recipients(tmp_path) == ["bob@example.org"]


def test_nobody_there_is_a_rejection(exim, mailing):
    """Every recipient is refused by exim: rejected, nothing held, no second try."""
    send, letter = mailing(exim.place.port), {**LETTER, "to": ["bad@example.org"]}
    assert [send(letter, key="order-1").outcome for _ in range(2)] == ["rejected", "rejected"]
    assert exim.held() == []


def test_r14_an_answer_lost_after_the_final_dot_is_unknown(exim, mailing, tmp_path):
    """Exim holds the mail and nobody heard so: a person's, and no second mail."""
    with losing(exim, b"\r\n.\r\n", tmp_path) as relay:
        send = mailing(relay.port)
        receipt, again = send(LETTER, key="order-1"), send(LETTER, key="order-1")
        assert (receipt.outcome, receipt.operation.unresolved, again.id) == ("unknown", True, receipt.id)
        assert again.lifecycle == "manual_review"
        assert (relay.answered.is_set(), relay.sent) == (True, 1)
    assert exim.held() == [f"<{receipt.id}@example.org>"]


def test_r14_a_broken_goodbye_after_250_is_a_success(exim, mailing, tmp_path):
    """Exim has said 250; that its 221 is lost with a reset changes nothing."""
    with losing(exim, b"QUIT\r\n", tmp_path) as relay:
        receipt = mailing(relay.port)(LETTER, key="order-1")
        assert (relay.answered.is_set(), relay.sent) == (True, 1)
    assert (receipt.outcome, exim.held()) == ("succeeded", [f"<{receipt.id}@example.org>"])


def test_every_mail_that_exim_holds_is_counted(exim):
    """Twice the same Message-ID, and none at all: exim takes each, and each is one."""
    with smtplib.SMTP(*exim.place) as caller:
        for header in ("Message-ID: <one@example.org>", "message-id: <one@example.org>", "Subject: nameless"):
            caller.sendmail("ann@example.org", ["bob@example.org"], f"{header}\r\n\r\nHallo\r\n")
    named = [name for name in exim.held() if name == "<one@example.org>"]
    assert (len(named), len(exim.held())) == (2, 3)
