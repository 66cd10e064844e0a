"""Contracts: pinned by digest, cautious where silent, and checked for what they may not claim."""

from __future__ import annotations

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain.contract import Contract, Terminal, digest
from counterfoil.domain.identifier import NONCE_BYTES, operation_id
from counterfoil.domain.soundness import NEVER_ABSENT, OURS, OWN_CHARS, check
from counterfoil.domain.template import Names

SMALLEST = {
    "id": "a.b",
    "version": 1,
    "provider": "p",
    "effect": "e",
    "sources": {"s": {"says": "so", "confidence": "documented", "document": "d"}},
    "protection": {"kind": "unknown", "source": "s"},
    "repeat": {"source": "s"},
}
REQUEST = {"method": "POST", "path": "/x"}
LOOK = {
    "by": "list",
    "request": {"path": "/x"},
    "match": {"reference": "/r"},
    "items": "/items",
    "source": "s",
}
KEYED = {"kind": "idempotency_key", "source": "s"}
SAFE = {"same_payload": "replays_answer", "in_flight": "waits", "errors_replayed": True, "source": "s"}


FENCE = {
    "request": {"method": "PUT", "path": "/{provider_key}", "body": "none"},
    "won": ["201"],
    "lost": ["412"],
    "source": "s",
}
NAMED = {
    "protection": {"kind": "natural_key", "carrier": "path", "source": "s"},
    "repeat": {"other_payload": "refused", "in_flight": "refused", "source": "s"},
    "request": {"method": "PUT", "path": "/{provider_key}"}, "fences": [FENCE], "reconcile": "allowed",
    "read_budget": {"looks_max": 1},
}  # fmt: skip


def contract(**fields):
    """The smallest contract with some fields of its own."""
    return msgspec.convert(SMALLEST | fields, Contract)


def problems(**fields):
    """What the check says of it: paths and sentences."""
    return [(found.path, found.problem) for found in check(contract(**fields))]


def paths(**fields):
    """Where the check finds fault."""
    return [path for path, _ in problems(**fields)]


def look(**fields):
    """One look with some fields of its own, in a contract whose budget allows it."""
    return {"looks": [LOOK | fields]}


def answer(**fields):
    """One rule with some fields of its own."""
    return {"answers": [{"status": ["200"], "finding": "succeeded", "source": "s"} | fields]}


def test_silence_means_the_cautious_thing():
    """What a contract leaves out is unknown, forbidden or none."""
    bare = contract()
    assert check(bare) == ()
    assert bare.protection.retention_seconds == "unknown"
    assert not bare.repeat.safe
    assert bare.reconcile == "forbidden"
    assert (bare.automatic_attempts.same_key_replay, bare.automatic_attempts.absence_proven) == (0, 0)
    assert bare.read_budget.looks_max == 0
    quiet = contract(**look()).looks[0]
    assert (quiet.consistency, quiet.lag_seconds, quiet.complete) == ("unknown", "unknown", "unknown")
    assert (quiet.authoritative, quiet.absence_means, quiet.match.account) == ("unknown", "unknown", "unknown")


@pytest.mark.parametrize("name", contracts.names())
def test_the_catalogue_is_sound(name):
    """Every contract that ships passes its own check and is named as its file."""
    loaded = contracts.load(name)
    assert check(loaded) == ()
    assert loaded.id == name


def test_a_rule_compares_only_what_speaks_of_an_effect():
    """A refusal has nothing to compare with what was asked for."""
    assert paths(**answer(match={"/a": "/b"})) == []
    assert paths(**answer(status=["400"], finding="rejected", match={"/a": "/b"})) == ["$.answers[0].match"]


def test_what_stands_for_as_long_as_it_stands_is_repeated_by_nobody():
    """A name that ends with what it names protects for no time that anybody promises."""
    kept = KEYED | {"retention_seconds": "while_it_stands"}
    granted = {"same_key_replay": 1}
    assert paths(protection=kept, repeat=SAFE, automatic_attempts=granted) == ["$.automatic_attempts.same_key_replay"]


