"""The provider as it behaves when nothing goes wrong: three kinds of route, and a truth that survives it."""

from __future__ import annotations

import hashlib
import json
import threading

import pytest

from counterfoil.lab.ground_truth import EFFECTS
from counterfoil.lab.processes import NotReady, start_provider

KINDS = ["key", "lookup", "nothing"]


@pytest.mark.parametrize("route", KINDS)
def test_an_effect_is_on_disk_when_its_answer_arrives(lab, route):
    """Each route performs, and the truth names the exact bytes, the name and the account."""
    name, body = lab.name(), '{ "amount":  12,"order":"a" }'
    answer = lab.post(route, name, body=body)
    (effect,) = lab.effects(name)
    assert answer.status == 201
    assert answer.json == {
        "id": effect["id"],
        "state": "done",
        "account": "acct_lab",
        "reference": effect["reference"],
        "key": effect["key"],
    }
    assert effect["kind"] == route
    assert effect["payload"] == {"amount": 12, "order": "a"}
    assert effect["payload_sha256"] == hashlib.sha256(body.encode()).hexdigest()


@pytest.mark.parametrize("route", KINDS)
def test_every_request_is_on_the_wire_log(lab, route):
    """A send is recorded with its name and its bytes, whether or not anything comes of it."""
    name = lab.name()
    lab.post(route, name, body="no json")
    (sent,) = lab.wire(name)
    assert (sent["act"], sent["method"], sent["path"], sent["whole"]) == ("send", "POST", f"/{route}/effects", True)
    assert sent["payload_sha256"] == hashlib.sha256(b"no json").hexdigest()
    assert lab.effects(name) == []


def test_a_look_is_on_the_wire_log_as_a_look(lab):
    """Looks and sends are told apart in the record."""
    before = lab.truth()
    lab.look("whatever")
    after = lab.truth()
    assert (after["looks"], after["sends"]) == (before["looks"] + 1, before["sends"])


def test_the_same_key_and_body_is_answered_again_without_an_effect(lab):
    """A repeated request gets the first answer and performs nothing."""
    name = lab.name()
    first, second = lab.post("key", name), lab.post("key", name)
    assert (first.status, first.body) == (second.status, second.body)
    assert len(lab.effects(name)) == 1
    assert len(lab.wire(name)) == 2


def test_the_same_key_with_another_body_is_refused(lab):
    """A key is bound to its first body."""
    name = lab.name()
    lab.post("key", name, {"n": 1})
    second = lab.post("key", name, {"n": 2})
    assert (second.status, second.json) == (422, {"error": "key_reused"})
    assert len(lab.effects(name)) == 1


@pytest.mark.slow
def test_a_key_in_flight_is_in_use(lab):
    """While the first request is not finished, the same key is refused and performs nothing."""
    name = lab.name()
    lab.faults({"behaviour": "slow", "route": "key", "seconds": 0.3, "times": 1})
    first = []
    thread = threading.Thread(target=lambda: first.append(lab.post("key", name)))
    thread.start()
    while not lab.truth()["rules"][0]["won"]:
        pass
    answers = [lab.post("key", name).status]
    while answers[-1] != 201 and thread.is_alive():
        answers.append(lab.post("key", name).status)
    thread.join()
    assert 409 in answers
    assert set(answers) <= {409, 201}
    assert [answer.status for answer in first] == [201]
    assert len(lab.effects(name)) == 1


def test_a_missing_key_is_refused_before_anything(lab):
    """Without a key the key route performs nothing."""
    before = lab.truth()["effects"]
    answer = lab.post("key")
    assert (answer.status, answer.json) == (400, {"error": "key_missing"})
    assert lab.truth()["effects"] == before


def test_keys_of_two_accounts_are_two_keys(provider):
    """A key means something only within its account."""
    lab = provider("--token", "one=acct_one", "--token", "two=acct_two")
    first, second = lab.post("key", "k", token="one"), lab.post("key", "k", token="two")
    assert (first.status, second.status) == (201, 201)
    assert first.json["id"] != second.json["id"]
    assert {effect["account"] for effect in lab.effects("k")} == {"acct_one", "acct_two"}


@pytest.mark.slow
def test_a_forgotten_key_performs_again(provider):
    """After its retention a key is a new one: the second effect that a retention clause is about."""
    lab = provider("--key-retention", "0.2")
    first = lab.post("key", "k").json["id"]
    for _ in range(10_000):
        if lab.post("key", "k").json["id"] != first:
            break
    assert len(lab.effects("k")) == 2


@pytest.mark.parametrize("route", ["lookup", "nothing"])
def test_every_request_without_a_key_performs(lab, route):
    """Two requests are two effects where nothing protects them."""
    name = lab.name()
    ids = {lab.post(route, name).json["id"] for _ in range(2)}
    assert len(ids) == 2
    assert len(lab.effects(name)) == 2


