"""Mail: one server, one conversation, and what is known after every word of it (R14)."""

from __future__ import annotations

import contextlib
import email
import email.policy
import sqlite3

import msgspec
import pytest
from tests.integration.mailing import PASSWORD, USER, after_the_dot, line, mail_server, message, up_to_data
from tests.integration.wire.servers import CERTIFICATE, Peer, Server, dead_port

import counterfoil
from counterfoil import contracts
from counterfoil.domain.answer import Silent
from counterfoil.domain.canonical import canonical
from counterfoil.domain.contract import AnswerRule
from counterfoil.domain.errors import BadValue, PayloadRefused, SecretMisplaced, SecretMissing
from counterfoil.ports.provider import SendOrder
from counterfoil.providers import mail
from counterfoil.providers.smtp import Mailbox, SmtpProvider

CONTRACT = contracts.load("smtp.submission")
HASTY = msgspec.structs.replace(CONTRACT, send_deadline_seconds=1.0)
LETTER = {"from": "Ann <ann@example.org>", "to": ["bob@example.org"], "subject": "Grüße", "text": "Hallo\n"}
LARGE = {**LETTER, "text": ("y" * 70 + "\n") * 14_000}
"""More than the kernel takes at once."""
OWNED = {"owner": "ann", "authoriser": "ben"}


@pytest.fixture
def ledger(tmp_path):
    """A ledger of its own for each test."""
    with counterfoil.open(tmp_path / "receipts.db", actor="robot") as ledger:
        yield ledger


def mailing(ledger, port, *, name="mail", contract=CONTRACT, **given):
    """The action that sends mail to that port, in the clear unless it is told otherwise."""
    said = {"tls": "none", **OWNED, **given}
    return ledger.smtp(name, host="127.0.0.1", port=port, account="shop", contract=contract, **said)


# -- a server that nobody here wrote -----------------------------------------------------------------------------------


def test_a_mail_is_taken_once_and_named_by_its_operation(ledger):
    """The Message-ID is the operation's own, and the same call again sends nothing."""
    with mail_server() as inbox:
        send = mailing(ledger, inbox.port)
        receipt, again = send(LETTER, key="order-1"), send(LETTER, key="order-1")
    assert (receipt.outcome, again.outcome, again.id) == ("succeeded", "succeeded", receipt.id)
    assert receipt.result == {
        "message_id": f"<{receipt.id}@example.org>", "accepted": ["bob@example.org"], "refused": {},
        "said": "250 2.0.0 queued as M1",
    }  # fmt: skip
    [(recipients, content)] = inbox.mails
    found = email.message_from_bytes(content, policy=email.policy.default)
    assert (recipients, found["Message-ID"]) == (["bob@example.org"], receipt.result["message_id"])
    assert (found["Subject"], found["From"], found.get_content()) == ("Grüße", "Ann <ann@example.org>", "Hallo\r\n")
    assert found["Date"] is not None


def test_who_was_refused_is_on_record_and_the_others_get_no_second_mail(ledger):
    """One recipient of three is refused: a mail to that one is another operation, by an explicit call."""
    letter = {**LETTER, "to": ["bob@example.org", "bad@example.org"], "bcc": ["cyd@example.org"]}
    with mail_server() as inbox:
        send = mailing(ledger, inbox.port)
        receipt = send(letter, key="order-1")
        assert receipt.outcome == "succeeded"
        assert receipt.result["accepted"] == ["bob@example.org", "cyd@example.org"]
        assert receipt.result["refused"] == {"bad@example.org": "550 5.1.1 nobody of that name"}
        for _ in range(3):
            assert send(letter, key="order-1").result == receipt.result
        second = send({**letter, "to": ["dan@example.org"], "bcc": []}, key="order-1, corrected")
    assert second.result["accepted"] == ["dan@example.org"]
    assert [recipients for recipients, _ in inbox.mails] == [
        ["bob@example.org", "cyd@example.org"],
        ["dan@example.org"],
    ]
    assert b"cyd@" not in inbox.mails[0][1]
    effects = [e.record for e in ledger.history(receipt.id).events]
    assert any(b"for some of the recipients" in record for record in effects)


