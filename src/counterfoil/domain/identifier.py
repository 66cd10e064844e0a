"""Operation ids: time-sortable, readable aloud, and their own row number.

An id is `op_` and 26 characters of Crockford's base 32: 48 bits of row number (milliseconds and a counter),
then 80 random bits. The store finds a row by the number and compares the whole id, so no index is spent on it.
"""

from __future__ import annotations

NUMBER_BITS = 48
NONCE_BYTES = 10
EPOCH_SECONDS = 1_735_689_600
"""2025-01-01: 40 bits of milliseconds from here last until 2059."""
_COUNTER_BITS = 8
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
"""Ten bits at a time: thirteen look-ups make an id."""
_SHIFTS = tuple(range(120, -1, -10))
_DIGITS = {letter: value for value, letter in enumerate(_ALPHABET)}
_LENGTH = 3 + 26


def number(at: float, salt: int) -> int:
    """The smallest row number of the millisecond `at` (seconds since the epoch), plus a salt of 8 bits."""
    return (int((at - EPOCH_SECONDS) * 1000) << _COUNTER_BITS) + salt


def operation_id(n: int, nonce: bytes) -> str:
    """Write a row number and ten random bytes as an id."""
    packed = int.from_bytes(n.to_bytes(6, "big") + nonce, "big") << 2  # 128 bits fill 26 letters but for two
    pairs = _PAIRS
    return "op_" + "".join([pairs[packed >> shift & 1023] for shift in _SHIFTS])


def row_number(operation: str) -> int | None:
    """Read the row number out of an id; None where the text is no id."""
    if len(operation) != _LENGTH or not operation.startswith("op_"):
        return None
    packed = 0
    for letter in operation[3:]:
        digit = _DIGITS.get(letter)
        if digit is None:
            return None
        packed = packed << 5 | digit
    return packed >> 82
