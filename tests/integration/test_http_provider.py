"""The HTTP provider over real sockets: sent once, judged by the contract, settled by a look; no secret anywhere."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import sys
import threading
import traceback
from pathlib import Path

import msgspec
import pytest
from tests.integration.wire.servers import Server, answering

from counterfoil import contracts
from counterfoil.domain.absence import absence
from counterfoil.domain.answer import Replied, Silent
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.canonical import canonical
from counterfoil.domain.errors import BadValue, PayloadRefused, SecretMisplaced, SecretMissing
from counterfoil.domain.judge import judge
from counterfoil.domain.reading import ReadingKind, read, seek
from counterfoil.domain.template import LookTemplate, Names
from counterfoil.domain.verdict import evidence_of
from counterfoil.domain.words import Finding
from counterfoil.lab.faults import FaultPlan
from counterfoil.lab.front import Front, ProviderServer
from counterfoil.lab.ground_truth import EFFECTS, WIRE, GroundTruth
from counterfoil.lab.journal import read as journal
from counterfoil.lab.misbehaviour import VOCABULARY
from counterfoil.lab.processes import Child, start_proxy
from counterfoil.lab.service import Service
from counterfoil.ports.provider import LookOrder, SendOrder
from counterfoil.providers.http import HttpProvider

SECRET = "Bearer lab-token-8f2c61"
TOKEN = SECRET.removeprefix("Bearer ")
ACCOUNT = "acct_lab"
PAYLOAD = canonical({"amount": 10, "to": "ann"})
KEY, LOOKUP, NOTHING = (contracts.load(f"lab.{name}") for name in ("key", "lookup", "nothing"))
CALDAV = contracts.load("caldav.put_event")
SECONDS = 10.0


class Flight:
    """What a plan keeps of a send that is under way."""

    may_have_left = False


class Lab:
    """The laboratory's provider in a thread, its rules and its truth."""

    def __init__(self, folder: Path) -> None:
        truth = GroundTruth(folder)
        self.folder = folder
        self.plan = FaultPlan(VOCABULARY)
        front = Front(truth=truth, service=Service(truth), plan=self.plan, tokens={TOKEN: ACCOUNT})
        self.server = ProviderServer(0, front)
        self.url = f"http://127.0.0.1:{self.server.port}"

    def fault(self, behaviour, **rule):
        self.plan.replace([{"route": "*", "behaviour": behaviour, **rule}])

    def effects(self):
        return len(journal(self.folder / EFFECTS))

    def sends(self):
        return len([entry for entry in journal(self.folder / WIRE) if entry["act"] == "send"])


@pytest.fixture
def lab(tmp_path):
    """A provider of its own for each test."""
    lab = Lab(tmp_path)
    thread = threading.Thread(target=lab.server.serve_forever, args=[0.01])
    thread.start()
    yield lab
    lab.server.shutdown()
    lab.server.server_close()
    thread.join()


def provider(lab, contract=KEY, **fields):
    """A provider of that contract with the laboratory's secret."""
    given = {"base_url": lab and lab.url, "account": ACCOUNT, "secrets": {"/headers/authorization": lambda: SECRET}}
    return HttpProvider(contract, **(given | fields))


def order(**fields):
    """One write."""
    given = {"account": ACCOUNT, "destination": "", "payload": PAYLOAD, "provider_key": "op_1"}
    return SendOrder(**(given | {"deadline_seconds": SECONDS} | fields))


def send(adapter, contract=KEY, **fields):
    """Send once; the answer and the evidence of attempt 1."""
    answer = adapter.send(order(**fields), Flight())
    return answer, judge(contract, answer, 1, "pay")


def look(adapter, contract, *, names=None, payload=PAYLOAD, account=ACCOUNT):
    """Look once; the answers and their reading."""
    names = names or Names(provider_key="op_1", negative="cf-absent-77")
    sought = seek(contract, account=account, payload=payload, names=names)
    answers = adapter.look(
        LookOrder(
            account=account, destination="", payload=payload, look=0, names=sought.names, deadline_seconds=SECONDS
        )
    )
    return answers, read(contract.looks[0], answers, sought)