def test_a_greylisted_mail_may_be_called_again_and_keeps_its_name(ledger):
    """Every recipient is refused for now: nothing left, so the same call sends, once more and under the same name."""
    letter = {**LETTER, "to": ["busy@example.org"]}
    with mail_server() as inbox:
        inbox.patience = 1
        send = mailing(ledger, inbox.port)
        first = send(letter, key="order-1")
        assert (first.lifecycle, first.operation.unresolved, inbox.mails) == ("planned", False, [])
        second = send(letter, key="order-1")
    assert (second.id, second.outcome) == (first.id, "succeeded")
    assert f"<{first.id}@example.org>".encode() in inbox.mails[0][1]


def test_nobody_there_is_a_rejection(ledger):
    """Every recipient is refused for good: proof that nothing was sent, and no second try."""
    letter = {**LETTER, "to": ["bad@example.org"]}
    with mail_server() as inbox:
        send = mailing(ledger, inbox.port)
        assert [send(letter, key="order-1").outcome for _ in range(2)] == ["rejected", "rejected"]
    assert inbox.mails == []


def test_a_password_crosses_under_tls_and_is_nowhere_else(ledger, tmp_path):
    """STARTTLS, then AUTH: the mail is taken, and no file of the store holds the password."""
    with mail_server(secure=True) as inbox:
        send = mailing(
            ledger, inbox.port, tls="starttls", user=USER, password=lambda: PASSWORD, verify=str(CERTIFICATE)
        )
        assert send(LETTER, key="order-1").outcome == "succeeded"
        wrong = mailing(
            ledger, inbox.port, name="wrong", tls="starttls", user=USER, password=lambda: "another-password",
            verify=str(CERTIFICATE),
        )  # fmt: skip
        assert wrong({**LETTER, "subject": "Other"}, key="order-2").outcome == "rejected"
    assert len(inbox.mails) == 1
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert PASSWORD.encode() not in kept


# -- after the final dot -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "then",
    [
        pytest.param(Peer.reset, id="reset"),
        pytest.param(lambda peer: None, id="closed"),
        pytest.param(lambda peer: peer.say(b"25"), id="cut"),
        pytest.param(lambda peer: peer.say(b"250-queued\r\n"), id="half"),
        pytest.param(lambda peer: peer.say(b"what?\r\n"), id="garbage"),
        pytest.param(lambda peer: peer.say(b"421 4.4.2 closing\r\n"), id="421"),
        pytest.param(lambda peer: peer.say(b"299 perhaps\r\n"), id="299"),
        pytest.param(lambda peer: peer.say(b"354 go on\r\n"), id="354"),
        pytest.param(lambda peer: peer.say(b"334 dGVsbCBtZQ==\r\n"), id="334"),
        pytest.param(lambda peer: peer.say(b"999 perhaps\r\n"), id="999"),
        pytest.param(lambda peer: peer.say(b"550-spam\r\n250 queued\r\n"), id="550-250"),
        pytest.param(lambda peer: peer.say(b"451-later\r\n250 queued\r\n"), id="451-250"),
        pytest.param(lambda peer: peer.say(b"250-queued\r\n550 spam\r\n"), id="250-550"),
        pytest.param(lambda peer: peer.say(b"550 spam\r\n250 queued\r\n"), id="550,250"),
        pytest.param(lambda peer: peer.say(b"250 queued\r\n550 spam\r\n"), id="250,550"),
        pytest.param(lambda peer: peer.say(b"250 queued\r\nspam\r\n"), id="250,garbage"),
        pytest.param(Peer.hang, id="silence", marks=pytest.mark.slow),
    ],
)
def test_r14_whatever_is_no_clear_answer_to_the_final_dot_is_unknown(ledger, then):
    """The server had the whole mail: nothing is sent again, and the next step is a person's."""
    with Server(after_the_dot(then)) as server:
        send = mailing(ledger, server.port, contract=HASTY)
        receipt, again = send(LETTER, key="order-1"), send(LETTER, key="order-1")
    assert (receipt.outcome, receipt.operation.unresolved, again.id) == ("unknown", True, receipt.id)
    assert ledger.get(receipt.id).lifecycle == "manual_review"
    assert (len(server.requests), server.connections) == (1, 1)