def test_a_body_is_where_a_contracts_text_stands():
    """A text of the payload, or no body, has no places."""
    carried = KEYED | {"carrier": "body:/key"}
    put = {"/key": "{provider_key}"}
    assert paths(protection=carried, request=REQUEST | {"put": put}) == []
    assert paths(protection=carried, request=REQUEST | {"body": "form", "put": put}) == []
    assert paths(protection=carried, request=REQUEST | {"put": {"/key": "mine"}}) == ["$.protection.carrier"]
    assert "$.request.put" in paths(protection=carried, request=REQUEST | {"body": "none", "put": put})
    assert paths(request=REQUEST | {"put": {"/key": "{nothing}"}}) == ["$.request"]


@pytest.mark.parametrize(("most", "fits"), [(34, False), (35, True), ("unknown", True)])
def test_the_ledgers_key_fits_where_it_is_put(most, fits):
    """A provider that takes shorter keys would cut it, or refuse every write."""
    protection = KEYED | {"carrier": "header:k", "length_max": most}
    found = paths(protection=protection, request=REQUEST | {"headers": {"k": "{provider_key}"}})
    assert (found == []) is fits
    assert paths(protection=protection | {"carrier": "unknown"}, request=REQUEST) == []


def test_the_ledgers_key_has_the_length_that_is_counted_on():
    """It is an operation's id, in either form."""
    names = Names(provider_key=operation_id(0, bytes(NONCE_BYTES)))
    assert {word: len(getattr(names, word)) for word in OWN_CHARS} == OWN_CHARS


def test_a_provider_that_takes_only_uuids_is_given_one():
    """The ledger's plain key would be refused, or hashed to something that nobody knows."""
    wanted = KEYED | {"carrier": "header:k", "format": "uuid"}
    plain = paths(protection=wanted, request=REQUEST | {"headers": {"k": "{provider_key}"}})
    assert plain == ["$.protection.format"]
    assert paths(protection=wanted, request=REQUEST | {"headers": {"k": "{provider_uuid}"}}) == []
    short = paths(protection=wanted | {"length_max": 35}, request=REQUEST | {"headers": {"k": "{provider_uuid}"}})
    assert short == ["$.protection.length_max"]


def test_a_400_says_by_its_body_that_nothing_is_there():
    """The status alone says too many things."""
    assert paths(**look(absent_status=["400"])) == ["$.looks[0].absent_where"]
    assert paths(**look(absent_status=["400"], absent_where={"/code": -2013})) == []


def test_a_look_by_key_may_name_the_field_that_is_the_reference():
    """In a path of several segments too."""
    by_key = {"by": "key", "match": {"reference": "path"}, "items": "", "request": {"path": "/b{/payload/name}"}}
    kept = KEYED | {"carrier": "path"}
    request = REQUEST | {"method": "PUT", "path": "/b{/payload/name}"}
    assert paths(protection=kept, request=request, reference="payload/name", **look(**by_key)) == []
    assert paths(protection=kept | {"carrier": "unknown"}, **look(**by_key)) == ["$.looks[0].request"]


def test_the_digest_names_the_whole_contract():
    """Equal contracts have one digest, and any change, a citation's too, has another."""
    first = digest(contract())
    assert first == digest(contract(sources=dict(SMALLEST["sources"])))
    changes = [{"version": 2}, {"one_shot": True}, {"repeat": SAFE}, look(), {"compensation": "none"}]
    said = {"sources": {"s": SMALLEST["sources"]["s"] | {"says": "otherwise"}}}
    digests = {digest(contract(**change)) for change in [*changes, said]} | {first}
    assert len(digests) == len(changes) + 2
    assert all(found.startswith("ct1:") for found in digests)


def test_a_terminal_observation_is_followed():
    """Accepted is the end unless the contract names a later observation."""
    assert not contract().follows
    later = Terminal(state={"/state": ("paid",)}, finding="succeeded", source="s")
    assert msgspec.structs.replace(contract(), terminal=(later,)).follows


