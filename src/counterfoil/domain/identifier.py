"""Operation ids: time-sortable, readable aloud, and their own row number.

An id is `op_` and 26 characters of Crockford's base 32: 48 bits of row number (milliseconds and a counter),
then 80 random bits. The store finds a row by the number and compares the whole id, so no index is spent on it.
"""

from __future__ import annotations

import base64

NUMBER_BITS = 48
NONCE_BYTES = 10
EPOCH_SECONDS = 1_735_689_600
"""2025-01-01: 40 bits of milliseconds from here last until 2059."""
_COUNTER_BITS = 8
_HEX32, _CROCKFORD = b"0123456789ABCDEFGHIJKLMNOPQRSTUV", b"0123456789abcdefghjkmnpqrstvwxyz"
_TO_CROCKFORD = bytes.maketrans(_HEX32, _CROCKFORD)
_FROM_CROCKFORD = bytes.maketrans(_CROCKFORD, _HEX32)
_LENGTH = 3 + 26


def number(at: float, salt: int) -> int:
    """The smallest row number of the millisecond `at` (seconds since the epoch), plus a salt of 8 bits."""
    return (int((at - EPOCH_SECONDS) * 1000) << _COUNTER_BITS) + salt


def operation_id(n: int, nonce: bytes) -> str:
    """Write a row number and ten random bytes as an id."""
    packed = base64.b32hexencode(n.to_bytes(6, "big") + nonce)
    return "op_" + packed[:26].translate(_TO_CROCKFORD).decode()


def row_number(operation: str) -> int | None:
    """Read the row number out of an id; None where the text is no id."""
    if len(operation) != _LENGTH or not operation.startswith("op_"):
        return None
    try:
        packed = operation[3:].encode("ascii").translate(_FROM_CROCKFORD) + b"======"
        return int.from_bytes(base64.b32hexdecode(packed)[:6], "big")
    except ValueError:
        return None
