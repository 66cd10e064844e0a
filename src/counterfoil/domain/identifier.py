"""Operation ids: time-sortable, and their own row number.

An id is `op_` and 32 hexadecimal digits: 48 bits of row number (milliseconds and a counter), then 80 random bits.
The store finds a row by the number and compares the whole id, so no index is spent on it.
"""

from __future__ import annotations

import string

NUMBER_BITS = 48
NONCE_BYTES = 10
EPOCH_SECONDS = 1_735_689_600
"""2025-01-01: 40 bits of milliseconds from here last until 2059."""
_COUNTER_BITS = 8
_DIGITS = frozenset(string.digits + "abcdef")
_LENGTH = 3 + 32


def number(at: float, salt: int) -> int:
    """The smallest row number of the millisecond `at` (seconds since the epoch), plus a salt of 8 bits."""
    return (int((at - EPOCH_SECONDS) * 1000) << _COUNTER_BITS) + salt


def operation_id(n: int, nonce: bytes) -> str:
    """Write a row number and ten random bytes as an id."""
    return f"op_{n:012x}{nonce.hex()}"


def short_id(n: int) -> str:
    """The beginning of an id that its row number alone makes: no other operation of the store has it."""
    return f"op_{n:012x}"


def row_number(operation: str) -> int | None:
    """Read the row number out of an id; None where the text is no id."""
    if len(operation) != _LENGTH or operation[:3] != "op_" or not _DIGITS.issuperset(operation[3:]):
        return None
    return int(operation[3:15], 16)