@pytest.mark.parametrize(
    ("same_payload", "in_flight", "safe"),
    [
        ("replays_answer", "refused", True),
        ("returns_current", "waits", True),
        ("refused", "refused", True),
        ("overwrites", "refused", False),
        ("second_effect", "refused", False),
        ("unknown", "refused", False),
        ("refused", "unknown", False),
        ("refused", "second_effect", False),
    ],
)
def test_a_repeat_is_safe_only_as_documented(same_payload, in_flight, safe):
    """No second effect, also beside a first request in flight; an overwrite may undo what others did."""
    repeat = {"same_payload": same_payload, "in_flight": in_flight, "errors_replayed": False, "source": "s"}
    assert contract(repeat=repeat).repeat.safe is safe


@pytest.mark.parametrize(("errors", "safe"), [(True, True), (False, True), ("run_again", False), ("unknown", False)])
def test_a_repeat_after_an_error_is_safe_only_as_documented(errors, safe):
    """A provider that forgets the key with an error runs the same request again, whatever the error left behind."""
    assert contract(repeat=SAFE | {"errors_replayed": errors}).repeat.safe is safe


@pytest.mark.parametrize(
    "fields",
    [
        {"protection": KEYED | {"source": "t"}},
        {"repeat": {"source": "t"}},
        answer(source="t"),
        look(source="t"),
        NAMED | {"fences": [FENCE | {"source": "t"}]},
        look()
        | {
            "reconcile": "allowed",
            "read_budget": {"looks_max": 1},
            "terminal": [{"state": {"/s": ["paid"]}, "finding": "succeeded", "source": "t"}],
        },
    ],
    ids=["protection", "repeat", "answers", "looks", "fences", "terminal"],
)
def test_every_clause_cites_a_source_that_is_there(fields):
    """A clause without a source proves nothing."""
    (path,) = paths(**fields)
    assert path.endswith(".source")


def test_a_source_can_be_looked_up():
    """A citation names a page or a document."""
    assert paths(sources={"s": {"says": "so", "confidence": "inferred"}}) == ["$.sources.s"]


@pytest.mark.parametrize(
    "fields",
    [
        {"request": REQUEST | {"path": "/{key}"}},
        {"request": REQUEST | {"path": "/{external_id}"}},
        {"request": REQUEST | {"query": {"q": ["{negative}"]}}},
        {"request": REQUEST | {"headers": {"x": "{control}"}}},
        look(request={"path": "/{nothing}"}),
        look(controls={"positive": {"path": "/{control}/{x}"}}),
        {"fences": [{"request": REQUEST | {"path": "/{"}, "won": ["201"], "lost": ["409"], "source": "s"}]},
    ],
    ids=["word", "id", "negative", "control", "look", "controls", "fence"],
)
def test_templates_hold_known_placeholders_only(fields):
    """Every template is checked, and a send can know neither controls nor the provider's id."""
    assert paths(**fields)


@pytest.mark.parametrize(
    ("carrier", "request_", "carried"),
    [
        ("header:X-Key", {"headers": {"x-key": "{provider_key}"}}, True),
        ("header:X-Key", {"headers": {"x-key": "k={reference}"}}, True),
        ("header:X-Key", {}, False),
        ("header:X-Key", {"headers": {"x-other": "{provider_key}"}}, False),
        ("query:k", {"query": {"k": "{provider_key}"}}, True),
        ("query:k", {"query": {"k": ["a", "{provider_key}"]}}, True),
        ("query:k", {}, False),
        ("path", {"path": "/{provider_key}"}, True),
        ("path", {}, False),
        ("body:/id", {}, False),
        ("body:/id", {"body": "payload/text"}, True),
        ("none", {}, True),
        ("unknown", {}, True),
    ],
)
def test_the_request_carries_the_key(carrier, request_, carried):
    """A protection whose key never leaves protects nothing."""
    found = paths(protection=KEYED | {"carrier": carrier}, request=REQUEST | request_)
    assert found == ([] if carried else ["$.protection.carrier"])


