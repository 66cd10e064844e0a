"""The canonical form: one spelling per value, and a refusal with its place for what has none."""

from __future__ import annotations

import importlib.util
import json
import math
import pickle
import traceback
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Context, Decimal, localcontext
from enum import Enum, IntEnum, StrEnum
from itertools import combinations
from pathlib import Path
from typing import ClassVar
from uuid import UUID

import msgspec
import pytest

from counterfoil.domain import canonical as module
from counterfoil.domain.canonical import (
    DEPTH_MAX,
    INT_BITS_MAX,
    PAYLOAD_BYTES_MAX,
    NotCanonical,
    SecretRef,
    canonical,
    fingerprint,
    loads,
    parse,
    reference,
    select,
)
from counterfoil.domain.pointer import BadPointer

VECTORS = json.loads((Path(__file__).parent / "vectors" / "canonical.json").read_text())
UID = UUID("12345678-1234-5678-1234-567812345678")
NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)


def refusal_of(value, **options):
    """Return why the value has no canonical form."""
    with pytest.raises(NotCanonical) as refusal:
        canonical(value, **options)
    return refusal.value


def vectors(kind):
    """Return the mark that runs a test once per vector of this kind."""
    return pytest.mark.parametrize("vector", [pytest.param(vector, id=vector["name"]) for vector in VECTORS[kind]])


class Word(StrEnum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


class Colour(Enum):
    RED = "red"
    DEEP = Number.ONE
    ODD = object()


class Text(str):
    """A subclass that lies about itself."""

    __slots__ = ()

    def __str__(self):
        return "lie"

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)


class Count(int):
    def __repr__(self):
        return "lie"

    __str__ = __repr__


class Ratio(float):
    def __repr__(self):
        return "lie"


class Money(Decimal):
    def __str__(self):
        return "lie"


Pair = namedtuple("Pair", "left right")  # noqa: PYI024 - the untyped kind is the one to try


@vectors("read")
def test_vectors_read(vector):
    """Each JSON text of the vector file has the form and the print the file says, by both paths."""
    value = loads(vector["json"])
    assert canonical(value) == reference(value) == vector["canonical"].encode()
    assert fingerprint(canonical(value)) == vector["fingerprint"]
    assert canonical(parse(canonical(value))) == canonical(value)


@vectors("typed")
def test_vectors_typed(vector):
    """Each tagged form of the vector file reads as a value that is written the same again."""
    form = vector["canonical"].encode()
    assert canonical(parse(form)) == form
    assert fingerprint(form) == vector["fingerprint"]


@vectors("keyed")
def test_r77_vectors_keyed(vector):
    """With a deployment key the print is an HMAC, says so, and differs from the bare digest."""
    form = vector["canonical"].encode()
    assert fingerprint(form, key=bytes.fromhex(vector["key"])) == vector["fingerprint"]
    assert fingerprint(form)[4:] not in vector["fingerprint"]


@vectors("refused")
def test_vectors_refused(vector):
    """Each text that the vector file refuses is refused at the pointer it says."""
    with pytest.raises(NotCanonical) as refusal:
        loads(vector["json"])
    assert refusal.value.pointer == vector["pointer"]