@pytest.mark.parametrize("early", [b"550 spam", b"451 later", b"250 queued"])
def test_a_reply_of_before_the_final_dot_is_not_taken_for_the_one_to_it(ledger, early):
    """What QUIT is answered with shows that the last reply answered something else: what became of the mail is open."""

    def script(peer):
        peer.say(early + b"\r\n")
        assert line(peer) == b"QUIT"
        peer.say(b"250 queued\r\n")

    with Server(after_the_dot(script)) as server:
        send = mailing(ledger, server.port)
        assert [send(LETTER, key="order-1").outcome for _ in range(2)] == ["unknown", "unknown"]
    assert len(server.requests) == 1


def test_no_contract_makes_a_number_the_proof_that_nothing_was_sent(ledger):
    """A server can say 354 after the final dot: whatever a contract makes of that, the mail is sent once."""
    rule = AnswerRule(status=("354",), finding="not_sent", source="cancelled")
    trusting = msgspec.structs.replace(CONTRACT, answers=(rule, *CONTRACT.answers))
    with Server(after_the_dot(lambda peer: peer.say(b"354 go on\r\n"))) as server:
        send = mailing(ledger, server.port, contract=trusting)
        assert [send(LETTER, key="order-1").outcome for _ in range(3)] == ["unknown"] * 3
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "then",
    [
        pytest.param(Peer.reset, id="reset"),
        pytest.param(lambda peer: peer.say(b"421 gone\r\n"), id="421"),
        pytest.param(lambda peer: (line(peer), peer.reset()), id="after-quit"),
        pytest.param(Peer.hang, id="silence", marks=pytest.mark.slow),
    ],
)
def test_r14_a_broken_goodbye_after_250_is_a_success(ledger, then):
    """The reply to the final dot stands, whatever becomes of QUIT."""

    def script(peer):
        peer.say(b"250 queued\r\n")
        then(peer)

    with Server(after_the_dot(script)) as server:
        assert mailing(ledger, server.port)(LETTER, key="order-1").outcome == "succeeded"
    assert len(server.requests) == 1


@pytest.mark.parametrize("reply", [b"451 4.3.0 try later", b"452 full", b"554 5.7.1 spam", b"550 no"])
def test_a_refusal_after_the_final_dot_is_proof(ledger, reply):
    """The server must not deliver it after that (RFC 5321 section 4.2.5); nothing is sent again by itself."""
    with Server(after_the_dot(lambda peer: peer.say(reply + b"\r\n"))) as server:
        send = mailing(ledger, server.port)
        assert [send(LETTER, key="order-1").outcome for _ in range(2)] == ["rejected", "rejected"]
    assert len(server.requests) == 1


# -- before the final dot ----------------------------------------------------------------------------------------------


def test_r14_a_connection_cut_before_the_final_dot_sent_nothing(ledger):
    """The server must cancel what was not ended (RFC 5321 section 4.1.1.10): the same call sends."""
    cut = [True]

    def script(peer):
        up_to_data(peer)
        if cut.pop() if cut else False:
            peer.sock.recv(16)
            peer.reset()
        else:
            message(peer)
            peer.say(b"250 queued\r\n")

    with Server(script, receive_buffer=4096) as server:
        send = mailing(ledger, server.port)
        first = send(LARGE, key="order-1")
        assert (first.outcome, first.operation.unresolved) == ("unobserved", False)
        assert send(LARGE, key="order-1").outcome == "succeeded"
    assert len(server.requests) == 1


