"""Laws of the canonical form, over generated values."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import counterfoil
from counterfoil.domain import canonical as module
from counterfoil.domain import pointer
from counterfoil.domain.canonical import SecretRef, canonical, fingerprint, loads, parse, reference

TEXT = st.text(max_size=8) | st.sampled_from(["", "$", "$$", "$decimal", "$$decimal", "\ue000", "\U0001f600", "\u2028"])
INTEGERS = st.integers(-3, 3) | st.integers(-(2**63) - 2, 2**63 + 2) | st.integers(-(2**2048) + 1, 2**2048 - 1)
ZONES = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
PLAIN = st.none() | st.booleans() | INTEGERS | TEXT
SCALARS = (
    PLAIN
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.binary(max_size=8)
    | st.uuids()
    | st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=ZONES)  # noqa: DTZ001 - the zone is drawn
    | st.dates()
    | TEXT.map(SecretRef)
    | st.sampled_from([1, 1.0, True, "1", Decimal(1), Decimal("1.0"), b"1", 0, 0.0, -0.0, False, None, ""])
)


def nested(scalars):
    """Return values of lists and dicts around these scalars."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
        max_leaves=12,
    )


JSON = nested(PLAIN)
VALUES = nested(SCALARS)


def meaning(value):
    """Return what a value means, by rules written independently of the form: equal meanings, equal values."""
    match value:
        case dict():
            return ("dict", frozenset((key, meaning(item)) for key, item in value.items()))
        case list() | tuple():
            return ("list", tuple(map(meaning, value)))
        case float():
            return ("float", struct.pack(">d", value))
        case Decimal():
            return ("decimal", value.as_tuple())
        case datetime():
            return ("datetime", value.astimezone(UTC).timetuple()[:6], value.microsecond)
        case date() | UUID() | SecretRef() | bytes() | str() | bool() | int() | None:
            return (type(value).__name__, value)
    raise AssertionError(type(value))


def shuffled(value, chance):
    """Return an equal value whose keys were put in another order and whose lists are tuples."""
    if isinstance(value, dict):
        members = [(key, shuffled(item, chance)) for key, item in value.items()]
        chance.shuffle(members)
        return dict(members)
    if isinstance(value, list):
        return tuple(shuffled(item, chance) for item in value)
    return value


@given(JSON)
@example({"$a": 1})
@example({"a": 1, "$b": "$"})
@example(['"$', "$", {'a"$': ',"$'}])
@example({"\U0001f600": "\u2028\x7f", "\ue000": "\x00\x1f"})
def test_the_quick_path_writes_what_the_definition_says(value):
    """For every value that the quick path takes, its bytes are those of the reference."""
    quick = module._quick(value)
    assert quick is None or quick == reference(value)
    assert canonical(value) == reference(value)


@given(VALUES)
def test_the_quick_path_takes_only_what_it_may(value):
    """Whatever is no plain JSON is left to the reference, and the two never disagree."""
    assert module._quick(value) in {None, reference(value)}


@given(st.dictionaries(TEXT.filter(lambda key: not key.startswith("$")), st.none() | st.booleans() | TEXT, min_size=1))
def test_the_quick_path_takes_the_ordinary_payload(value):
    """An object of text, numbers and booleans without a dollar in front of a key does not pay for the reference."""
    assert module._quick(value) is not None


@given(VALUES)
def test_a_form_reads_back_as_its_value(value):
    """The form parses to a value of the same meaning, type by type, whose form it is again."""
    form = canonical(value)
    assert meaning(parse(form)) == meaning(value)
    assert canonical(parse(form)) == form


@given(VALUES, VALUES)
@example({"$decimal": "1"}, Decimal(1))
@example({"$$decimal": "1"}, {"$decimal": "1"})
def test_distinct_values_never_collide(one, other):
    """Two values share a form exactly when they mean the same."""
    assert (canonical(one) == canonical(other)) == (meaning(one) == meaning(other))


@given(st.lists(SCALARS, min_size=2, max_size=30))
def test_distinct_scalars_never_collide(scalars):
    """Among many scalars there are as many forms as meanings."""
    assert len({canonical(scalar) for scalar in scalars}) == len({meaning(scalar) for scalar in scalars})


@given(VALUES, st.randoms(use_true_random=False))
def test_r26_the_order_of_keys_is_irrelevant(value, chance):
    """However the keys are shuffled, and lists turned into tuples, the form stays."""
    assert canonical(shuffled(value, chance)) == canonical(value)


@given(nested(PLAIN | st.floats(allow_nan=False, allow_infinity=False)))
def test_the_form_of_json_is_json(value):
    """Read as JSON text from outside, a form without tags is the value it was made from."""
    form = canonical(value)
    if b'"$' not in form:
        assert meaning(loads(form)) == meaning(value)
    assert canonical(loads(form.decode())) is not None


@given(VALUES)
def test_a_form_has_one_spelling_for_its_bytes(value):
    """A form is UTF-8 without a byte that JSON would allow to leave out, outside strings."""
    form = canonical(value).decode("utf-8")
    outside = "".join(form.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    assert not any(character.isspace() for character in outside)


@given(st.lists(TEXT, max_size=6))
def test_a_pointer_reads_back_as_its_tokens(tokens):
    """Whatever the keys are, the pointer to them leads there again."""
    assert list(pointer.parse(pointer.write(tokens))) == tokens
    value = 1
    for token in reversed(tokens):
        value = {token: value}
    assert pointer.get(value, tuple(tokens)) == 1


SAMPLE = """
from datetime import date
from decimal import Decimal
from counterfoil.domain.canonical import SecretRef, canonical, fingerprint
keys = [chr(65 + n) * (n % 5 + 1) for n in range(40)]
value = {key: {"$x": [Decimal(1), b"a"], "s": SecretRef(name=key), "d": date(2024, 2, 29), "f": 0.1} for key in keys}
print(fingerprint(canonical(value)), fingerprint(canonical(dict.fromkeys(set(keys), 1))), end="")
"""


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_r35_every_process_prints_alike(seed, capsys):
    """The prints do not depend on the hash seed of the process."""
    exec(SAMPLE, {})
    here = capsys.readouterr().out
    source = os.path.dirname(os.path.dirname(counterfoil.__file__))  # noqa: PTH120 - a path for the environment
    there = subprocess.run(
        [sys.executable, "-c", SAMPLE],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": source},
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    )
    assert there.stdout == here
    assert here.count("cf1:") == 2


def test_a_print_does_not_depend_on_how_often_it_is_taken():
    """The same value, built a hundred times in another order, has one print."""
    keys = [f"key{n}" for n in range(50)]
    chance = random.Random(1)
    prints = set()
    for _ in range(100):
        chance.shuffle(keys)
        prints.add(fingerprint(canonical({key: len(key) for key in keys})))
    assert len(prints) == 1