@pytest.mark.parametrize("contract", [KEY, LOOKUP, NOTHING], ids=lambda contract: contract.id)
def test_a_send_is_one_effect_and_one_proof(lab, contract):
    """What is sent is what was approved, once, and the answer proves it."""
    answer, evidence = send(provider(lab, contract), contract)
    assert isinstance(answer, Replied)
    assert evidence.finding is Finding.SUCCEEDED
    assert (lab.sends(), lab.effects()) == (1, 1)
    (effect,) = journal(lab.folder / EFFECTS)
    assert (effect["payload"], effect["account"]) == (json.loads(PAYLOAD), ACCOUNT)
    assert evidence.external_id == effect["id"]
    assert evidence.result == {"id": effect["id"], "state": "done"}


def test_the_same_key_has_no_second_effect(lab):
    """A replay gets the saved answer; another payload under the key is a conflict, not a failure."""
    adapter = provider(lab)
    first, again = send(adapter)[1], send(adapter)[1]
    assert (first.external_id, again.finding) == (again.external_id, Finding.SUCCEEDED)
    other = send(adapter, payload=canonical({"amount": 11}))[1]
    assert (other.finding, other.reason) == (Finding.UNKNOWN, "key_conflict")
    assert (lab.sends(), lab.effects()) == (3, 1)


@pytest.mark.parametrize(
    "behaviour", ["lose_reply", "reset", "cut_body", "error_500", "error_503_retry_after", "html_200", "lose_request"]
)
@pytest.mark.parametrize("contract", [KEY, LOOKUP], ids=lambda contract: contract.id)
def test_a_lost_answer_is_unknown_until_a_look_finds_it(lab, contract, behaviour):
    """Whatever happens to the answer, the send stays one, the outcome unknown, and the look says what is true."""
    lab.fault(behaviour, times=1)
    adapter = provider(lab, contract)
    answer, evidence = send(adapter, contract)
    assert evidence.finding is Finding.UNKNOWN
    assert getattr(answer, "may_have_left", True)
    assert lab.sends() == 1
    _, reading = look(adapter, contract)
    expected = ReadingKind.ABSENT if behaviour == "lose_request" else ReadingKind.FOUND
    assert (reading.kind, reading.positive_control, reading.negative_control) == (expected, True, True)
    found = evidence_of(
        reading, look=contract.looks[0], index=0, attempts=(Attempt(number=1, token="w"),), effect="pay"
    )
    assert found.finding is (Finding.UNKNOWN if behaviour == "lose_request" else Finding.SUCCEEDED)
    assert lab.sends() == 1


@pytest.mark.parametrize(
    "behaviour",
    ["look_500", "look_401", "look_html", "look_truncated", "look_everything", "look_cut", "look_lost"],
)
@pytest.mark.parametrize("landed", [True, False])
def test_r73_a_look_that_fails_or_lies_is_inconclusive(lab, behaviour, landed):
    """Errors, refusals, pages, cut and incomplete answers, and a look that finds everything, settle nothing."""
    adapter = provider(lab, LOOKUP)
    if landed:
        send(adapter, LOOKUP)
    lab.fault(behaviour)
    assert look(adapter, LOOKUP)[1].kind is ReadingKind.INCONCLUSIVE


@pytest.mark.parametrize("behaviour", ["look_empty", "wrong_account"])
def test_a_look_that_shows_too_little_proves_no_absence(lab, behaviour):
    """Without our account's known item in the same look, nothing found is nothing proven."""
    adapter = provider(lab, LOOKUP)
    send(adapter, LOOKUP)
    lab.fault(behaviour)
    _, reading = look(adapter, LOOKUP)
    verdict = absence(
        look=LOOKUP.looks[0], reading=reading, looked_at=1e12, elapsed=1e12, deadline=0.0, longest_delivery=1.0,
        quiesced=True,
    )  # fmt: skip
    assert reading.kind is ReadingKind.ABSENT
    assert not verdict.proven


def test_a_healthy_look_late_enough_proves_absence(lab):
    """With both controls, a strong complete look after the last possible moment is proof."""
    _, reading = look(provider(lab, LOOKUP), LOOKUP)
    verdict = absence(
        look=LOOKUP.looks[0], reading=reading, looked_at=1e12, elapsed=1e12, deadline=0.0, longest_delivery=1.0,
        quiesced=True,
    )  # fmt: skip
    assert verdict.proven