@pytest.mark.slow
def test_a_mail_given_up_before_its_final_dot_is_not_sent_by_what_was_written_alone():
    """No reply says so, and none could: the dot was never handed over, and the connection is reset."""
    flight = Flight()

    def script(peer):
        up_to_data(peer)
        peer.hang()

    with Server(script, receive_buffer=4096) as server:
        answer = clear(server.port).send(order(canonical(LARGE), seconds=0.5), flight)
    assert answer == Silent(may_have_left=False, reason="write_timeout")
    assert flight.may_have_left is False


def to_its_end(peer):
    """Everything that a client still writes, until it is gone."""
    octets = bytearray()
    with contextlib.suppress(OSError):
        while part := peer.sock.recv(65536):
            octets += part
    return bytes(octets)


@pytest.mark.parametrize(
    ("stage", "replies"),
    [
        ("", b"220 mail.test\r\n250 fine\r\n"),
        ("EHLO", b"250 mail.test\r\n250 fine\r\n"),
        ("MAIL", b"250 fine\r\n250 fine\r\n"),
        ("RCPT", b"250 fine\r\n354 go on\r\n"),
        ("RCPT", b"250 fine\r\n354 go on\r\n250 queued\r\n"),
        ("DATA", b"354 go on\r\n550 spam\r\n"),
        ("DATA", b"354 go on\r\n451 later\r\n"),
        ("DATA", b"354 go on\r\n250 queued\r\n"),
        ("DATA", b"354 go on\r\n354 go on\r\n"),
        ("DATA", b"354 go on\r\n25"),
        ("DATA", b"354-go\r\n250 on\r\n"),
    ],
)
def test_what_a_server_says_unasked_is_no_answer_and_nothing_goes_on(ledger, stage, replies):
    """No later reply could be told to be the one to the final dot: it is never handed over, so nothing was sent."""
    after = []

    def script(peer):
        def said(command):
            if not command.startswith(stage.encode()):
                return
            peer.say(replies)
            after.append(to_its_end(peer))
            raise ConnectionResetError

        if stage:
            up_to_data(peer, said=said)
        else:
            said(b"")

    with Server(script) as server:
        receipt = mailing(ledger, server.port)(LETTER, key="order-1")
    assert (receipt.outcome, receipt.operation.unresolved, after) == ("unobserved", False, [b""])


@pytest.mark.parametrize("tls", ["none", "implicit"])
def test_a_reply_in_the_middle_of_a_mail_keeps_its_final_dot_back(ledger, tls):
    """Some servers refuse what is too large before it ends: no second reply can then be told from that one."""
    heard = []

    def script(peer):
        if tls == "implicit":
            peer.secure()
        up_to_data(peer)
        peer.sock.recv(16)
        peer.say(b"552 too large\r\n")
        heard.append(to_its_end(peer))

    with Server(script, receive_buffer=4096) as server:
        send = mailing(ledger, server.port, tls=tls, verify=str(CERTIFICATE))
        receipt = send(LARGE, key="order-1")
    assert (receipt.outcome, receipt.operation.unresolved) == ("unobserved", False)
    assert len(heard[0]) > 500_000  # less what a reset takes back out of the kernel
    assert b"\r\n.\r\n" not in heard[0]


def test_whoever_is_neither_taken_nor_refused_stops_the_mail(ledger):
    """A recipient that the server may have taken is never told of as refused, for another mail to be sent to it."""

    def said(command):
        return b"252 perhaps\r\n" if b"cyd@" in command else None

    def script(peer):
        up_to_data(peer, said=said)
        pytest.fail("the message was asked for")

    with Server(script) as server:
        receipt = mailing(ledger, server.port)({**LETTER, "cc": ["cyd@example.org"]}, key="order-1")
    assert (receipt.outcome, receipt.result) == ("unknown", None)


