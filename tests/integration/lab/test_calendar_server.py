"""The calendar example: a server nobody here wrote, behind a proxy that loses every third answer."""

from __future__ import annotations

import base64
import http.client
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from counterfoil.lab.journal import read
from counterfoil.lab.processes import Child, NotReady

EXAMPLES = Path(__file__).parents[3] / "examples"
COLLECTION = "/demo/appointments/"
CALENDAR_BYTES_MAX = 10_000_000


class Calendar:
    """The running example, spoken to as any CalDAV client would."""

    def __init__(self, child, folder, ask) -> None:
        self.child, self.folder, self._ask = child, folder, ask
        self.port = int(child.ready.rpartition(":")[2])

    def ask(self, method, path, body=None, headers=None, *, password="demo-password"):
        """One request as the demo account."""
        secret = base64.b64encode(f"demo:{password}".encode()).decode()
        return self._ask(self.port, method, path, body, {"Authorization": f"Basic {secret}", **(headers or {})})

    def create(self, name, ics):
        """Create a resource, unless one stands there; None when the answer was lost."""
        headers = {"Content-Type": "text/calendar; charset=utf-8", "If-None-Match": "*"}
        try:
            return self.ask("PUT", COLLECTION + name, ics, headers)
        except http.client.RemoteDisconnected:
            return None

    def heard(self, name, ics):
        """Create a resource again and again until an answer is not lost."""
        return self.create(name, ics) or self.create(name, ics)


def event(uid, *extra, summary="Dentist"):
    """One whole event, its properties in an order that is not the server's own."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Counterfoil//Tests//EN", "BEGIN:VEVENT", f"UID:{uid}"]
    lines += ["DTSTAMP:20270201T090000Z", "DTSTART:20270301T080000Z", "DTEND:20270301T083000Z", f"SUMMARY:{summary}"]
    return "\r\n".join([*lines, *extra, "END:VEVENT", "END:VCALENDAR", ""]).encode()


def start(folder, *arguments, env=None):
    """Run the example as its page says, on a free port."""
    argv = [sys.executable, str(EXAMPLES / "calendar_server.py"), "--port", "0", "--parent-pipe", *arguments]
    return Child([*argv, "--folder", str(folder)], env=env)


@pytest.fixture(scope="module")
def calendar(tmp_path_factory, ask) -> Iterator[Calendar]:
    """One running example for the whole module; each test uses names of its own."""
    folder = tmp_path_factory.mktemp("calendar")
    with start(folder) as child:
        yield Calendar(child, folder, ask)


def appointments():
    """The example's intents."""
    return [json.loads(line) for line in (EXAMPLES / "appointments.jsonl").read_text("utf-8").splitlines()]


def test_the_appointments_are_thirty_different_valid_events():
    """Each line is one intent with a key, a uid and a whole calendar with CRLF line ends of at most 75 octets."""
    intents = appointments()
    assert len(intents) == len({intent["key"] for intent in intents}) == 30
    for intent in intents:
        payload = intent["payload"]
        assert intent["action"] == "calendar.put"
        assert payload.keys() == {"uid", "collection", "ics"}
        assert payload["collection"] + "/" == COLLECTION
        lines = payload["ics"].split("\r\n")
        assert (lines[0], lines[-2], lines[-1]) == ("BEGIN:VCALENDAR", "END:VCALENDAR", "")
        assert f"UID:{payload['uid']}" in lines
        assert not any("\n" in line or len(line.encode()) > 75 for line in lines)


@pytest.mark.slow
def test_every_appointment_stands_though_every_third_answer_is_lost(tmp_path, ask):
    """Thirty creations, ten answers lost, thirty events in the calendar."""
    with start(tmp_path) as child:
        calendar = Calendar(child, tmp_path, ask)
        answers = []
        for intent in appointments():
            name = f"{intent['payload']['uid']}.ics"
            answers.append(calendar.create(name, intent["payload"]["ics"].encode()))
            assert calendar.ask("GET", COLLECTION + name).status == 200
        assert [answer and answer.status for answer in answers] == [201, 201, None] * 10
        listed = calendar.ask("PROPFIND", COLLECTION, headers={"Depth": "1"})
        assert listed.status == 207
        assert listed.body.count(b".ics</href>") == 30
        puts = [entry for entry in read(tmp_path / "wire.jsonl") if entry["method"] == "PUT"]
        assert [entry["lost"] for entry in puts] == [False, False, True] * 10
        assert child.stop() == 0


def test_what_stands_there_is_never_created_again(calendar):
    """The answer is 412, whether the body is the same or another, and what stands there does not change."""
    name = "again.ics"
    calendar.heard(name, event("again"))
    stands = calendar.ask("GET", COLLECTION + name)
    assert calendar.heard(name, event("again")).status == 412
    assert calendar.heard(name, event("again", summary="Other")).status == 412
    assert calendar.heard(name, event("other")).status == 412
    assert calendar.ask("GET", COLLECTION + name).body == stands.body


@pytest.mark.slow
def test_a_412_alone_does_not_prove_that_something_stands_there(calendar):
    """An event over the size limit is refused with the same status, and nothing stands there: one has to look."""
    huge = event("huge", summary="x" * CALENDAR_BYTES_MAX)
    assert calendar.heard("huge.ics", huge).status == 412
    assert calendar.ask("GET", COLLECTION + "huge.ics").status == 404


