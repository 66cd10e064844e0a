"""Request templates: a closed vocabulary, and each value encoded for the place it stands in."""

from __future__ import annotations

import json
import uuid

import pytest

from counterfoil.domain.canonical import SecretRef, canonical
from counterfoil.domain.errors import PayloadRefused
from counterfoil.domain.template import (
    LookTemplate,
    Names,
    RequestTemplate,
    document_of,
    filled,
    problems,
    render,
    text_of,
    uses,
)

NAMES = Names(provider_key="op_1", reference="ref 1", external_id="ex/1", control="ctl", negative="neg")


def post(**fields):
    """A write to /x unless the test says otherwise."""
    return RequestTemplate(**({"method": "POST", "path": "/x"} | fields))


def test_the_approved_bytes_are_sent_as_they_are():
    """A json body is the payload itself, not a second encoding of it."""
    payload = b'{"a": 1.50,  "b":[]}'
    made = render(post(), payload, NAMES)
    assert (made.method, made.target, made.body) == ("POST", "/x", payload)
    assert made.headers == (("content-type", "application/json"),)


def test_a_contract_may_say_what_the_json_is():
    """A content type of the contract's own stands."""
    made = render(post(headers={"content-type": "application/vnd.api+json"}), b"{}", NAMES)
    assert made.headers == (("content-type", "application/vnd.api+json"),)


def test_what_is_sent_elsewhere_may_be_left_out():
    """Declared pointers are left out of the body, the last of a list first."""
    payload = canonical({"id": "a b", "l": list(range(12)), "n": {"x": 1, "y": 2}})
    template = post(path="/x/{payload/id}", without=("/l/2", "/l/10", "/id", "/n/x", "/l/0"))
    made = render(template, payload, NAMES)
    assert made.target == "/x/a%20b"
    assert made.body == b'{"l":[1,3,4,5,6,7,8,9,11],"n":{"y":2}}'


def test_the_whole_payload_cannot_be_left_out():
    """A body of nothing is said by `none`, not by leaving everything out."""
    with pytest.raises(PayloadRefused, match="left out"):
        render(post(without=("",)), b"{}", NAMES)


def test_a_dollar_key_is_sent_as_the_caller_wrote_it():
    """The canonical form doubles a leading "$"; the wire sees one."""
    assert render(post(), canonical({"$type": "post", "n": 1}), NAMES).body == b'{"$type":"post","n":1}'


@pytest.mark.parametrize(
    ("value", "pointer"), [({"a": [1], "b": b"x"}, "/b"), ({"a": [1.5, None, "x", {"s": SecretRef("k")}]}, "/a/3/s")]
)
def test_what_json_has_no_form_for_is_refused_with_its_pointer(value, pointer):
    """Bytes, dates, decimals and secret references never leave as some reader's guess."""
    with pytest.raises(PayloadRefused) as refused:
        render(post(), canonical(value), NAMES)
    assert refused.value.pointer == pointer
    assert refused.value.__context__ is None


def test_a_text_of_the_payload_is_the_body():
    """`payload/POINTER` sends that text and nothing around it."""
    made = render(post(body="payload/ics"), canonical({"ics": "BEGIN:é\r\n"}), NAMES)
    assert made.body == "BEGIN:é\r\n".encode()
    assert made.headers == ()


def test_no_body_reads_no_payload():
    """With `none` and no placeholder the payload is not even parsed."""
    assert render(post(body="none"), b"not json", NAMES).body == b""
    assert render(LookTemplate(path="/y"), b"not json", NAMES).target == "/y"


def test_bytes_that_are_no_canonical_form_are_refused():
    """A placeholder into a broken payload finds nothing to guess at."""
    with pytest.raises(PayloadRefused) as refused:
        render(post(path="/{payload/a}"), b"{", NAMES)
    assert refused.value.__context__ is None
    with pytest.raises(PayloadRefused) as refused:
        document_of(b"{")  # and nothing is read of it as if it were null
    assert refused.value.__context__ is None