@pytest.mark.parametrize("route", ["key", "lookup"])
def test_a_look_finds_what_happened_and_its_controls(lab, route):
    """A look finds the effect and the known item, not the unknown name, and says that it is complete."""
    name = lab.name()
    effect = lab.post(route, name, {"amount": 5}).json["id"]
    found = lab.look(name, "control", "nobody-used-this", route=route).json
    assert (found["account"], found["complete"]) == ("acct_lab", True)
    field = "key" if route == "key" else "reference"
    assert {(item["id"], item[field]) for item in found["items"]} == {("ef_control", "control"), (effect, name)}
    (item,) = [item for item in found["items"] if item["id"] == effect]
    assert (item["state"], item["account"], item["payload"]) == ("done", "acct_lab", {"amount": 5})


def test_a_look_sees_only_its_own_account(provider):
    """Another account's effect is absent, and its control item is its own."""
    lab = provider("--token", "one=acct_one", "--token", "two=acct_two")
    effect = lab.post("lookup", "r", token="one").json["id"]
    other = lab.get("/lookup/effects?reference=r&reference=control", token="two").json
    assert [(item["id"], item["account"]) for item in other["items"]] == [("ef_control", "acct_two")]
    assert lab.get(f"/effects/{effect}", token="two").status == 404
    assert lab.get(f"/effects/{effect}", token="one").json["reference"] == "r"


def test_the_nothing_route_cannot_be_looked_at(lab):
    """Where a provider offers no look there is none."""
    assert lab.look("anything", route="nothing").status == 404


def test_an_effect_is_found_by_its_id(lab):
    """The id of an answer leads back to the effect; an unknown id leads nowhere."""
    effect = lab.post("nothing", payload={"x": [1, None]}).json["id"]
    assert lab.get(f"/effects/{effect}").json["payload"] == {"x": [1, None]}
    assert lab.get("/effects/ef_control").status == 200
    assert lab.get("/effects/ef_0000000000000000").status == 404


def test_the_list_is_bounded_and_says_so(provider):
    """The newest come first, and `complete` is true only when nothing was left out."""
    lab = provider()
    ids = [lab.post("lookup", f"r{number}").json["id"] for number in range(3)]
    short, whole = lab.get("/effects?limit=2").json, lab.get("/effects?limit=4").json
    assert ([item["id"] for item in short["items"]], short["complete"]) == ([ids[2], ids[1]], False)
    assert ([item["id"] for item in whole["items"]], whole["complete"]) == ([*reversed(ids), "ef_control"], True)


@pytest.mark.slow
def test_a_lagging_index_hides_a_young_effect_but_not_its_id(provider):
    """An eventual index misses what happened just now, though the effect stands and its id is known."""
    lab = provider("--index-lag", "0.3")
    effect = lab.post("lookup", "r").json["id"]
    assert lab.look("r", "control").json["items"] == [lab.get("/effects/ef_control").json]
    assert lab.get(f"/effects/{effect}").status == 200
    for _ in range(10_000):
        if lab.look("r").json["items"]:
            break
    assert [item["id"] for item in lab.look("r").json["items"]] == [effect]


@pytest.mark.parametrize("token", ["", "wrong", "acct_lab"])
def test_an_unknown_token_reaches_nothing(lab, token):
    """Without a known token nothing is performed and nothing is seen."""
    name = lab.name()
    sent, looked = lab.post("lookup", name, token=token), lab.get("/effects/ef_control", token=token)
    assert (sent.status, sent.json) == (401, {"error": "unauthorized"})
    assert (looked.status, looked.json) == (401, {"error": "unauthorized"})
    assert lab.effects(name) == []
    assert len(lab.wire(name)) == 1


@pytest.mark.parametrize("route", KINDS)
def test_a_refusal_has_no_effect(lab, route):
    """A payload that asks for it is refused, and nothing happened."""
    name = lab.name()
    answer = lab.post(route, name, {"reject": True})
    assert (answer.status, answer.json) == (422, {"error": "refused"})
    assert lab.effects(name) == []


def test_a_refused_key_is_free_again(lab):
    """A refusal binds no key: a corrected request may use it."""
    name = lab.name()
    lab.post("key", name, {"reject": True})
    assert lab.post("key", name, {"reject": False}).status == 201


@pytest.mark.parametrize("path", ["/key/other", "/nowhere", "/effects/a/b", "/_lab/nothing"])
def test_an_unknown_path_is_404(lab, path):
    """There are no other routes."""
    assert lab.get(path).status == 404


@pytest.mark.parametrize("query", ["", "?reference=", "?key=a", "?" + "&".join(["reference=a"] * 201)])
def test_a_look_needs_one_to_two_hundred_names(lab, query):
    """A look for nothing, or for too much, is refused."""
    assert lab.get(f"/lookup/effects{query}").status == 400