def test_two_effects_under_one_reference_are_a_duplicate(lab):
    """What the provider doubled by itself is seen, though one request was sent."""
    lab.fault("internal_duplicate", times=1)
    adapter = provider(lab, LOOKUP)
    send(adapter, LOOKUP)
    _, reading = look(adapter, LOOKUP)
    assert (reading.kind, len(reading.external_ids)) == (ReadingKind.DUPLICATE, 2)
    assert lab.sends() == 1


def test_nobody_listening_is_not_sent():
    """A refused connection is proof: not one byte left, and the flight says so."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        adapter = HttpProvider(
            NOTHING, base_url=f"http://127.0.0.1:{taken.getsockname()[1]}", account=ACCOUNT,
            secrets={"/headers/authorization": lambda: SECRET},
        )  # fmt: skip
        flight = Flight()
        answer = adapter.send(order(), flight)
    assert judge(NOTHING, answer, 1, "pay").finding is Finding.NOT_SENT
    assert flight.may_have_left is False


def test_a_flight_under_way_may_have_left(lab):
    """Whoever asks while the exchange runs must assume that it writes; afterwards the flight knows."""
    seen = []

    class Watched:
        def __setattr__(self, name, value):
            seen.append(value)

    provider(lab).send(order(), Watched())
    assert seen == [True, True]


def test_a_refused_credential_is_rejected(lab):
    """401 proves that nothing happened."""
    adapter = provider(lab, secrets={"/headers/authorization": lambda: "Bearer other-token"})
    assert send(adapter)[1].finding is Finding.REJECTED
    assert lab.effects() == 0


def nothing_sent(lab, answer, reason):
    """Not one byte left, and the reason is the fixed word."""
    assert answer == Silent(may_have_left=False, reason=reason)
    assert lab.sends() == 0


def boom():
    """A vault that quotes its secret."""
    raise RuntimeError(SECRET)


@pytest.mark.parametrize(
    "source", [None, boom, lambda: "", lambda: "a\r\nb: c", lambda: "é", lambda: " x", lambda: None, lambda: b"x"],
    ids=["none", "raises", "empty", "line break", "not ASCII", "margin", "None", "bytes"],
)  # fmt: skip
def test_a_secret_without_a_value_sends_nothing(lab, source):
    """Refused before the claim by name, and again at the send; the vault's words go nowhere."""
    secrets = {} if source is None else {"/headers/authorization": source}
    adapter = provider(lab, secrets=secrets)
    with pytest.raises(SecretMissing) as error:
        adapter.check(order())
    assert TOKEN not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__context__ is None
    nothing_sent(lab, adapter.send(order(), Flight()), "secret_missing")
    assert look(adapter, KEY)[0] == (Silent(may_have_left=False, reason="secret_missing"),)


def test_a_sources_own_words_stay_behind(lab):
    """A source that says itself what is missing is believed; what it met, and its frames, do not go on."""

    def vault():
        try:
            raise RuntimeError(SECRET)
        except RuntimeError:
            raise SecretMissing("pay", name="vault", problem="is sealed")  # noqa: B904 - as sources are written

    adapter = provider(lab, secrets={"/headers/authorization": vault})
    with pytest.raises(SecretMissing, match="is sealed") as error:
        adapter.check(order())
    assert error.value.__context__ is None
    assert "vault" not in [frame.name for frame in traceback.extract_tb(error.tb)]


def test_a_secret_that_comes_late_puts_no_deadline_off(lab):
    """After its deadline a provider writes nothing, whatever took so long."""

    def slow():
        threading.Event().wait(0.2)
        return SECRET

    answer = provider(lab, secrets={"/headers/authorization": slow}).send(order(deadline_seconds=0.1), Flight())
    assert (answer.may_have_left, answer.reason, lab.sends()) == (False, "deadline", 0)


def test_a_secret_is_asked_for_as_late_as_possible(lab):
    """Nothing resolves a secret before a check or a send."""
    asked = []
    adapter = provider(lab, secrets={"/headers/authorization": lambda: asked.append(1) or SECRET})
    assert asked == []
    adapter.check(order())
    send(adapter)
    assert len(asked) == 2


def test_a_secret_stands_where_the_contract_declares_it(lab):
    """A pointer of one's own invention is refused, before anything is sent."""
    with pytest.raises(SecretMisplaced, match="/headers/x-other"):
        provider(lab, secrets={"/headers/x-other": lambda: SECRET})