@pytest.mark.parametrize("value", [None, True, 1.5, ["a"], {"a": 1}])
def test_only_text_and_whole_numbers_stand_in_requests(value):
    """A value with more than one form as text is refused."""
    with pytest.raises(PayloadRefused, match="text or a whole number"):
        text_of({"a": value}, "payload/a")


def test_a_missing_value_is_refused():
    """Nothing at the pointer is no empty text."""
    with pytest.raises(PayloadRefused):
        text_of({}, "payload/a")


def test_whole_numbers_and_whole_payloads_stand_too():
    """A number is its digits; a payload that is one text is `payload`."""
    assert text_of({"a": {"b/c": 7}}, "payload/a/b~1c") == "7"
    assert text_of("all", "payload") == "all"


def test_query_values_are_encoded_and_may_repeat():
    """Each value is percent-encoded whole; a name may have several."""
    template = LookTemplate(
        path="/l", query={"r": ("{reference}", "{control}", "{negative}"), "q": "a&b={external_id}"}
    )
    assert render(template, b"", NAMES).target == "/l?r=ref%201&r=ctl&r=neg&q=a%26b%3Dex%2F1"


def test_an_unknown_control_is_not_asked_for():
    """Without a known item the look goes without its positive control."""
    template = LookTemplate(path="/l", query={"r": ("{provider_key}", "{control}")})
    assert render(template, b"", Names(provider_key="k")).target == "/l?r=k"


def test_a_name_that_is_not_known_is_refused():
    """An empty name never becomes an empty search, which would find everything."""
    with pytest.raises(PayloadRefused, match="not known"):
        render(LookTemplate(path="/l", query={"id": "{external_id}"}), b"", Names())


@pytest.mark.parametrize("value", ["", "a/b", "..\\x", "a\nb", "a\x00b", "a\x7fb"])
def test_a_path_value_cannot_name_another_resource(value):
    """Servers decode %2F before they route, so slashes are refused, not encoded."""
    with pytest.raises(PayloadRefused):
        render(post(path="/c/{payload/u}.ics"), canonical({"u": value}), NAMES)


@pytest.mark.parametrize("value", [".", ".."])
def test_a_path_value_cannot_climb(value):
    """A segment of dots is removed by whoever normalises the path, so it is refused."""
    with pytest.raises(PayloadRefused, match="dot segment"):
        render(post(path="/c/{payload/u}"), canonical({"u": value}), NAMES)


@pytest.mark.parametrize("value", ["/a b/c", "a b/c", "/a b/c/"])
def test_a_path_may_hold_several_segments_where_it_says_so(value):
    """`{/payload/POINTER}` is a slash before each segment of the value, each encoded by itself."""
    template = LookTemplate(path="{/payload/c}/{reference}.ics")
    assert problems(template) == ()
    assert render(template, canonical({"c": value}), NAMES).target == "/a%20b/c/ref%201.ics"


@pytest.mark.parametrize("value", ["", "/", "a//b", "a/../b", "a/./b", "..", "a\\b", "a/b\n"])
def test_several_segments_cannot_climb_either(value):
    """Empty segments, dots and control characters are refused in each of them."""
    with pytest.raises(PayloadRefused):
        render(LookTemplate(path="{/payload/c}/x"), canonical({"c": value}), NAMES)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/b{/payload/c}", "/x"),
        ("/b{/payload/c}", "//evil"),
        ("/b{/payload/c}", "x/"),
        ("/b{/payload/c}/y", "/x"),
        ("/b{/payload/c}/y", "x//"),
        ("/{payload/c}{/payload/c}", "/x"),
        ("{/payload/c}", "//evil"),
        ("{/payload/c}", "x/"),
        ("{/payload/c}.ics", "/x/"),
    ],
)
def test_no_slash_of_a_value_is_dropped(path, value):
    """A key `/x` is not `x`: a slash that the path has no place for is refused, and where it stands is named."""
    with pytest.raises(PayloadRefused) as refused:
        render(post(path=path), canonical({"c": value}), NAMES)
    assert refused.value.pointer == "/c"