def test_r77_an_empty_key_is_no_key():
    """A key of no bytes is refused: it is a value, not a missing one, and would protect nothing."""
    with pytest.raises(ValueError, match="empty"):
        fingerprint(b"1", key=b"")


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (Decimal("1.50"), '{"$decimal":"1.50"}'),
        (Money("1.50"), '{"$decimal":"1.50"}'),
        (Decimal("-0"), '{"$decimal":"-0"}'),
        (b"hi", '{"$bytes":"aGk="}'),
        (UID, '{"$uuid":"12345678-1234-5678-1234-567812345678"}'),
        (NOON, '{"$datetime":"2024-02-29T12:00:00+00:00"}'),
        (NOON.astimezone(timezone(timedelta(hours=-9, minutes=-30))), '{"$datetime":"2024-02-29T12:00:00+00:00"}'),
        (NOON.replace(microsecond=1), '{"$datetime":"2024-02-29T12:00:00.000001+00:00"}'),
        (date(1, 2, 3), '{"$date":"0001-02-03"}'),
        (SecretRef("card"), '{"$secret":"card"}'),
        ((1, "a"), '[1,"a"]'),
        (Pair(1, 2), "[1,2]"),
        (OrderedDict(b=1, a=2), '{"a":2,"b":1}'),
        (defaultdict(int, a=1), '{"a":1}'),
        ({Word.RED: Word.RED}, '{"red":"red"}'),
        ({Text("a"): Text("b")}, '{"a":"b"}'),
        ([Number.ONE, Colour.RED, Colour.DEEP], '[1,"red",1]'),
        ([Count(7), Ratio(0.5), True], "[7,0.5,true]"),
    ],
)
def test_what_json_lacks_is_tagged_and_a_subclass_is_its_plain_value(value, form):
    """Each type has the one form the module names, and an overridden method of a subclass has no say in it."""
    assert canonical(value).decode() == form


def test_a_decimal_context_does_not_change_a_print():
    """The exponent is spelled alike whatever context the caller works in."""
    with localcontext(Context(prec=2, capitals=0)):
        assert canonical(Decimal("1.234E+20")) == b'{"$decimal":"1.234E+20"}'


def test_r26_the_order_of_keys_does_not_matter_but_text_stays_text():
    """Equal objects have one print however deep their keys are shuffled; JSON inside a string is opaque."""
    assert canonical({"a": 1, "b": {"c": 2, "d": 3}}) == canonical({"b": {"d": 3, "c": 2}, "a": 1})
    assert canonical({"body": '{"a":1,"b":2}'}) != canonical({"body": '{"b":2,"a":1}'})


@pytest.mark.parametrize("number", [2**53, 2**60, 2**63 - 1, -(2**63), 2**64, 2**68, 2**INT_BITS_MAX - 2])
def test_r27_neighbouring_integers_differ(number):
    """An integer and the next one never share a form, through no limit of 53, 63 or 64 bits."""
    forms = {canonical({"amount": number + step}) for step in (-1, 0, 1)}
    assert len(forms) == 3
    assert parse(canonical(number)) == number


@pytest.mark.parametrize("number", [2**INT_BITS_MAX, -(2**INT_BITS_MAX), 2 ** (2 * INT_BITS_MAX)])
def test_an_integer_beyond_all_bounds_is_refused_where_it_stands(number):
    """Whatever the short way through a payload could write, its bound is the same within it."""
    assert refusal_of({"lines": [{"amount": number}]}).pointer == "/lines/0/amount"
    assert refusal_of([number]).pointer == "/0"


def test_r28_an_action_may_refuse_floats_where_they_stand():
    """Where money stands a float is refused by its place, a subclass too; integers and decimals pass."""
    flaw = refusal_of({"lines": [{"price": 9.9}]}, floats="refuse")
    assert (flaw.pointer, "minor units" in flaw.problem) == ("/lines/0/price", True)
    assert refusal_of([Ratio(1.0)], floats="refuse").pointer == "/0"
    assert canonical([990, Decimal("9.90")], floats="refuse") == b'[990,{"$decimal":"9.90"}]'


PAIRS_OF_R29 = [
    *[(1, True), (0, False), (0, None), ("", None), ("1", 1), (1, 1.0), (0.0, -0.0), (False, None), ([], {}), ("", [])],
    *[(Decimal(1), "1"), (Decimal(1), 1), (Decimal("1.0"), Decimal(1)), (UID, str(UID)), (b"a", "a"), (b"", "")],
    *[(NOON, NOON.isoformat()), (NOON, NOON.date()), (date(2024, 2, 29), "2024-02-29"), (SecretRef("a"), "a")],
    *[(Decimal("1.5"), {"$decimal": "1.5"}), ({"$a": 1}, {"$$a": 1}), (SecretRef("a"), {"$secret": "a"})],
    *[({"a": None}, {}), ([None], []), ([1, 2], [2, 1]), ([[1], 2], [[1, 2]]), ({"a": 1}, [["a", 1]])],
]