def test_another_account_is_refused(lab):
    """Secrets open one account: an intent for another is refused before the claim and at the wire."""
    adapter = provider(lab)
    with pytest.raises(SecretMisplaced, match="another account"):
        adapter.check(order(account="acct_other"))
    nothing_sent(lab, adapter.send(order(account="acct_other"), Flight()), "not_ours")
    assert look(adapter, KEY, account="acct_other")[0] == (Silent(may_have_left=False, reason="not_ours"),)


def test_another_destination_is_refused(lab):
    """An intent that names another place as a URL is not sent here; a label, or this place, is."""
    adapter = provider(lab)
    with pytest.raises(BadValue, match="destination"):
        adapter.check(order(destination="http://127.0.0.1:1/"))
    nothing_sent(lab, adapter.send(order(destination="http://127.0.0.1:1/"), Flight()), "not_ours")
    for destination in ("", "the laboratory", lab.url, lab.url + "/"):
        adapter.check(order(destination=destination))


def test_a_payload_that_does_not_fit_is_refused_before_the_claim(lab):
    """Missing fields, unsendable values and headers that could smuggle are refused with their pointer."""
    calendar = provider(lab, CALDAV)
    for payload in ({}, {"collection": "/c", "uid": "../x", "ics": ""}, {"collection": "/c", "uid": "u", "ics": 1.5}):
        with pytest.raises(PayloadRefused):
            calendar.check(order(payload=canonical(payload)))
        nothing_sent(lab, calendar.send(order(payload=canonical(payload)), Flight()), "not_rendered")
    adapter = provider(lab)
    with pytest.raises(PayloadRefused):
        adapter.check(order(provider_key="a\r\nx: y"))
    nothing_sent(lab, adapter.send(order(provider_key="a\r\nx: y"), Flight()), "not_rendered")
    with pytest.raises(PayloadRefused, match="idempotency-key"):
        adapter.check(order(provider_key=" margin "))
    adapter.check(order())


def test_a_look_that_cannot_be_made_says_so(lab):
    """Without the names it asks for a look is inconclusive, not a search for everything."""
    answers, reading = look(provider(lab), KEY, names=Names(provider_key="", negative="n"))
    assert answers == (Silent(may_have_left=False, reason="not_rendered"),)
    assert (reading.kind, reading.reason) == (ReadingKind.INCONCLUSIVE, "not_rendered")


@pytest.mark.parametrize(
    "url",
    ["ftp://127.0.0.1", "127.0.0.1", "http://user:hunter22@127.0.0.1", "http://127.0.0.1/?key=hunter22", "http://a b"],
)
def test_r76_a_bad_base_url_is_named_without_itself(url):
    """The fault is told and the URL is not: it may hold a password."""
    with pytest.raises(BadValue) as error:
        HttpProvider(KEY, base_url=url, account=ACCOUNT)
    assert "hunter22" not in str(error.value)
    assert error.value.__context__ is None


def test_a_contract_without_a_request_is_no_http_contract():
    """A function's contract describes nothing to send."""
    with pytest.raises(BadValue, match=r"function\.plain"):
        HttpProvider(contracts.load("function.plain"), base_url="http://127.0.0.1:1", account=ACCOUNT)


@pytest.mark.parametrize("behaviour", ["lose_reply", "error_500", "html_200", "cut_body", "hang"])
def test_r76_no_secret_in_answers_errors_or_representations(lab, behaviour):
    """Nothing the provider returns or shows holds the secret, on any way the exchange may end."""
    lab.fault(behaviour, times=1)
    adapter = provider(lab)
    answer = adapter.send(order(deadline_seconds=0.3 if behaviour == "hang" else SECONDS), Flight())
    shown = repr((adapter, answer, look(adapter, KEY)[0]))
    assert TOKEN not in shown
    assert (lab.sends(), lab.effects()) == (1, 1)