def test_several_segments_stand_in_paths_only():
    """In a query or a header the word is no placeholder."""
    assert problems(LookTemplate(path="/l", query={"q": "{/payload/c}"})) != ()
    assert problems(LookTemplate(path="{/nothing}")) != ()


def test_a_path_value_is_encoded():
    """Everything reserved is percent-encoded: `?` and `#` end no path."""
    assert render(post(path="/c/{payload/u}"), canonical({"u": "a?b#c é%"}), NAMES).target == "/c/a%3Fb%23c%20%C3%A9%25"


@pytest.mark.parametrize("value", ["a\r\nx: y", "a\nb", "a\x00", "é"])
def test_a_header_value_cannot_make_another_header(value):
    """CR, LF, control characters and what is no ASCII are refused in headers."""
    with pytest.raises(PayloadRefused, match="ASCII"):
        render(post(headers={"x-ref": "{payload/u}"}), canonical({"u": value}), NAMES)


def test_a_header_is_filled_in():
    """A header holds its text and its values."""
    made = render(LookTemplate(path="", headers={"x-ref": "k={provider_key}"}), b"", NAMES)
    assert (made.target, made.headers) == ("", (("x-ref", "k=op_1"),))


def test_a_value_is_never_read_as_a_template():
    """A payload text with braces is text."""
    template = LookTemplate(path="/l", query={"q": "{payload/a}"})
    assert render(template, canonical({"a": "{provider_key}"}), NAMES).target == "/l?q=%7Bprovider_key%7D"


@pytest.mark.parametrize("text", ["{key}", "{payloads}", "{payload.a}", "{}", "{", "}", "{{reference}}", "a}b"])
def test_the_vocabulary_is_closed(text):
    """Any other brace is named as a problem."""
    assert problems(LookTemplate(path="/l", query={"q": text})) != ()


def test_whole_texts_are_filled_in_as_they_are():
    """No place they stand in has a syntax, so nothing of a value is encoded; what is not there is refused."""
    payload = canonical({"to": "a b/c%", "n": 3})
    assert filled(("{payload/to}", "-n{payload/n}", "{provider_key}", "x"), payload, NAMES) == (
        "a b/c%", "-n3", "op_1", "x",
    )  # fmt: skip
    with pytest.raises(PayloadRefused):
        filled(("{payload/none}",), payload, NAMES)


def test_the_vocabulary_passes():
    """All six words are known, wherever they stand."""
    template = post(
        path="/{provider_key}", query={"a": ("{external_id}", "{control}")},
        headers={"x": "{reference}{negative}{payload/a}{payload}"},
    )  # fmt: skip
    assert problems(template) == ()
    assert uses(template, "control")
    assert not uses(post(), "control")


def test_a_form_holds_the_payloads_fields():
    """Nested fields stand in brackets and a list's are numbered, in one order; what is sent elsewhere is left out."""
    payload = canonical({"b": {"z": True, "a": "x y"}, "a": 7, "l": [{"k": "v"}, "w"], "key": "k"})
    made = render(post(body="form", without=("/key",)), payload, NAMES)
    assert made.body == b"a=7&b%5Ba%5D=x%20y&b%5Bz%5D=true&l%5B0%5D%5Bk%5D=v&l%5B1%5D=w"
    assert dict(made.headers) == {"content-type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    ("payload", "pointer"), [({"a": None}, "/a"), ({"a": [1.5]}, "/a/0"), (["x"], ""), ("x", ""), (7, "")]
)
def test_a_form_holds_text_numbers_and_booleans_only(payload, pointer):
    """A value with more than one form as text is refused with its pointer, and so is a payload without names."""
    with pytest.raises(PayloadRefused) as refused:
        render(post(body="form"), canonical(payload), NAMES)
    assert refused.value.pointer == pointer