@pytest.mark.parametrize(
    ("stage", "reply", "outcome"),
    [
        ("EHLO", b"502 no", "rejected"),
        ("MAIL", b"550 not you", "rejected"),
        ("MAIL", b"421 busy", "unobserved"),
        ("RCPT", b"452 too many", "unobserved"),
        ("DATA", b"451 not now", "unobserved"),
        ("DATA", b"554 no", "rejected"),
        ("MAIL", b"299 what", "unknown"),
    ],
)
def test_a_refusal_before_the_message_is_what_the_server_says(ledger, stage, reply, outcome):
    """For good: rejected; for now: not sent; a code that nobody documents: unknown. Never a second conversation."""

    def said(command):
        return reply + b"\r\n" if command.startswith(stage.encode()) else None

    def script(peer):
        up_to_data(peer, said=said)
        pytest.fail("the message was asked for")

    with Server(script) as server:
        receipt = mailing(ledger, server.port)(LETTER, key="order-1")
    assert (receipt.outcome, server.connections) == (outcome, 1)


@pytest.mark.parametrize("greeting", [b"", b"220", b"hello\r\n", b"554 go away\r\n"])
def test_what_greets_otherwise_gets_no_mail(ledger, greeting):
    """A server that is none, or closes: nothing left."""
    with Server(lambda peer: peer.say(greeting)) as server:
        assert mailing(ledger, server.port)(LETTER, key="order-1").operation.unresolved == 0


def test_nobody_listens(ledger):
    """No connection: nothing left."""
    with dead_port() as port:
        receipt = mailing(ledger, port)(LETTER, key="order-1")
    assert (receipt.outcome, receipt.operation.unresolved) == ("unobserved", False)


# -- TLS ---------------------------------------------------------------------------------------------------------------


def test_without_an_offer_of_tls_nothing_is_said(ledger):
    """Whoever strips the offer learns no more than the greeting."""
    heard = []

    def script(peer):
        peer.say(b"220 mail.test\r\n")
        heard.append(line(peer))
        peer.say(b"250 fine\r\n")
        heard.append(line(peer))

    with Server(script) as server:
        send = mailing(ledger, server.port, tls="starttls", user=USER, password=lambda: PASSWORD)
        assert send(LETTER, key="order-1").operation.unresolved == 0
    assert [said.split()[0] for said in heard] == [b"EHLO"]


def test_words_before_the_handshake_are_not_taken_for_the_servers(ledger):
    """Whoever stands in between says what is heard under TLS: nothing goes on."""
    heard = []

    def script(peer):
        peer.say(b"220 mail.test\r\n")
        line(peer)
        peer.say(b"250-mail.test\r\n250 STARTTLS\r\n")
        heard.append(line(peer))
        peer.say(b"220 go on\r\n250 AUTH PLAIN\r\n")
        peer.secure()
        heard.append(line(peer))

    with Server(script) as server:
        send = mailing(ledger, server.port, tls="starttls", verify=str(CERTIFICATE))
        assert send(LETTER, key="order-1").operation.unresolved == 0
    assert heard == [b"STARTTLS"]


def test_a_certificate_of_nobody_known_gets_no_mail(ledger):
    """The handshake fails: nothing left."""

    def script(peer):
        peer.say(b"220 mail.test\r\n")
        line(peer)
        peer.say(b"250-mail.test\r\n250 STARTTLS\r\n")
        peer.say(b"220 go on\r\n") if line(peer) == b"STARTTLS" else None
        peer.secure()

    with Server(script) as server:
        assert mailing(ledger, server.port, tls="starttls")(LETTER, key="order-1").operation.unresolved == 0


# -- declaring, and what is refused before a claim ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"tls": "maybe"},
        {"tls": "none", "user": USER, "password": lambda: PASSWORD},
        {"tls": "starttls", "user": USER},
        {"port": 70_000},
        {"host": "mail.test/inbox"},
        {"host": "mail test"},
    ],
)
def test_a_server_that_cannot_be_is_refused_where_it_is_declared(ledger, given):
    """No way, a password in the clear, half a login, no port, no host."""
    with pytest.raises(BadValue):
        ledger.smtp("mail", **{"host": "mail.test", "account": "shop", **OWNED, **given})