@pytest.mark.parametrize(("one", "other"), PAIRS_OF_R29)
def test_r29_values_of_another_type_never_share_a_print(one, other):
    """Whatever looks alike but is not the same has another form, on its own and inside containers."""
    assert canonical(one) != canonical(other)
    assert canonical({"v": [one]}) != canonical({"v": [other]})


def test_r29_no_two_of_all_these_values_share_a_print():
    """Every value of the pairs, alone, listed, or under a plain, tag-like or escaped key, has its own form."""
    alone = [value for pair in PAIRS_OF_R29 for value in pair]
    wrapped = [[value, [value], {"k": value}, {"$decimal": value}, {"$$decimal": value}] for value in alone]
    values = {repr(value): value for group in wrapped for value in group}
    forms = {name: canonical(value) for name, value in values.items()}
    assert [(a, b) for a, b in combinations(forms, 2) if forms[a] == forms[b]] == []


@dataclass
class Order:
    id: UUID
    due: date | None = None
    tags: list[str] = field(default_factory=list)
    kind: ClassVar[str] = "order"


class Invoice(msgspec.Struct, rename="camel", tag="invoice", tag_field="kind"):
    total_minor: int
    note: str | msgspec.UnsetType | None = msgspec.UNSET
    lines: tuple[Order, ...] = ()


class Plain(msgspec.Struct):
    a: int = 1


class StandIn:
    """What the canonical form knows of a pydantic model: a method of its class."""

    def __init__(self, dumped):
        self.dumped = dumped

    def model_dump(self, *, mode, by_alias, warnings):
        assert (mode, by_alias, warnings) == ("python", True, False)
        return self.dumped


def test_r30_a_dataclass_or_struct_is_the_dict_of_its_fields():
    """Fields stand under the names they are sent by, defaults and the tag included; unset is missing, null is null."""
    order = {"id": UID, "due": None, "tags": []}
    assert canonical(Order(UID)) == canonical(order)
    assert canonical(Invoice(total_minor=5)) == canonical({"kind": "invoice", "totalMinor": 5, "lines": []})
    assert canonical(Invoice(total_minor=5, note=None, lines=(Order(UID),))) == canonical(
        {"kind": "invoice", "totalMinor": 5, "note": None, "lines": [order]}
    )
    assert canonical([Plain()]) == b'[{"a":1}]'


def test_r30_a_model_is_what_it_dumps():
    """A model and the equal plain dict have one print, alone and nested; a model that dumps itself is refused."""
    plain = {"id": UID, "due": NOON.date(), "colour": Colour.RED}
    assert canonical(StandIn(plain)) == canonical({"id": UID, "due": NOON.date(), "colour": "red"})
    assert canonical({"body": [StandIn(plain)]}) == canonical({"body": [plain]})
    assert refusal_of([StandIn(StandIn({}))]).pointer == "/0"


if importlib.util.find_spec("pydantic"):  # never a dependency of the product

    def test_r30_a_real_model_is_what_it_dumps():
        """A pydantic model with alias, computed field and extras prints as the dict that is sent; nothing warns."""
        pydantic = importlib.import_module("pydantic")

        class Task(pydantic.BaseModel, extra="allow"):
            id: UUID
            due: date | None = None
            at: datetime = NOON
            colour: Colour = Colour.RED
            list_name: str = pydantic.Field(default="inbox", serialization_alias="listName")

            @pydantic.computed_field
            @property
            def year(self) -> int:
                return self.at.year

        dumped = {"id": UID, "due": None, "at": NOON, "colour": "red", "listName": "inbox", "year": 2024, "extra": b"x"}
        assert canonical(Task(id=UID, extra=b"x")) == canonical(dumped)
        assert canonical([Task.model_construct(id="not an id")]) == canonical(
            [{k: v for k, v in dumped.items() if k != "extra"} | {"id": "not an id"}]
        )

        class Login(pydantic.BaseModel):
            password: pydantic.SecretStr

        flaw = refusal_of({"login": Login(password="hunter2")})
        assert (flaw.pointer, "hunter2" in str(flaw), "**" in str(flaw)) == ("/login/password", False, False)