class Echo(threading.Thread):
    """A server that answers one request with everything it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.heard = b""

    def run(self) -> None:
        with self.listening, self.listening.accept()[0] as connection:
            connection.settimeout(SECONDS)
            while not self.heard.endswith(PAYLOAD):
                self.heard += connection.recv(65536)
            head = b"HTTP/1.1 400 Bad\r\nX-Token: %b\r\nContent-Length: %d\r\n\r\n" % (TOKEN.encode(), len(self.heard))
            connection.sendall(head + self.heard)


def test_r76_an_echoed_secret_is_masked():
    """A server that shows the request back, with or without the scheme, does not put the secret at rest."""
    echo = Echo()
    echo.start()
    adapter = provider(None, base_url=f"http://127.0.0.1:{echo.port}/v1/")
    answer = adapter.send(order(), Flight())
    echo.join()
    assert SECRET.encode() in echo.heard
    assert echo.heard.startswith(b"POST /v1/key/effects HTTP/1.1\r\n")
    assert TOKEN not in repr(answer)
    assert isinstance(answer, Replied)


def test_an_https_provider_without_certificates_sends_nothing(tmp_path):
    """Unreadable trust is a failure before the first byte; a plaintext server under https too."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"https://127.0.0.1:{server.getsockname()[1]}"
        adapter = provider(None, base_url=url, verify=str(tmp_path / "missing.pem"))
        assert adapter.send(order(), Flight()) == Silent(may_have_left=False, reason="bad_request")
        trusting = provider(None, base_url=url)
        for _ in range(2):
            answer = trusting.send(order(deadline_seconds=0.2), Flight())
            assert (answer.may_have_left, answer.reason) == (False, "tls_timeout")


# The first real contract, against a server that nobody here wrote.

EXAMPLE = Path(__file__).parents[2] / "examples" / "calendar_server.py"
BASIC = "Basic " + base64.b64encode(b"demo:demo-password").decode()


@pytest.fixture(scope="module")
def calendar(tmp_path_factory):
    """Radicale, with one collection, behind a proxy that loses the answer to every PUT."""
    folder = tmp_path_factory.mktemp("calendar")
    argv = [sys.executable, str(EXAMPLE), "--port", "0", "--parent-pipe", "--folder", str(folder)]
    with Child(argv) as server:
        heard = int(server.ready.rpartition(":")[2])
        with start_proxy(heard, rules=[{"method": "PUT", "every": 1, "behaviour": "lose_reply"}]) as deaf:
            yield {"heard": f"http://127.0.0.1:{heard}", "deaf": f"http://127.0.0.1:{deaf.port}"}


def event(uid, *, summary="Dentist", collection="/demo/appointments"):
    """The payload of one appointment."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Counterfoil//Tests//EN", "BEGIN:VEVENT", f"UID:{uid}"]
    lines += ["DTSTAMP:20270201T090000Z", "DTSTART:20270301T080000Z", "DTEND:20270301T083000Z", f"SUMMARY:{summary}"]
    ics = "\r\n".join([*lines, "END:VEVENT", "END:VCALENDAR", ""])
    return canonical({"collection": collection, "uid": uid, "ics": ics})


def appointments(url, value=BASIC):
    """The calendar's provider."""
    return HttpProvider(CALDAV, base_url=url, account="demo", secrets={"/headers/authorization": lambda: value})


def put(adapter, payload):
    """PUT once; answer and evidence."""
    return send(adapter, CALDAV, payload=payload, account="demo")


def seen(adapter, payload, *, control=""):
    """GET with its controls; the reading."""
    names = Names(provider_key="op_1", control=control, negative="cf-absent-77")
    return look(adapter, CALDAV, names=names, payload=payload, account="demo")[1]


@pytest.mark.slow
def test_a_lost_put_is_settled_by_a_look(calendar):
    """The event stands once, nobody heard so: unknown, then found by its URL and its properties."""
    adapter, payload = appointments(calendar["deaf"]), event("lost@example.com", summary="Teeth\\, all " + "x" * 99)
    answer, evidence = put(adapter, payload)
    assert (type(answer), evidence.finding) == (Silent, Finding.UNKNOWN)
    reading = seen(adapter, payload)
    assert (reading.kind, reading.external_id) == (ReadingKind.FOUND, "lost@example.com")
    assert reading.compared["SUMMARY"] == "equal"


@pytest.mark.slow
def test_what_the_server_changed_is_not_found(calendar):
    """Radicale cuts a text at a comma that is not escaped (RFC 5545 3.3.11): what stands there is not what was sent."""
    adapter, payload = appointments(calendar["deaf"]), event("cut@example.com", summary="Teeth, all of them")
    put(adapter, payload)
    reading = seen(adapter, payload)
    assert (reading.kind, reading.compared["SUMMARY"]) == (ReadingKind.FOREIGN, "different")