def test_the_key_may_be_a_field_of_the_payload():
    """Where the provider knows the effect by the payload's own field, that field is the key."""
    own = {"protection": KEYED | {"carrier": "path"}, "reference": "payload/uid"}
    assert paths(request=REQUEST | {"path": "/{payload/uid}"}, **own) == []
    assert paths(request=REQUEST | {"path": "/{payload/other}"}, **own) == ["$.protection.carrier"]
    in_body = {"protection": KEYED | {"carrier": "body:/uid"}, "reference": "payload/uid"}
    assert paths(request=REQUEST, **in_body) == []


def test_the_whole_payload_is_not_left_out():
    """A body without anything is `none`."""
    assert paths(request=REQUEST | {"without": ["/a", ""]}) == ["$.request.without"]


@pytest.mark.parametrize("name", [*sorted(OURS), "authorization"])
def test_headers_that_are_not_a_contracts_to_set(name):
    """What frames the exchange, and a secret's place, hold no text of a contract."""
    assert paths(request=REQUEST | {"headers": {name: "x"}}, secrets=["/headers/authorization"]) == [
        f"$.request.headers.{name}"
    ]


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"status": ["4xx"], "finding": "rejected"}, "status"),
        ({"status": ["5xx"], "finding": "not_sent"}, "status"),
        ({"status": ["200"], "finding": "rejected"}, "where"),
        ({"status": ["200", "404"], "finding": "succeeded"}, "finding"),
        ({"status": ["409"], "finding": "accepted"}, "finding"),
        ({"status": ["409"], "finding": "rejected", "means": "first_landed"}, "means"),
        ({"coverage": "provider_key"}, "coverage"),
        ({"coverage": "operation"}, "coverage"),
    ],
)
def test_answers_that_prove_too_much(fields, key):
    """A class never denies, a 2xx denies only by its body, an error never succeeds, one answer never covers all."""
    assert paths(**answer(**fields)) == [f"$.answers[0].{key}"]


@pytest.mark.parametrize(
    "fields",
    [
        {"status": ["2xx", "303"]},
        {"status": ["404"], "finding": "rejected"},
        {"status": ["200"], "finding": "rejected", "where": {"/errors": 1}},
        {"status": ["409"], "finding": "unknown", "means": "first_landed"},
        {"status": ["4xx"], "finding": "unknown"},
    ],
)
def test_answers_that_may_stand(fields):
    """What a provider can document passes."""
    assert paths(**answer(**fields)) == []


def test_with_a_key_an_answer_may_speak_for_all_its_attempts():
    """One key, one effect."""
    assert paths(protection=KEYED, **answer(coverage="provider_key")) == []


@pytest.mark.parametrize("status", [*sorted(NEVER_ABSENT), "500", "200", "302"])
def test_r74_what_never_says_absent(status):
    """403 and its like speak of the asking, never of the thing asked for."""
    found = look(absent_status=[status], found_status=["201"], items="")
    assert paths(**found) == ["$.looks[0].absent_status"]


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"absent_status": ["404"], "found_status": ["404"]}, "absent_status"),
        ({"by": "key", "request": {"path": "/{reference}"}}, "by"),
        ({"by": "client_reference"}, "request"),
        ({"by": "id", "request": {"path": "/{reference}"}}, "request"),
        ({"result": {"id": "/id"}}, "result"),
        ({"match": {"reference": "path"}}, "match.reference"),
        ({"match": {"text": {"format": "icalendar", "payload": "/i", "properties": ["UID"]}}}, "match.text"),
        ({"by": "client_reference", "request": {"path": "/{reference}"}, "controls": {"negative": "inline"}},
         "controls.negative"),
        ({"items": "", "controls": {"positive": "inline"}}, "controls.positive"),
        ({"by": "id", "request": {"path": "/{external_id}"}, "controls": {"negative": {"path": "/x"}}},
         "controls.negative"),
    ],
)  # fmt: skip
def test_looks_that_cannot_hold(fields, key):
    """A look asks for what it searches by, compares what it says, and controls what it can."""
    assert paths(**look(**fields)) == [f"$.looks[0].{key}"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"by": "client_reference", "request": {"path": "/x", "query": {"r": "{provider_key}"}}},
        {"by": "id", "request": {"path": "/{external_id}"}, "controls": {"negative": {"path": "/{negative}"}}},
        {"controls": {"positive": "inline", "negative": "inline"}},
    ],
)
def test_looks_that_may_stand(fields):
    """What a provider can offer passes; a list holds its controls without being asked for them."""
    assert paths(**look(**fields)) == []


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_a_look_has_no_method_that_writes(method):
    """A read that writes cannot even be described."""
    with pytest.raises(msgspec.ValidationError, match="method"):
        contract(**look(request={"path": "/x", "method": method}))