class Secretive(str):
    __slots__ = ()

    def get_secret_value(self):
        raise AssertionError("nobody may ask")


def test_r30_a_secret_in_the_clear_is_refused_by_its_place():
    """A secret wrapper is refused with the advice to declare it; its value is never asked for."""
    flaw = refusal_of({"headers": [Secretive("hunter2")]})
    assert (flaw.pointer, "declared secret" in flaw.problem) == ("/headers/0", True)
    assert "hunter2" not in repr(flaw) + str(flaw)


def test_r31_unset_and_null_have_different_prints():
    """What is not sent and what is sent as null are two intents."""
    assert canonical({"name": "x"}) != canonical({"name": "x", "due": None})


@pytest.mark.parametrize(
    "number", [math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity")]
)
def test_r32_numbers_that_are_not_finite_are_refused(number):
    """NaN and the infinities, binary or decimal, have no form."""
    assert refusal_of({"x": [number]}).pointer == "/x/0"


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"a": ["x\ud800"]}, "/a/0"),
        ({"a": {"\udfff": 1}}, "/a/\\udfff"),
        ([1.5, "\ud800"], "/1"),
        ([SecretRef("\ud800")], "/0"),
        ("\ud800", ""),
    ],
)
def test_r32_a_lone_surrogate_is_refused_and_never_replaced(value, pointer):
    """Half a character is refused by its place, which can itself be printed."""
    flaw = refusal_of(value)
    assert flaw.pointer == pointer
    str(flaw).encode("utf-8")


def test_r32_nul_is_a_character():
    """U+0000 is kept, and told apart from nothing."""
    assert parse(canonical("a\x00")) == "a\x00"
    assert canonical("a\x00") != canonical("a")


def test_r33_keys_are_sorted_by_code_point():
    """U+E000 stands before U+1F600, which UTF-16 units would put first, by both paths."""
    value = {"\U0001f600": 1, "\ue000": 2, "a\u2028": 3}
    assert canonical(value) == reference(value) == '{"a\u2028":3,"\ue000":2,"\U0001f600":1}'.encode()


@pytest.mark.parametrize("value", [{1, 2}, frozenset("a")])
def test_r35_sets_are_refused_with_advice(value):
    """A set has no order that two processes share, so none is invented."""
    flaw = refusal_of({"tags": value})
    assert (flaw.pointer, "sorted list" in flaw.problem) == ("/tags", True)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (object(), "object"),
        (Colour.ODD, "object"),
        (time(12), "time of day"),
        (timedelta(1), "duration"),
        (bytearray(b"a"), "bytes"),
        (1j, "complex"),
        (Order, "type"),
        (msgspec.UNSET, "Unset"),
        (datetime(2024, 2, 29), "naive"),  # noqa: DTZ001 - that is the flaw
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "years"),
        ({1: "a"}, "int"),
        ({True: "a"}, "bool"),
        ({None: "a"}, "NoneType"),
        ({b"a": "a"}, "bytes"),
        ({Text("a"): 1, "a": 2}, "same text"),
        pytest.param(2**INT_BITS_MAX, "bits", id="2048 bits"),
        pytest.param(-(10**5000), "bits", id="5000 digits"),
    ],
)
def test_what_has_no_form_is_refused_by_name_and_place(value, word):
    """An unknown type, a naive moment, a key that is not text: the place and the reason are said, never the value."""
    flaw = refusal_of({"a/b": [0, value]})
    assert flaw.pointer.startswith("/a~1b/1")
    assert word in flaw.problem


class Undecided(tzinfo):
    def utcoffset(self, moment):
        return None


class Fine(datetime):
    nanosecond = 1


