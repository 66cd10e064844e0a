"""Every fault of the provider, on real sockets: what the caller sees, and what really happened."""

from __future__ import annotations

import http.client
import json
import time

import pytest

from counterfoil.lab.misbehaviour import LOOKS, SENDS

LOST = http.client.RemoteDisconnected
CUT = http.client.IncompleteRead

SILENCES = {
    "lose_reply": (LOST, 1),
    "lose_request": (LOST, 0),
    "reset": (ConnectionResetError, 1),
    "cut_body": (CUT, 1),
    "hang": (LOST, 1),
    "apply_late": (LOST, 1),
}
"""What is seen instead of an answer, and how many effects there are in the end."""

ANSWERS = {
    "error_500": (500, 1),
    "error_503_retry_after": (503, 1),
    "error_500_before": (500, 0),
    "html_200": (200, 1),
    "accept_drop": (202, 0),
    "slow": (201, 1),
    "internal_duplicate": (201, 2),
}
"""The status that is answered, and how many effects there are in the end."""

LOOK_SILENCES = {"look_cut": CUT, "look_lost": LOST, "look_hang": LOST}
LOOK_ANSWERS = {
    "look_500": 500,
    "look_401": 401,
    "look_html": 200,
    "look_empty": 200,
    "look_truncated": 200,
    "look_everything": 200,
    "wrong_account": 200,
}


def test_every_behaviour_has_its_law():
    """No behaviour of the provider is without a test in this module."""
    assert SENDS.keys() == SILENCES.keys() | ANSWERS.keys()
    assert LOOKS.keys() == LOOK_SILENCES.keys() | LOOK_ANSWERS.keys()


@pytest.mark.parametrize("route", ["key", "lookup", "nothing"])
@pytest.mark.parametrize("behaviour", SILENCES)
def test_a_silence_says_nothing_about_the_effect(lab, behaviour, route):
    """No answer comes back, whether the effect happened or not, and the next request is answered."""
    seen, effects = SILENCES[behaviour]
    name = lab.name()
    lab.faults({"route": route, "behaviour": behaviour, "times": 1, "seconds": 0.05})
    with pytest.raises(seen):
        lab.post(route, name)
    lab.rest()
    assert len(lab.effects(name)) == effects
    assert len(lab.wire(name)) == 1
    assert lab.post(route, lab.name()).status == 201


@pytest.mark.parametrize("route", ["key", "lookup", "nothing"])
@pytest.mark.parametrize("behaviour", ANSWERS)
def test_an_answer_need_not_be_the_truth(lab, behaviour, route):
    """A status comes back that may say nothing about the effect."""
    status, effects = ANSWERS[behaviour]
    name = lab.name()
    lab.faults({"route": route, "behaviour": behaviour, "times": 1, "seconds": 0.01})
    assert lab.post(route, name).status == status
    assert len(lab.effects(name)) == effects