@pytest.mark.parametrize("said", ["measured", "source_code", "inferred", "unknown", "documented"])
def test_a_post_is_a_look_only_by_the_providers_word(said):
    """A source that is documented, and no other, says that it only reads; its controls need that word too."""
    post = {"path": "/x", "method": "POST", "body": {"q": "{reference}"}}
    fine = [] if said == "documented" else ["$.looks[0].request.read_only", "$.looks[0].controls.negative.read_only"]
    sources = {"r": {"says": "it reads", "confidence": said, "document": "d"}} | SMALLEST["sources"]
    assert paths(sources=sources, **look(
        request=post | {"read_only": "r"},
        controls={"negative": post | {"body": {"q": "{negative}"}, "read_only": "r"}},
    )) == fine  # fmt: skip
    assert paths(**look(request=post)) == ["$.looks[0].request.read_only"]
    assert paths(**look(request=post | {"read_only": "nobody"})) == ["$.looks[0].request.read_only"]


def test_a_get_has_no_body():
    """What a server makes of one is not defined (RFC 9110 9.3.1)."""
    assert paths(**look(request={"path": "/x", "body": {}})) == ["$.looks[0].request.body"]


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"request": {"path": "/x", "query": {"c": "{cursor}"}}, "next_page": "/next"}, 0),
        ({"next_page": "/next"}, 1),
        ({"request": {"path": "/x", "query": {"c": "{cursor}"}}}, 1),
        ({"request": {"path": "/x", "query": {"c": "{cursor}"}}, "next_page": "/next", "items": ""}, 1),
    ],
)
def test_a_page_is_asked_for_by_what_the_one_before_says(fields, count):
    """The place it is read from, and the place it is asked at; one item has no pages."""
    assert paths(**look(**fields)) == ["$.looks[0].next_page"] * count


def test_what_has_pages_is_not_complete_by_itself():
    """`complete: true` beside `next_page` would call the first page the whole list."""
    paged = {"request": {"path": "/x", "query": {"c": "{cursor}"}}, "next_page": "/next"}
    assert paths(**look(**paged, complete=True)) == ["$.looks[0].complete"]
    assert paths(**look(**paged, complete={"/next": [None]})) == []
    assert paths(**look(complete=True)) == []


@pytest.mark.parametrize("match", [{}, {"account": "scope"}, {"account": "scope", "state": {"/s": ["done"]}}])
def test_a_look_that_compares_nothing_finds_nothing(match):
    """It would be paid for, time and again, and never be anything's."""
    assert paths(**look(match=match)) == ["$.looks[0].match"]
    for told in ({"reference": "/r"}, {"material": {"/a": "/a"}}):
        assert paths(**look(match=match | told)) == []
    assert paths(**look(by="id", items="", request={"path": "/{external_id}"}, match=match | {"noted": True})) == []


