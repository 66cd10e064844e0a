"""Operation ids: sortable, their own row number, and nothing that is not an id reads as one."""

from __future__ import annotations

import random

import pytest

from counterfoil.domain.identifier import EPOCH_SECONDS, NONCE_BYTES, NUMBER_BITS, number, operation_id, row_number

TOP = 2**NUMBER_BITS - 1


@pytest.mark.parametrize("n", [0, 1, 255, 256, 2**40, TOP])
def test_an_id_holds_its_row_number(n):
    """The number is read back from the text alone, whatever the nonce."""
    for nonce in (b"\x00" * NONCE_BYTES, b"\xff" * NONCE_BYTES, random.Random(n).randbytes(NONCE_BYTES)):
        assert row_number(operation_id(n, nonce)) == n


def test_ids_sort_as_their_numbers_do():
    """Text order is number order is time order, for any nonce."""
    dice = random.Random(7)
    numbers = sorted(dice.randrange(TOP) for _ in range(500))
    ids = [operation_id(n, dice.randbytes(NONCE_BYTES)) for n in numbers]
    assert ids == sorted(ids)


def test_two_nonces_are_two_ids():
    """The same row number, drawn by two processes, is still two names."""
    assert operation_id(5, b"a" * NONCE_BYTES) != operation_id(5, b"b" * NONCE_BYTES)


def test_an_id_has_one_spelling():
    """Lower case, no separators: what a person copies is what is compared."""
    written = operation_id(TOP, b"\xab" * NONCE_BYTES)
    assert written == written.lower()
    assert written.startswith("op_")
    assert written[3:].isalnum()


GOOD = operation_id(TOP - 5, b"\xab" * NONCE_BYTES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "op_",
        GOOD[3:],
        GOOD[:-1],
        GOOD + "0",
        GOOD + "\n",
        " " + GOOD[1:],
        "OP_" + GOOD[3:],
        GOOD.upper(),
        GOOD[:-1] + "g",
        GOOD[:-1] + "é",
        GOOD[:-1] + "\u0663",
        GOOD[:-1] + "-",
        GOOD[:-1] + "\x00",
        "op_+" + GOOD[4:],
        "op_0x" + GOOD[5:],
        GOOD[:5] + "_" + GOOD[6:],
    ],
    ids=ascii,
)
def test_what_is_no_id_has_no_number(text):
    """Shortened, lengthened, in another case or with another digit: None, never a wrong row and never an error."""
    assert row_number(text) is None


def test_numbers_rise_with_time():
    """A later moment has a larger number, whatever the salts."""
    at = EPOCH_SECONDS + 1_000.0
    assert number(at, 255) < number(at + 0.002, 0)
    assert number(at, 0) < number(at, 1)


@pytest.mark.parametrize("at", [EPOCH_SECONDS, 1_900_000_000.0, 2_800_000_000.0])
def test_numbers_fit_for_decades(at):
    """From the epoch to beyond 2058 the number fits its 48 bits."""
    assert 0 <= number(at, 0) <= number(at, 255) <= TOP