@pytest.mark.parametrize("moment", [NOON.replace(tzinfo=Undecided()), Fine(2024, 2, 29, tzinfo=UTC)])
def test_a_moment_that_a_spelling_would_blur_is_refused(moment):
    """A zone without an offset is none, and nanoseconds are not cut off."""
    assert refusal_of([moment]).pointer == "/0"


@pytest.mark.parametrize("leaf", [1, 1.5])
def test_depth_has_a_limit_by_both_paths(leaf):
    """64 containers have a form; one more is refused where it stands; a cycle ends there too."""
    value = leaf
    for _ in range(DEPTH_MAX):
        value = {"a": value}
    assert parse(canonical(value)) == value
    assert refusal_of([value]).pointer == "/0" + "/a" * (DEPTH_MAX - 1)
    assert "deeper than 64" in refusal_of({"a": value}).problem
    cycle = [leaf]
    cycle.append(cycle)
    assert refusal_of(cycle).pointer == "/1" * DEPTH_MAX


@pytest.mark.parametrize("wrap", [lambda text: text, lambda text: (text,)], ids=["quick", "reference"])
def test_size_has_a_limit_by_both_paths(wrap):
    """A form of exactly the limit is made; one byte more is refused as a whole, in UTF-8 and after escaping."""
    room = PAYLOAD_BYTES_MAX - 4
    assert len(canonical([*wrap("a" * room)] if wrap("") == ("",) else ["a" * room])) == PAYLOAD_BYTES_MAX
    for text in ("a" * (room + 1), "é" * (room // 2 + 1), "\n" * (room // 2 + 1)):
        flaw = refusal_of([wrap(text)])
        assert (flaw.pointer, "longer than 1048576 bytes" in flaw.problem) == ("", True)


@pytest.mark.slow
@pytest.mark.parametrize("leaf", ["x" * 1000, 1.5, {}])
def test_a_value_that_holds_itself_many_times_over_is_refused_at_once(leaf):
    """Sixty doublings of a small value end at the size limit and not at the end of memory."""
    value = leaf
    for _ in range(DEPTH_MAX - 4):
        value = [value, value]
    assert refusal_of(value).pointer == ""


@pytest.mark.parametrize("item", ["a" * PAYLOAD_BYTES_MAX, {"a" * PAYLOAD_BYTES_MAX: 1}], ids=["text", "key"])
def test_one_long_text_a_thousand_times_over_is_never_written_out(item, monkeypatch):
    """What is too large as a whole is refused before it takes a gigabyte to find out."""
    monkeypatch.setattr(module, "_ENCODER", None)
    assert "longer than" in refusal_of([item] * 1000).problem


def test_a_long_pointer_is_shown_short():
    """The pointer is kept whole; the message, which goes to a log, is not as long as a key can be."""
    flaw = refusal_of({"k" * 5000: {1}})
    assert (len(flaw.pointer), len(str(flaw)) < 400) == (5001, True)
    assert "…" in str(flaw)
    assert "whole value" in str(refusal_of({1}))


def test_a_refusal_survives_the_way_between_processes():
    """Pickled and unpickled it still says where and why."""
    flaw = pickle.loads(pickle.dumps(refusal_of({"a": {1}})))
    assert (flaw.pointer, "set" in flaw.problem) == ("/a", True)


def test_a_refusal_carries_no_value():
    """Neither the error nor what is chained to it holds the value: a codec error would bring the whole text along."""
    flaw = refusal_of({"pin": "hunter2\ud800"})
    assert (flaw.__cause__, flaw.__context__) == (None, None)
    assert "hunter2" not in "".join(traceback.format_exception(flaw))


@pytest.mark.parametrize(
    "form",
    [
        *['{"$decimal":"NaN"}', '{"$decimal":"1e2"}', '{"$decimal":" 1"}', '{"$decimal":"x"}', '{"$decimal":1}'],
        *['{"$bytes":"aGk"}', '{"$bytes":"a Gk="}', '{"$bytes":"é"}', '{"$uuid":"12345678123456781234567812345678"}'],
        *['{"$datetime":"2024-02-29"}', '{"$datetime":"2024-02-29T12:00:00Z"}', '{"$datetime":"2024-02-29T12:00:00"}'],
        *['{"$date":"20240229"}', '{"$date":"2023-02-29"}', '{"$secret":null}', '{"$set":"a"}', '{"$":"a"}'],
        '{"$decimal":"1","a":1}',
    ],
)
def test_parse_refuses_a_tag_that_was_not_written_here(form):
    """A tag has the one spelling that `canonical` gives it; anything else is refused by its place."""
    with pytest.raises(NotCanonical) as refusal:
        parse(f'{{"a":[0,{form}]}}'.encode())
    assert refusal.value.pointer == "/a/1"


@pytest.mark.parametrize("form", [b"", b"{", b"NaN", b'"\xff"', b'"\\ud800"', b"[" * 100_000], ids=range(6))
def test_parse_refuses_what_is_not_json(form):
    """A form that is not JSON text was not written here."""
    with pytest.raises(NotCanonical) as refusal:
        parse(form)
    assert (refusal.value.pointer, refusal.value.__context__) == ("", None)


def test_parse_gives_back_every_type():
    """What is read has the type that was written, and a key of the caller's own is not taken for a tag."""
    value = {
        "$decimal": "1.5",
        "$$": {"$secret": "x"},
        "list": [None, True, 2**70, -0.0, "$", Decimal("1.50"), b"\x00", UID, NOON, NOON.date(), SecretRef("card")],
    }
    assert repr(parse(canonical(value))) == repr({key: value[key] for key in sorted(value)})


def test_r34_only_material_fields_are_compared():
    """Named business fields make the print: a fresh timestamp does not change it; a missing field is not a null one."""
    material = ("/order/id", "/amount", "/due")
    first = {"order": {"id": 7}, "amount": 5, "createdAt": 1}
    again = {"order": {"id": 7, "nonce": "x"}, "amount": 5, "createdAt": 2}
    assert select(first, material=material) == {"/order/id": 7, "/amount": 5} == select(again, material=material)
    assert canonical(select(first | {"due": None}, material=material)) != canonical(select(first, material=material))


def test_r34_immaterial_fields_are_left_out():
    """What is declared volatile is left out, several items of one list too, in whatever order they are declared."""
    value = {"createdAt": 1, "id": 7, "tries": [{"at": 1}, 2, *range(3, 12)]}
    pointers = ("/tries/0/at", "/tries/10", "/createdAt", "/tries/2", "/tries/9", "/nowhere")
    for declared in (pointers, pointers[::-1]):
        assert select(value, immaterial=declared) == {"id": 7, "tries": [{}, 2, *range(4, 10)]}
    assert select(value) is value


@pytest.mark.parametrize("wrap", [lambda order: order, lambda order: {"order": order}], ids=["alone", "in a call"])
def test_r34_a_pointer_leads_into_a_model(wrap):
    """A field of a model, Struct or dataclass is found under the name it is sent by: two orders are two intents."""
    where = "/order" if wrap(1) == {"order": 1} else ""
    for make, name in [
        (lambda number: Order(UUID(int=number)), "/id"),
        (lambda number: Invoice(total_minor=number), "/totalMinor"),
        (lambda number: StandIn({"id": number}), "/id"),
        (lambda number: {"id": number, "pair": (1.5, Decimal(2))}, "/id"),
    ]:
        one, two = (select(wrap(make(number)), material=(where + name,)) for number in (1, 2))
        assert canonical(one) != canonical(two)
        one, two = (select(wrap(make(number)), immaterial=(where + name,)) for number in (1, 2))
        assert canonical(one) == canonical(two)


def test_material_and_immaterial_exclude_each_other():
    """An action that declares both is refused, and so is a pointer that is none or leaves nothing."""
    with pytest.raises(ValueError, match="not both"):
        select({}, material=("/a",), immaterial=("/b",))
    with pytest.raises(BadPointer):
        select({}, material=("a",))
    with pytest.raises(BadPointer):
        select({}, immaterial=("",))