def test_a_uid_stands_only_once_in_a_collection(calendar):
    """The same UID under another name is refused, with the reason of RFC 4791 5.3.2.1."""
    calendar.heard("uid-one.ics", event("uid-one"))
    refused = calendar.heard("uid-two.ics", event("uid-one"))
    assert refused.status == 409
    assert b"no-uid-conflict" in refused.body
    assert calendar.ask("GET", COLLECTION + "uid-two.ics").status == 404


def test_what_comes_back_has_other_bytes_and_the_same_properties(calendar):
    """The server writes the event in its own order: only properties can be compared."""
    sent = event("order", "LOCATION:Room 1\\, left")
    calendar.heard("order.ics", sent)
    found = calendar.ask("GET", COLLECTION + "order.ics")
    assert found.headers["Content-Type"].startswith("text/calendar")
    assert found.body != sent
    assert sorted(found.body.split(b"\r\n")) == sorted(sent.split(b"\r\n"))


def test_a_comma_that_is_not_escaped_is_cut_off(calendar):
    """A text after a bare comma is lost without a word: a created event need not be the event that was sent."""
    assert calendar.heard("comma.ics", event("comma", summary="Dentist, later")).status in {201, 412}
    assert b"SUMMARY:Dentist\r\n" in calendar.ask("GET", COLLECTION + "comma.ics").body


def test_missing_stamps_are_made_up(calendar):
    """DTSTAMP and PRODID are invented where they are missing; UID, times and summary are not."""
    bare = (
        event("bare")
        .replace(b"DTSTAMP:20270201T090000Z\r\n", b"")
        .replace(b"PRODID:-//Counterfoil//Tests//EN\r\n", b"")
    )
    calendar.heard("bare.ics", bare)
    found = calendar.ask("GET", COLLECTION + "bare.ics").body
    assert b"DTSTAMP:" in found
    assert b"PRODID:" in found
    assert set(bare.split(b"\r\n")) < set(found.split(b"\r\n"))


@pytest.mark.parametrize("body", [b"", b"no calendar", event("no-uid").replace(b"UID:no-uid\r\n", b"")])
def test_what_is_no_event_is_refused(calendar, body):
    """A body that is no calendar object is 400, and nothing stands there."""
    assert calendar.heard("refused.ics", body).status == 400
    assert calendar.ask("GET", COLLECTION + "refused.ics").status == 404


def test_of_four_creations_at_once_one_wins(calendar):
    """Whoever comes first is stored; the others are told, or hear nothing."""
    with ThreadPoolExecutor(4) as pool:
        bodies = [event("race", summary=f"Caller {number}") for number in range(4)]
        answers = list(pool.map(lambda body: calendar.create("race.ics", body), bodies))
    statuses = [answer.status for answer in answers if answer is not None]
    assert statuses.count(201) <= 1
    assert set(statuses) <= {201, 412}
    found = calendar.ask("GET", COLLECTION + "race.ics").body
    assert sum(f"SUMMARY:Caller {number}\r\n".encode() in found for number in range(4)) == 1


def test_without_the_password_nothing_is_seen(calendar):
    """A wrong password is 401 for what stands there and for what does not."""
    calendar.heard("secret.ics", event("secret"))
    for path in ("secret.ics", "nothing.ics"):
        answer = calendar.ask("GET", COLLECTION + path, password="wrong")
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith("Basic")


def test_another_collection_is_not_ours(calendar):
    """A missing collection is 409 for a creation and 404 for a look; another user's is 403."""
    headers = {"If-None-Match": "*", "Content-Type": "text/calendar"}
    for _ in range(2):  # one of two answers is not lost
        try:
            assert calendar.ask("PUT", "/demo/nowhere/a.ics", event("a"), headers).status == 409
        except http.client.RemoteDisconnected:
            continue
    assert calendar.ask("GET", "/demo/nowhere/a.ics").status == 404
    assert calendar.ask("GET", "/other/appointments/a.ics").status == 403


@pytest.mark.slow
def test_a_kept_folder_keeps_its_events(tmp_path, ask):
    """Started again in the same folder, the calendar holds what it held, under a password of one's own."""
    password = {"COUNTERFOIL_DEMO_PASSWORD": "of my own"}
    with start(tmp_path, env=password) as child:
        calendar = Calendar(child, tmp_path, ask)
        headers = {"If-None-Match": "*", "Content-Type": "text/calendar"}
        assert calendar.ask("PUT", COLLECTION + "kept.ics", event("kept"), headers, password="of my own").status == 201
    with start(tmp_path, env=password) as child:
        calendar = Calendar(child, tmp_path, ask)
        assert calendar.ask("GET", COLLECTION + "kept.ics", password="of my own").status == 200


@pytest.mark.slow
def test_its_children_end_with_it(tmp_path):
    """Killed without a chance to tidy up, the example leaves neither server nor proxy behind."""
    with start(tmp_path) as child:
        below = [int(pid) for pid in Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()]
        assert len(below) == 2
        child.kill()
        while any(alive(pid) for pid in below):
            pass


def alive(pid):
    """Whether a process still runs; one that only waits to be collected does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.slow
def test_a_taken_port_is_named(calendar, tmp_path):
    """A second example on the same port ends with a sentence."""
    with pytest.raises(NotReady, match="the calendar server cannot start: ") as ended:
        start(tmp_path, "--port", str(calendar.port))
    assert "in use" in ended.value.said