@pytest.mark.parametrize("limit", ["0", "-1", "201", "x", "1.5"])
def test_a_list_needs_a_sensible_limit(lab, limit):
    """A limit is a whole number from 1 to 200."""
    assert lab.get(f"/effects?limit={limit}").status == 400


@pytest.mark.parametrize("body", ["", "{", '{"a": NaN}', "\udcff".encode("utf-8", "surrogatepass")])
def test_a_body_that_is_not_json_performs_nothing(lab, body):
    """What cannot be read cannot be performed."""
    name = lab.name()
    assert lab.post("lookup", name, body=body).status == 400
    assert lab.effects(name) == []


def test_a_body_over_the_limit_is_refused(lab, connect):
    """A body announced larger than the limit is refused before it is read."""
    line = connect(lab.port)
    line.sendall(b"POST /lookup/effects HTTP/1.1\r\nHost: lab\r\nContent-Length: 4194305\r\n\r\n")
    assert line.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_body_without_a_length_is_refused(lab, connect):
    """Chunked bodies are not spoken here."""
    line = connect(lab.port)
    line.sendall(b"POST /lookup/effects HTTP/1.1\r\nHost: lab\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert line.recv(100).startswith(b"HTTP/1.1 411 ")


def test_half_a_request_is_recorded_and_performs_nothing(lab, connect):
    """A body that ends early arrived, but was not asked for whole."""
    name = lab.name()
    line = connect(lab.port)
    head = f"POST /lookup/effects HTTP/1.1\r\nAuthorization: Bearer lab-secret\r\nX-Client-Reference: {name}\r\n"
    line.sendall(head.encode() + b"Content-Length: 100\r\n\r\n{")
    line.shutdown(1)
    assert line.recv(100) == b""
    assert [sent["whole"] for sent in lab.wire(name)] == [False]
    assert lab.effects(name) == []


def test_one_connection_carries_many_requests(lab, connect):
    """HTTP/1.1 keeps the connection, so that many effects cost one connect."""
    line = connect(lab.port)
    for _ in range(3):
        line.sendall(b"GET /effects/ef_control HTTP/1.1\r\nAuthorization: Bearer lab-secret\r\n\r\n")
        assert line.recv(4096).startswith(b"HTTP/1.1 200 ")


def test_a_restarted_provider_knows_what_happened(provider):
    """After a kill, effects, keys and looks are as before, and a torn last line is dropped."""
    before = provider()
    first = before.post("key", "k", {"n": 1}).json
    before.post("lookup", "r")
    before.child.kill()
    with (before.folder / EFFECTS).open("a") as torn:
        torn.write('{"at": 1, "seq": 3, "ki')
    after = provider()
    assert after.post("key", "k", {"n": 1}).json == first
    assert after.post("key", "k", {"n": 2}).status == 422
    assert len(after.look("r").json["items"]) == 1
    assert after.post("lookup", "r2").status == 201
    assert [effect["seq"] for effect in map(json.loads, (after.folder / EFFECTS).read_text().splitlines())] == [1, 2, 3]


def test_a_forgotten_key_stays_forgotten_over_a_restart(provider):
    """Retention counts from the first request, across processes."""
    before = provider("--key-retention", "0.01")
    first = before.post("key", "k").json["id"]
    before.child.stop()
    after = provider("--key-retention", "0.01")
    assert after.post("key", "k").json["id"] != first


def test_two_providers_never_share_a_folder(provider):
    """A second writer of one truth is refused at once."""
    lab = provider()
    with pytest.raises(NotReady, match="being written by another process"):
        start_provider(lab.folder)


@pytest.mark.parametrize(
    "arguments",
    [["--rule", "{"], ["--rule", '{"behaviour": "nonsense"}'], ["--token", "x"], ["--plan", "/no/such/file"]],
)
def test_a_provider_that_cannot_start_says_why(tmp_path, arguments):
    """Bad arguments end the process with a sentence, not a traceback."""
    with pytest.raises(NotReady) as ended:
        start_provider(tmp_path, *arguments)
    assert ended.value.said.startswith("the provider cannot start: ")
    assert "Traceback" not in ended.value.said


def test_a_plan_file_is_followed(provider, tmp_path):
    """Rules come from a file as well as from the command line."""
    plan = tmp_path / "plan.json"
    plan.write_text('[{"behaviour": "error_500_before", "times": 1}]')
    lab = provider("--plan", str(plan), rules=[{"behaviour": "error_500", "times": 1}])
    assert [lab.post("lookup", "r").status for _ in range(3)] == [500, 500, 201]
    assert len(lab.effects("r")) == 2


def test_a_provider_ends_cleanly_when_asked(provider):
    """SIGTERM ends it with code 0."""
    lab = provider()
    lab.post("nothing")
    assert lab.child.stop() == 0


def test_a_provider_ends_with_its_parent(provider):
    """When the pipe from its parent ends, so does the provider."""
    lab = provider()
    lab.child.let_go()
    assert lab.child.wait() == 0