@pytest.mark.slow
def test_a_second_put_answers_that_the_first_landed(calendar):
    """412 is nobody's success: unknown, and the look that compares says whose event stands there."""
    payload = event("twice@example.com")
    put(appointments(calendar["deaf"]), payload)
    quiet = appointments(calendar["deaf"])
    assert put(quiet, payload)[1].finding is Finding.UNKNOWN
    answers = {http.client.CREATED: Finding.SUCCEEDED, http.client.PRECONDITION_FAILED: Finding.UNKNOWN}
    adapter = appointments(calendar["heard"])
    for _ in range(2):  # the example itself loses every third PUT
        answer, evidence = put(adapter, payload)
        if isinstance(answer, Replied):
            assert evidence.finding is answers[answer.status]
            assert (answer.status, evidence.reason) == (412, "first_landed")
    assert seen(adapter, payload).kind is ReadingKind.FOUND
    theirs = event("twice@example.com", summary="Somebody else's")
    assert (seen(adapter, theirs).kind, seen(adapter, theirs).reason) == (ReadingKind.FOREIGN, "other_content")


@pytest.mark.slow
def test_nothing_there_is_not_yet_absence(calendar):
    """404 with a found known item is absent now, which a calendar never calls never."""
    adapter = appointments(calendar["heard"])
    known, payload = event("known@example.com"), event("never@example.com")
    for _ in range(2):  # the example itself loses every third answer
        put(adapter, known)
    reading = seen(adapter, payload, control="known@example.com")
    assert (reading.kind, reading.positive_control, reading.negative_control) == (ReadingKind.ABSENT, True, True)
    verdict = absence(
        look=CALDAV.looks[0], reading=reading, looked_at=1e12, elapsed=1e12, deadline=0.0, longest_delivery=1.0,
        quiesced=True,
    )  # fmt: skip
    assert not verdict.proven
    assert verdict.earliest is None


@pytest.mark.slow
def test_a_wrong_password_proves_nothing_by_a_look(calendar):
    """401 on the read is inconclusive; on the write it is the provider's refusal."""
    adapter, payload = appointments(calendar["heard"], "Basic bm9ib2R5Om5v"), event("refused@example.com")
    assert seen(adapter, payload).kind is ReadingKind.INCONCLUSIVE
    answers = [put(adapter, payload) for _ in range(2)]
    heard = [evidence.finding for answer, evidence in answers if isinstance(answer, Replied)]
    assert set(heard) == {Finding.REJECTED}


def test_a_look_by_post_asks_once_for_each_page():
    """What is asked for stands in the body, with the secret beside it; a redirect of it is not followed."""
    found = json.dumps({"account": ACCOUNT, "complete": True, "items": []}).encode()
    (first,) = LOOKUP.looks
    asked = {"query": "query { effects }", "variables": {"of": "{reference}", "after": "{cursor}"}}
    template = LookTemplate(path="/graphql", method="POST", read_only="docs", body=asked)
    contract = msgspec.structs.replace(LOOKUP, looks=(msgspec.structs.replace(first, request=template),))
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(found)}\r\n\r\n".encode()
    with Server(answering(head + found)) as server:
        adapter = provider(None, contract, base_url=server.url(""))
        _, reading = look(adapter, contract)
        look(adapter, contract, names=Names(provider_key="op_1", negative="cf-absent-77", cursor="c2"))
    assert reading.kind is ReadingKind.ABSENT
    assert [(seen.method, seen.target) for seen in server.requests] == [("POST", "/graphql")] * 2
    assert [json.loads(seen.body)["variables"] for seen in server.requests] == [
        {"of": "op_1"}, {"of": "op_1", "after": "c2"},
    ]  # fmt: skip
    assert {seen.headers["authorization"] for seen in server.requests} == {SECRET}
    with Server(answering(b"HTTP/1.1 307 Elsewhere\r\nlocation: /\r\ncontent-length: 0\r\n\r\n")) as server:
        _, reading = look(provider(None, contract, base_url=server.url("")), contract)
    assert (reading.reason, len(server.requests)) == ("status_307", 1)
