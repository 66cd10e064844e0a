"""The value at risk: compared exactly, or refused."""

from __future__ import annotations

from decimal import Decimal

import pytest

from counterfoil.domain.errors import BadValue
from counterfoil.runtime.registered import _amount


@pytest.mark.parametrize(
    ("said", "held"),
    [(0, 0.0), (5, 5.0), (2**53, 2.0**53), (Decimal("1.5"), 1.5), (Decimal("0.1"), 0.1), (Decimal("1E+3"), 1000.0)],
)
def test_what_a_float_holds(said, held):
    """Whole numbers and decimals are numbers."""
    assert _amount(said) == held


@pytest.mark.parametrize(
    "said",
    [
        2**53 + 1, 10**400, Decimal("1000.00000000000000001"), Decimal("1e400"), Decimal("NaN"), Decimal("Infinity"),
        Decimal(-1), -1, True, "5", None, float("nan"), float("inf"), -1.0,
    ],
)  # fmt: skip
def test_what_no_float_holds(said):
    """Two amounts that differ are never taken for one, and nothing but a number is an amount."""
    with pytest.raises(BadValue, match="value is "):
        _amount(said)