def test_a_lost_reply_is_lost_without_a_byte(lab, connect):
    """The connection ends in the ordinary way and not one byte came back."""
    name, body = lab.name(), b'{"n":1}'
    lab.faults({"behaviour": "lose_reply"})
    line = connect(lab.port)
    head = f"POST /lookup/effects HTTP/1.1\r\nAuthorization: Bearer lab-secret\r\nX-Client-Reference: {name}\r\n"
    line.sendall(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    assert line.recv(1) == b""
    assert len(lab.effects(name)) == 1


def test_a_lost_key_reply_is_saved_for_the_repetition(lab):
    """The repeated request with the same key gets the answer that was lost, and no second effect."""
    name = lab.name()
    lab.faults({"behaviour": "lose_reply", "times": 1})
    with pytest.raises(LOST):
        lab.post("key", name)
    answer = lab.post("key", name)
    assert answer.status == 201
    assert [effect["id"] for effect in lab.effects(name)] == [answer.json["id"]]


@pytest.mark.parametrize("sent", [0, 1, 5])
def test_a_body_is_cut_where_the_rule_says(lab, sent):
    """The head promises the whole body and so many bytes of it arrive."""
    lab.faults({"behaviour": "cut_body", "bytes": sent})
    with pytest.raises(CUT) as cut:
        lab.post("lookup")
    assert len(cut.value.partial) == sent


def test_a_hanging_answer_never_comes(lab):
    """Without a number of seconds the connection is held; the caller's own deadline ends the wait."""
    name = lab.name()
    lab.faults({"behaviour": "hang", "times": 1})
    with pytest.raises(TimeoutError):
        lab.post("lookup", name, timeout=0.2)
    assert len(lab.effects(name)) == 1


def test_a_provider_with_held_connections_ends_when_asked(provider, connect):
    """A held connection does not keep the process alive."""
    lab = provider(rules=[{"behaviour": "hang"}])
    line = connect(lab.port)
    line.sendall(b"POST /nothing/effects HTTP/1.1\r\nAuthorization: Bearer lab-secret\r\nContent-Length: 2\r\n\r\n{}")
    while not lab.truth()["effects"]:
        pass
    assert lab.child.stop() == 0
    assert line.recv(1) == b""


def test_a_slow_request_waits_before_the_effect(lab):
    """The effect happens after the delay, so that a look in between finds nothing."""
    name, began = lab.name(), time.time()
    lab.faults({"behaviour": "slow", "seconds": 0.1})
    lab.post("lookup", name)
    assert lab.effects(name)[0]["at"] >= began + 0.1


@pytest.mark.slow
def test_a_late_request_is_absent_until_it_arrives(lab):
    """A look finds nothing although the effect is still to come: absence is a word about the past."""
    name = lab.name()
    lab.faults({"behaviour": "apply_late", "seconds": 0.3, "times": 1})
    with pytest.raises(LOST):
        lab.post("lookup", name)
    assert lab.look(name).json["items"] == []
    lab.rest()
    assert len(lab.look(name).json["items"]) == 1


def test_a_late_request_takes_its_key_on_arrival(lab):
    """A repetition may overtake the first request; the key then protects against the late one."""
    name = lab.name()
    lab.faults({"behaviour": "apply_late", "seconds": 0.2, "times": 1})
    with pytest.raises(LOST):
        lab.post("key", name)
    assert lab.post("key", name).status == 201
    lab.rest()
    assert len(lab.effects(name)) == 1


def test_a_retry_after_is_announced(lab):
    """The 503 says when to ask again, after having done what was asked."""
    lab.faults({"behaviour": "error_503_retry_after"})
    assert lab.post("lookup").headers["Retry-After"] == "1"


def test_a_page_looks_like_an_answer(lab):
    """Status 200, but the body is a page for a person."""
    lab.faults({"behaviour": "html_200"}, {"behaviour": "look_html"})
    for answer in (lab.post("lookup"), lab.look("r")):
        assert answer.headers["Content-Type"].startswith("text/html")
        with pytest.raises(json.JSONDecodeError):
            _ = answer.json


@pytest.mark.parametrize("behaviour", LOOK_SILENCES)
def test_a_look_can_meet_silence(lab, behaviour):
    """A look may be cut, lost or held."""
    lab.faults({"behaviour": behaviour, "seconds": 0.05, "times": 1})
    with pytest.raises(LOOK_SILENCES[behaviour]):
        lab.look("control")
    assert lab.look("control").status == 200


@pytest.mark.parametrize("behaviour", LOOK_ANSWERS)
def test_a_look_can_answer_wrongly(lab, behaviour):
    """A look has the status of its fault, and performs nothing."""
    before = lab.truth()["effects"]
    lab.faults({"behaviour": behaviour})
    assert lab.look("control", "r").status == LOOK_ANSWERS[behaviour]
    assert lab.truth()["effects"] == before


def test_an_empty_look_misses_even_the_known_item(lab):
    """The positive control is what tells an empty answer from an absence."""
    lab.faults({"behaviour": "look_empty"})
    assert lab.look("control").json == {"account": "acct_lab", "complete": True, "items": []}


def test_a_truncated_look_has_the_control_and_says_it_is_incomplete(lab):
    """Only `complete` tells a truncated answer from an absence."""
    name = lab.name()
    lab.post("lookup", name)
    lab.faults({"behaviour": "look_truncated"})
    found = lab.look(name, "control").json
    assert ([item["id"] for item in found["items"]], found["complete"]) == (["ef_control"], False)


def test_a_look_that_finds_everything_is_plausible(lab):
    """It claims even what was lost, with its payload; only a random name shows the lie."""
    name = lab.name()
    lab.faults({"behaviour": "lose_request", "times": 1}, {"behaviour": "look_everything"})
    with pytest.raises(LOST):
        lab.post("lookup", name, {"amount": 7})
    found = lab.look(name, "nobody-used-this").json
    assert (found["account"], found["complete"]) == ("acct_lab", True)
    assert [(item["reference"], item["state"]) for item in found["items"]] == [
        (name, "done"),
        ("nobody-used-this", "done"),
    ]
    assert found["items"][0]["payload"] == {"amount": 7}
    assert lab.effects(name) == []


def test_a_look_in_the_wrong_account_names_it(lab):
    """Another account answers: its control is there, ours is not, and the account echo is the only sign."""
    name = lab.name()
    lab.post("lookup", name)
    lab.faults({"behaviour": "wrong_account"})
    found = lab.look(name, "control").json
    assert (found["account"], found["complete"]) == ("acct_other", True)
    assert [(item["reference"], item["account"]) for item in found["items"]] == [("control", "acct_other")]


def test_looks_by_id_and_lists_have_faults_of_their_own(lab):
    """The scope `effects` means looks by id and lists, and no other look."""
    lab.faults({"route": "effects", "behaviour": "look_500"})
    assert [lab.get("/effects/ef_control").status, lab.get("/effects").status] == [500, 500]
    assert lab.look("control").status == 200


def test_a_rule_applies_to_its_route_only(lab):
    """Another route neither meets the fault nor is counted by it."""
    lab.faults({"route": "key", "behaviour": "error_500_before", "nth": [2]})
    statuses = [lab.post(route, lab.name()).status for route in ("key", "lookup", "nothing", "key", "key")]
    assert statuses == [201, 201, 201, 500, 201]


def test_rules_and_their_counts_are_reported(lab):
    """The provider says how often each rule was asked and how often it won."""
    lab.faults({"behaviour": "error_500_before", "every": 2})
    for _ in range(5):
        lab.post("nothing")
    assert lab.truth()["rules"] == [{"behaviour": "error_500_before", "seen": 5, "won": 2}]


def test_a_wrong_plan_changes_nothing(lab):
    """A malformed plan is refused with a sentence and the plan before it stays in force."""
    lab.faults({"behaviour": "error_500_before"})
    refused = lab.faults({"behaviour": "lose_reply", "every": 0})
    assert (refused.status, refused.json) == (
        400,
        {"error": "rule 1: 'every' must be a whole number above zero, not 0"},
    )
    assert lab.post("nothing").status == 500


def test_the_control_door_is_not_on_the_wire_log(lab):
    """What the laboratory asks itself is no part of what the product did."""
    before = lab.truth()
    lab.faults()
    after = lab.truth()
    assert (before["sends"], before["looks"]) == (after["sends"], after["looks"])