@pytest.mark.parametrize("body", ["json", "form"])
def test_a_text_of_the_contracts_stands_beside_the_payloads_fields(body):
    """A key that is carried in the body is put where the payload leaves its place free."""
    made = render(post(body=body, put={"/meta/key": "{provider_key}"}), canonical({"a": 1, "meta": {}}), NAMES)
    assert made.body in (b'{"a":1,"meta":{"key":"op_1"}}', b"a=1&meta%5Bkey%5D=op_1")


@pytest.mark.parametrize("payload", [{"key": "mine"}, {"key": None}])
def test_nothing_of_the_payload_is_written_over(payload):
    """What a caller says at the contract's own place is refused, not replaced."""
    with pytest.raises(PayloadRefused) as refused:
        render(post(put={"/key": "{provider_key}"}), canonical(payload), NAMES)
    assert refused.value.pointer == "/key"


def test_a_text_needs_a_place_to_stand():
    """Where its parent is missing nothing is made up."""
    with pytest.raises(PayloadRefused):
        render(post(put={"/meta/key": "{provider_key}"}), canonical({}), NAMES)


@pytest.mark.parametrize("last", ["0", "7", "f"])
def test_the_ledgers_key_has_the_form_of_a_uuid(last):
    """Of version 4 and the usual variant, the same for the same key, and another for another row."""
    key = "op_0123456789ab" + last * 20
    made = uuid.UUID(Names(provider_key=key).provider_uuid)
    assert (made.version, made.variant) == (4, uuid.RFC_4122)
    assert str(made)[:13] == "01234567-89ab"
    assert Names(provider_key=key).provider_uuid == str(made)
    assert render(post(headers={"k": "{provider_uuid}"}), b"{}", Names(provider_key=key)).headers[0] == ("k", str(made))


def test_another_key_has_no_such_form():
    """What is none of the ledger's is sent by nobody."""
    with pytest.raises(PayloadRefused, match="not known"):
        render(post(headers={"k": "{provider_uuid}"}), b"{}", NAMES)


def test_a_look_by_post_holds_its_placeholders_as_whole_texts():
    """A query of GraphQL has braces of its own: a text is a placeholder as a whole, or sent as it is."""
    template = LookTemplate(
        path="/graphql", method="POST", read_only="docs",
        body={"query": "query($id: ID!) { order(id: $id) { total } }", "n": 7, "variables": {"id": "{reference}"},
              "ids": ["{reference}", "{payload/a}", "{control}", ["x"]], "after": "{cursor}"},
    )  # fmt: skip
    assert problems(template) == ()
    made = render(template, canonical({"a": "b"}), Names(reference="r"))
    assert (made.method, made.target, dict(made.headers)) == ("POST", "/graphql", {"content-type": "application/json"})
    assert json.loads(made.body) == {
        "query": "query($id: ID!) { order(id: $id) { total } }", "n": 7, "variables": {"id": "r"},
        "ids": ["r", "b", ["x"]],
    }  # fmt: skip
    full = render(template, canonical({"a": "b"}), Names(reference="r", control="c", cursor="p2"))
    assert (json.loads(full.body)["ids"], json.loads(full.body)["after"]) == (["r", "b", "c", ["x"]], "p2")


def test_a_look_by_post_says_which_json_it_is():
    """And a placeholder inside it is of the vocabulary."""
    named = LookTemplate(path="/", method="POST", body={}, headers={"content-type": "application/x-amz-json-1.0"})
    assert dict(render(named, b"", Names()).headers) == {"content-type": "application/x-amz-json-1.0"}
    assert render(named, b"", Names()).body == b"{}"
    assert problems(LookTemplate(path="/", method="POST", body={"a": ["{nobody}"]})) != ()
    with pytest.raises(PayloadRefused, match="reference"):
        render(LookTemplate(path="/", method="POST", body={"a": "{reference}"}), b"", Names())


def test_the_first_page_is_asked_for_without_a_cursor():
    """Nothing is known yet where the next one begins."""
    template = LookTemplate(path="/l", query={"limit": "9", "cursor": "{cursor}"})
    assert render(template, b"", Names()).target == "/l?limit=9"
    assert render(template, b"", Names(cursor="a/b")).target == "/l?limit=9&cursor=a%2Fb"