def test_a_send_knows_no_cursor():
    """There is nothing to go on from."""
    assert paths(request={"method": "POST", "path": "/x", "query": {"c": "{cursor}"}}) == ["$.request"]


def test_what_bounds_looks_needs_looks():
    """A bound for all looks at an account is nonsense where none is made; where it is not said, no digest has it."""
    shared = {"read_budget": {"looks_max": 1, "provider": {"looks": 3, "per_seconds": 60}}}
    assert paths(**shared) == ["$.read_budget.provider"]
    assert paths(reconcile="allowed", **look(), **shared) == []
    assert b"provider" not in msgspec.json.encode(contract(read_budget={"looks_max": 1}).read_budget)


def test_allowed_looks_are_budgeted():
    """Reconcile without a budget would never look and never say so."""
    assert paths(reconcile="allowed", **look()) == ["$.read_budget"]
    assert paths(reconcile="allowed", read_budget={"looks_max": 1}, **look()) == []


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"protection": KEYED | {"retention_seconds": 86400}, "repeat": SAFE}, 0),
        ({"protection": KEYED | {"retention_seconds": "never_expires"}, "repeat": SAFE}, 0),
        ({"protection": KEYED | {"retention_seconds": 86400}, "repeat": SAFE, "one_shot": True}, 1),
        ({"protection": {"kind": "client_reference", "retention_seconds": 9, "source": "s"}, "repeat": SAFE}, 2),
        ({"protection": KEYED | {"retention_seconds": 86400}}, 1),
        ({"protection": KEYED, "repeat": SAFE}, 1),
    ],
)
def test_automatic_attempts_need_a_documented_key(fields, count):
    """A worker repeats only what a provider documents as safe, for a documented time, and never a one-shot."""
    assert len(problems(automatic_attempts={"same_key_replay": 1}, **fields)) == count


def test_a_one_shot_goes_again_on_no_proof():
    """Absence, too, grants a one-shot nothing."""
    assert paths(one_shot=True, automatic_attempts={"absence_proven": 1}) == ["$.automatic_attempts"]


def test_a_key_outlives_the_send_it_protects():
    """A retention that ends within the send's own deadline protects nothing."""
    short = {"protection": KEYED | {"retention_seconds": 30}}
    assert paths(send_deadline_seconds=30, **short) == ["$.protection.retention_seconds"]
    assert paths(send_deadline_seconds=29, **short) == []


END = {"state": {"/s": ["paid"]}, "finding": "succeeded", "source": "s"}
SEEN = look() | {"reconcile": "allowed", "read_budget": {"looks_max": 3, "first_after_seconds": 5}}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        (SEEN | {"terminal": [END], "follow_seconds": 6}, None),
        (SEEN | {"terminal": [END]}, None),
        ({"terminal": [END]}, "$.terminal"),
        (SEEN | {"terminal": [END], "reconcile": "forbidden"}, "$.terminal"),
        (SEEN | {"terminal": [END], "follow_seconds": 5}, "$.follow_seconds"),
        (SEEN | {"follow_seconds": 6}, "$.follow_seconds"),
    ],
    ids=["in time", "without a deadline", "no look", "looks forbidden", "no time to look", "no end"],
)
def test_what_is_followed_is_seen_in_time(fields, path):
    """An end that no look could show, or not before the deadline, would leave every acceptance with people."""
    assert paths(**fields) == ([path] if path else [])


def ended(*states, where=(), findings=("succeeded", "rejected")):
    """A contract that follows to these ends, whose answers say what stands in `where`."""
    ends = [{"state": s, "finding": f, "source": "s"} for s, f in zip(states, findings, strict=False)]
    answers = [{"status": ["200"], "finding": f, "where": w, "source": "s"} for f, w in where]
    return paths(**SEEN, terminal=ends, answers=answers)