@pytest.mark.parametrize(
    "letter",
    [
        {**LETTER, "to": []},
        {**LETTER, "to": ["bob@example.org\r\nDATA"]},
        {**LETTER, "to": ["bob@example.org> SIZE=1"]},
        {**LETTER, "to": ["bob"]},
        {**LETTER, "to": ["b..b@example.org"]},
        {**LETTER, "to": ["Bøb <bøb@example.org>"]},
        {**LETTER, "to": [f"b{n}@example.org" for n in range(101)]},
        {**LETTER, "from": "ann@example.org, ben@example.org"},
        {**LETTER, "subject": "two\nlines"},
        {**LETTER, "headers": {"X": "y"}},
        {"to": ["bob@example.org"], "text": ""},
        ["no mail"],
    ],
)
def test_what_is_no_mail_is_refused_and_nothing_is_recorded(ledger, letter):
    """A header or a command in an address, nobody to send to, too many, or fields that nobody knows."""
    send = mailing(ledger, 1)
    with pytest.raises(PayloadRefused):
        send(letter, key="order-1")
    assert sqlite3.connect(ledger.store.path).execute("SELECT count(*) FROM operation").fetchone() == (0,)


def test_a_password_that_is_not_there_is_named_and_nothing_is_recorded(ledger):
    """The sentence names it and holds nothing of it."""
    send = mailing(ledger, 1, tls="starttls", user=USER, password="env:NO_SUCH_PASSWORD")
    with pytest.raises(SecretMissing, match="password"):
        send(LETTER, key="order-1")


class Flight:
    """What a plan keeps of a send that is under way."""

    may_have_left = False


def clear(port, **fields):
    """The provider of a server in the clear."""
    return SmtpProvider(CONTRACT, mailbox=Mailbox(host="127.0.0.1", port=port, tls="none", **fields), account="shop")


def order(payload=None, *, account="shop", seconds=5.0):
    """One write."""
    frozen = canonical(LETTER) if payload is None else payload
    return SendOrder(account=account, destination="", payload=frozen, provider_key="op_1", deadline_seconds=seconds)


def test_another_account_is_never_written_to():
    """Neither before the claim nor at the send."""
    with pytest.raises(SecretMisplaced):
        clear(1).check(order(account="other"))
    assert clear(1).send(order(account="other"), Flight()).reason == "not_ours"
    assert clear(1).send(order(canonical({"no": "mail"})), Flight()).reason == "not_rendered"


def test_what_is_approved_is_what_is_written_but_for_the_date():
    """Twice the same bytes, with alternatives too; the password is only where it comes from."""
    box = Mailbox(host="mail.test", user=USER, password=lambda: PASSWORD, password_from="env:MAIL", tls="implicit")
    provider = SmtpProvider(CONTRACT, mailbox=box, account="shop")
    both = order(canonical({**LETTER, "html": "<p>Hallo</p>", "cc": ["Cyd <cyd@example.org>"]}))
    assert provider.form(both) == provider.form(both)
    assert b"Date:" not in provider.form(both)
    assert PASSWORD.encode() not in provider.form(both)
    assert b"env:MAIL" in provider.form(both)


@pytest.mark.parametrize("text", ["", ".", "..\n.\n", "a\n.\nRSET\n", "x\r.\r\ny", "\n.\r\nMAIL FROM:<x>\n"])
def test_no_text_ends_a_mail(text):
    """Whatever the text says, no line of it but the last one is a lone dot, and no line end is half of one."""
    read = mail.read(canonical({**LETTER, "text": text}))
    written = mail.dotted(mail.compose(read, mail.envelope_of(read, "op_1"), "now"))
    assert b"\r\n.\r\n" not in written
    assert written.replace(b"\r\n", b"").count(b"\n") == written.replace(b"\r\n", b"").count(b"\r") == 0
    assert written.endswith(b"\r\n")
