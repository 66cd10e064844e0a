"""The words of the house: each is one string, the same in code, SQL and pages."""

from __future__ import annotations

import inspect
import re
from enum import StrEnum
from importlib import resources

import pytest

from counterfoil.domain import action, event, intent, words

ENUMS = [
    member
    for module in (words, event, intent, action)
    for _, member in inspect.getmembers(module, inspect.isclass)
    if issubclass(member, StrEnum) and member is not StrEnum and member.__module__ == module.__name__
]


@pytest.mark.parametrize("enum", ENUMS, ids=lambda e: e.__name__)
def test_a_word_is_its_own_name(enum):
    """The stored string is the member's name in small letters, so that nothing has to be translated."""
    assert {member.value for member in enum} == {member.name.lower() for member in enum}
    assert all(re.fullmatch("[a-z_]+", member.value) for member in enum)


@pytest.mark.parametrize("column", ["permission", "dispatch", "outcome", "disposition", "discrepancy"])
def test_the_store_knows_the_same_words(column):
    """Each column's check lists exactly the words of its enum."""
    sql = resources.files("counterfoil.store.migrations").joinpath("0001_receipts.sql").read_text("utf-8")
    (check,) = re.findall(rf"^ +{column} +TEXT NOT NULL CHECK \((.*)\),$", sql, re.MULTILINE)
    assert set(re.findall(r"'(\w+)'", check)) == set(getattr(words, column.capitalize()))
