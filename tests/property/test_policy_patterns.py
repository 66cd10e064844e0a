"""The laws of patterns: what Python matches is what SQLite's GLOB matches, and what covers lets nothing through."""

from __future__ import annotations

import contextlib
import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from counterfoil.domain import policy as model
from counterfoil.domain.action import Consequence
from counterfoil.domain.policy import Otherwise, Policy, Rule, When

CLOSE = st.text(alphabet="ab.*-\\^!é", max_size=8)
"""Few characters, so that patterns and texts often meet; those that other dialects find special are among them."""
ANY = st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), max_size=12)
PATTERNS = (CLOSE | ANY).filter(lambda text: text and not model.FOREIGN & set(text))
TEXTS = st.text(alphabet="ab.*-\\^!é?[]", max_size=10) | ANY


def glob(pattern, text):
    """What SQLite says."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        return bool(db.execute("SELECT ? GLOB ?", (text, pattern)).fetchone()[0])


@given(PATTERNS, TEXTS)
def test_python_and_sqlite_mean_the_same(pattern, text):
    """Whatever pattern is accepted matches the same texts in both."""
    assert model.matches(pattern, text) is glob(pattern, text)


@given(PATTERNS, st.data())
def test_what_fits_a_pattern_is_matched(pattern, data):
    """Each star may be any text: the result is always meant, by both."""
    text = "".join(data.draw(TEXTS) if c == "*" else c for c in pattern)
    assert model.matches(pattern, text)
    assert glob(pattern, text)


@given(PATTERNS, PATTERNS, TEXTS)
def test_what_is_covered_lets_nothing_through(wide, narrow, text):
    """Whatever the narrow pattern means, the covering one means too."""
    if model.covers((wide,), (narrow,)) and model.matches(narrow, text):
        assert model.matches(wide, text)


@given(st.data())
def test_within_two_amounts_the_terms_are_one(data):
    """Values that no threshold parts have the same terms: they may be kept for the band."""
    amounts = st.sampled_from([None, 1.0, 2.0, 3.0])
    rules = tuple(
        Rule(
            name=f"r{i}",
            when=When(actions=data.draw(st.sampled_from([("a",), ("*",), ("b",)])), above=above),
            approval=None,
        )
        for i, above in enumerate(data.draw(st.lists(amounts, max_size=4)))
    )
    policy = Policy(name="p", rules=rules, otherwise=Otherwise.ALLOW, override=model.Override(above=data.draw(amounts)))
    where = {"tenant": "t", "action": "a", "account": "x"}
    limits = model.thresholds(policy, **where)
    values = data.draw(st.lists(st.sampled_from([0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5]), min_size=2, max_size=2))
    one, two = (
        model.terms_of(policy, 1, **where, value=value, value_declared=True, consequence=Consequence.SOME)
        for value in values
    )
    if [values[0] > limit for limit in limits] == [values[1] > limit for limit in limits]:
        assert one == two