@pytest.mark.parametrize(
    ("states", "where", "count"),
    [
        (({"/s": ["a", "b"]}, {"/s": ["b", "c"]}), (), 1),
        (({"/s": ["a"]}, {"/s": ["a"], "/t": ["x"]}), (), 1),  # the second is never reached where it holds
        (({"/s": ["a"], "/t": ["x"]}, {"/s": ["a"]}), (), 0),  # the first is the exception
        (({"/s": ["a"], "/t": ["x"]}, {"/s": ["a"], "/t": ["y"]}), (), 0),
        (({"/s": ["a"]}, {"/s": ["b"]}), (), 0),
        (({"/s": [1]}, {"/s": [True]}), (), 0),
        (({"/s": ["a"]}, {"/t": ["a"]}), (), 0),
        (({"/s": ["a"]},), [("rejected", {"/s": "a"})], 1),
        (({"/s": ["a"]},), [("rejected", {"/s": "a", "/code": 7})], 1),
        (({"/s": ["x"]}, {"/s": ["a"]}), [("succeeded", {"/s": "a"})], 1),
        (({"/s": ["a"]},), [("succeeded", {"/s": "a"}), ("accepted", {"/s": "a"}), ("unknown", {"/s": "a"})], 0),
        (({"/s": ["a"]},), [("rejected", {"/s": "b"}), ("rejected", {"/t": "a"})], 0),
    ],
)
def test_one_state_has_one_end(states, where, count):
    """Which clause is read first must not decide whether a refund happened; a special case may stand first."""
    assert ended(*states, where=where) == [f"$.terminal[{len(states) - 1}].state"] * count


def test_the_same_end_may_be_said_twice():
    """Two clauses, two sources, one finding."""
    assert ended({"/s": ["a"]}, {"/s": ["a"]}, findings=("rejected", "rejected")) == []


@pytest.mark.parametrize(("errors", "count"), [(True, 0), (False, 1), ("run_again", 1), ("unknown", 1)])
def test_r8_a_denial_speaks_for_an_earlier_attempt_only_where_it_is_its_own(errors, count):
    """Insufficient balance may be so because the first order was filled: only a repeated answer is the first one's."""
    denied = {"status": ["402"], "finding": "rejected", "coverage": "provider_key"}
    said = {"protection": KEYED, "repeat": SAFE | {"errors_replayed": errors}}
    assert paths(**said, **answer(**denied)) == ["$.answers[0].coverage"] * count
    assert paths(**said, **answer(**denied | {"coverage": "attempt"})) == []


def test_a_text_shows_no_end():
    """A state stands in a document; a text has none."""
    text = {"format": "icalendar", "payload": "/t", "properties": ["UID"]}
    match = {"account": "scope", "reference": "path", "text": text}
    seen = look(match=match, items="") | {"reconcile": "allowed", "read_budget": {"looks_max": 3}}
    assert paths(**seen, terminal=[END]) == ["$.terminal"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({}, []),
        ({"protection": NAMED["protection"] | {"kind": "client_reference"}}, ["$.fences[0]"]),
        ({"repeat": NAMED["repeat"] | {"other_payload": "overwrites"}}, ["$.fences[0]"]),
        ({"repeat": NAMED["repeat"] | {"in_flight": "unknown"}}, ["$.fences[0]"]),
        ({"one_shot": True}, ["$.fences[0]"]),
        ({"reconcile": "forbidden"}, ["$.fences[0]"]),
        ({"request": None}, ["$.fences[0].request"]),
        ({"protection": NAMED["protection"] | {"kind": "idempotency_key"}}, ["$.fences[0]"]),
        ({"fences": [FENCE | {"request": {"method": "PUT", "path": "/other"}}]}, ["$.fences[0].request"]),
        ({"fences": [FENCE | {"won": ["412"]}]}, ["$.fences[0].won"]),
        ({"fences": [FENCE | {"lost": ["200"]}]}, ["$.fences[0].lost"]),
    ],
)
def test_a_fence_stands_in_the_originals_way_or_is_none(fields, path):
    """Under the same name, where the provider refuses a second of it, and touching it again is not forbidden."""
    assert paths(**NAMED | fields) == path
