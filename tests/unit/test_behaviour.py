"""Behaviours: each is a provider by itself, and what its facts leave open is played every way."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain.template import Rendered
from counterfoil.lab.behaviour import asked as requests
from counterfoil.lab.behaviour import model
from counterfoil.lab.behaviour.natures import OPTIONS, natures
from counterfoil.lab.behaviour.service import Fate, Service
from counterfoil.lab.behaviour.showing import Sight, show
from counterfoil.lab.failure import RunFailed

KEY = {"at": "header:k", "retention": 100.0, "same": "replay", "other": "refuse", "in_flight": "refuse"}
SMALLEST = {
    "id": "a.b", "facts": [], "method": "POST", "path": "/things/{owner}", "key": KEY | {"after_error": "keep"},
    "answers": {
        "done": {"status": 201, "body": {"id": "$id", "amount": "$sent/amount"}}, "again": {"status": 409},
        "mismatch": {"status": 422}, "errors": [{"status": 500}], "refusals": [{"status": 401}],
    },
    "looks": [{
        "path": "/things/{owner}", "by": {"query:amount": "$text:sent/amount"}, "item": {"id": "$id"},
        "found": {"status": 200, "body": {"data": "$items", "more": "$more"}}, "consistency": "eventual",
        "pages": "short",
    }],
    "ends": "gone",
    "played": {"payload": {"amount": 7}, "differs": {"/amount": 8}},
}  # fmt: skip


def behaviour(**key):
    """The smallest one, with a key of its own."""
    return msgspec.convert(SMALLEST | {"key": SMALLEST["key"] | key}, model.Behaviour)


def write(amount=7, key="k1", account="ours", wire=1):
    """One request."""
    body = json.dumps({"amount": amount}).encode()
    made = Rendered(method="POST", target="/things/ann", headers=(("k", key),), body=body)
    return requests.read(made, body="json", account=account, route="/things/{owner}", wire=wire)


def statuses(service, *asked):
    """What each is answered, one second after the other."""
    return [service.arrive(one, float(at))[0].status for at, one in enumerate(asked)]


@pytest.mark.parametrize("name", model.names())
def test_every_behaviour_reads_and_is_of_a_contract(name):
    """Each is named as its file, and the catalogue has a contract of that name."""
    assert model.load(name).id == name
    assert name in contracts.names()


def test_what_no_file_or_no_behaviour_is_is_refused(tmp_path, monkeypatch):
    """With the file and what is wrong with it."""
    with pytest.raises(RunFailed):
        model.load("nobody.knows")
    monkeypatch.setattr(model, "FOLDER", tmp_path)
    (tmp_path / "a.b.yaml").write_text("id: a.c\nnobody: knows\n")
    with pytest.raises(RunFailed, match=r"a\.b\.yaml.*nobody"):
        model.load("a.b")


@pytest.mark.parametrize(
    ("key", "answers", "effects"),
    [
        ({}, [201, 201, 422], 1),
        ({"same": "refuse"}, [201, 409, 422], 1),
        ({"same": "second", "other": "second"}, [201, 201, 201], 3),
        ({"other": "replay"}, [201, 201, 201], 1),
        ({"same": "overwrite"}, [201, 201, 422], 2),
        ({"same": "current"}, [201, 201, 422], 1),
        ({"retention": 1.5}, [201, 201, 201], 2),
        ({"at": "none"}, [201, 201, 201], 3),
        ({"scope": ["$sent/amount"]}, [201, 201, 201], 2),
        ({"only_with": {"if-none-match": "*"}}, [201, 201, 201], 3),
    ],
)
def test_a_repeat_is_what_the_facts_say(key, answers, effects):
    """The same twice, then another under the same key."""
    service = Service(behaviour(**key))
    assert statuses(service, write(), write(), write(8)) == answers
    assert len(service.effects) == effects


def test_what_is_replayed_speaks_of_the_first():
    """A silent replay says what was done, not what was asked for now."""
    service = Service(behaviour(other="replay"))
    service.arrive(write(7), 0.0)
    assert json.loads(service.arrive(write(8), 1.0)[0].body)["amount"] == 7


@pytest.mark.parametrize(("way", "answers", "effects"), [("refuse", 409, 1), ("second", 201, 2), ("wait", 201, 1)])
def test_beside_the_first_it_is_what_the_facts_say(way, answers, effects):
    """A second request while the first is being done."""
    service = Service(behaviour(in_flight=way))
    service.arrive(write(), 0.0, Fate(slow=10.0))
    assert service.arrive(write(), 5.0)[0].status == answers
    assert len(service.effects) == effects


@pytest.mark.parametrize(
    ("way", "works", "answer", "effects"),
    [("keep", True, 201, 1), ("keep", False, 201, 1), ("replay", True, 500, 1), ("replay", False, 500, 0),
     ("forget", True, 201, 2), ("forget", False, 201, 1)],
)  # fmt: skip
def test_an_error_leaves_of_a_key_what_the_facts_say(way, works, answer, effects):
    """With an effect or without, the same request again."""
    service = Service(behaviour(after_error=way))
    told = service.nature.answers.errors[0]
    assert service.arrive(write(), 0.0, Fate(told=told, works=works))[0].status == 500
    assert service.arrive(write(), 1.0)[0].status == answer
    assert len(service.effects) == effects


def test_a_refusal_does_nothing_and_binds_no_key():
    """Whatever comes after it is the first."""
    service = Service(behaviour())
    refusal = service.nature.answers.refusals[0]
    assert service.arrive(write(), 0.0, Fate(told=refusal, works=False))[0].status == 401
    assert (service.effects, service.entries) == ([], {})


@pytest.mark.parametrize("end", ["gone", "closed"])
def test_a_name_is_free_when_what_it_names_has_ended(end):
    """While it stands it is refused."""
    service = Service(behaviour(retention="while_it_stands", same="refuse"))
    assert statuses(service, write(), write()) == [201, 409]
    setattr(service.things[0], end, True)
    assert service.arrive(write(), 9.0)[0].status == 201


@pytest.mark.parametrize(
    ("sight", "shown"),
    [
        (Sight(), 2),
        (Sight(behind=True), 1),
        (Sight(short=True), 1),
        (Sight(outsider=True), 0),
        (Sight(broken=True), None),
    ],
)
def test_a_look_shows_what_it_may(sight, shown):
    """The account's own, as late and as much at once as the facts say."""
    service = Service(behaviour())
    service.add(replace(write(), wire=0), 0.0)
    service.arrive(write(), 5.0)
    read = requests.read(
        Rendered(method="GET", target="/things/ann"), body="text", account="ours", route="/things/{owner}"
    )
    answer = show(service, service.nature.looks[0], read, 9.0, sight)
    assert (answer.status == 503) is (shown is None)
    if shown is not None:
        assert len(json.loads(answer.body)["data"]) == shown
    filtered = replace(read, query={"amount": ["8"]})
    assert json.loads(show(service, service.nature.looks[0], filtered, 9.0).body)["data"] == []


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "counted_from"])
def test_what_is_unknown_is_played_as_everything_it_may_be(name):
    """One nature for each, and none of them unknown; what is known stays as it is."""
    known = behaviour()
    assert list(natures(known, name)) == [known]
    if name == "ends":
        unknown = msgspec.structs.replace(known, ends="unknown")
    elif name in ("consistency", "pages"):
        unknown = msgspec.structs.replace(known, looks=(msgspec.structs.replace(known.looks[0], **{name: "unknown"}),))
    else:
        unknown = behaviour(**{name: "unknown"})
    found = list(natures(unknown, name))
    assert len(found) == len(OPTIONS[name])
    assert not any("unknown" in repr(getattr(nature.key, name, "")) for nature in found)
    assert len(list(natures(unknown))) == 1


def test_paths_and_forms_are_read_as_servers_do():
    """A last name may hold slashes; brackets nest."""
    assert requests.routed("/b/{bucket}/{+key}", "/b/x/a%20b/c") == {"bucket": "x", "key": "a b/c"}
    assert requests.routed("/b/{bucket}", "/b/x/y") is None
    made = Rendered(method="POST", target="/f?q=1&q=2", body=b"a=1&m%5Bk%5D=v")
    read = requests.read(made, body="form", account="ours", route="/f")
    assert (read.document, read.query) == ({"a": "1", "m": {"k": "v"}}, {"q": ["1", "2"]})
