"""Secret references: resolved at the last moment, and no error ever shows what they open."""

from __future__ import annotations

import traceback

import msgspec
import pytest

from counterfoil import contracts
from counterfoil.domain.errors import SecretMisplaced, SecretMissing
from counterfoil.runtime.secrets import SECRET_BYTES_MAX, resolvers

AT = "/headers/authorization"
CONTRACT = contracts.load("lab.key")
SECRET = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"


def resolve(reference):
    """What one reference resolves to."""
    return resolvers("pay", {AT: reference}, CONTRACT)[AT]()


def told(error):
    """Everything a log would show of an error, its causes included."""
    return "".join(traceback.format_exception(error))


def test_each_kind_of_reference_resolves(monkeypatch, tmp_path):
    """A bare name, a variable, a file and a callable each read the secret when it is asked for."""
    monkeypatch.setenv("COUNTERFOIL_SECRET_LAB_KEY_A", "one")
    monkeypatch.setenv("OTHER", "two")
    file = tmp_path / "secret"
    file.write_text("three\n", encoding="utf-8")
    assert [resolve("lab-key.a"), resolve("env:OTHER"), resolve(f"file:{file}"), resolve(lambda: "four")] == [
        "one", "two", "three", "four",
    ]  # fmt: skip


def test_a_secret_is_read_when_it_is_needed(monkeypatch):
    """Declaring reads nothing, and a rotated secret is the next one read."""
    resolver = resolvers("pay", {AT: "env:ROTATED"}, CONTRACT)[AT]
    for value in ("old", "new"):
        monkeypatch.setenv("ROTATED", value)
        assert resolver() == value


def test_a_secret_stands_only_where_the_contract_says():
    """Another pointer is refused with those that are allowed, and a declared one without a reference is missing."""
    with pytest.raises(SecretMisplaced, match="which allows: /headers/authorization"):
        resolvers("pay", {"/headers/x": "env:X"}, CONTRACT)
    with pytest.raises(SecretMisplaced, match="which allows: none"):
        resolvers("pay", {"/headers/x": "env:X"}, msgspec.structs.replace(CONTRACT, secrets=()))
    with pytest.raises(SecretMissing, match="has no reference here"):
        resolvers("pay", {}, CONTRACT)


def test_a_secret_in_the_place_of_its_pointer_is_not_repeated():
    """Pointer and secret changed places: the error says so, without the secret."""
    with pytest.raises(SecretMisplaced, match="no pointer") as caught:
        resolvers("pay", {SECRET: AT}, CONTRACT)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "reference",
    [
        SECRET + ":",
        f"Bearer {SECRET}",
        f"env:{SECRET}!",
        "env:",
        "file:",
        f"vault:{SECRET}",
        SECRET.upper(),
        "a" * 41,
        "",
    ],
)
def test_a_secret_in_a_references_place_is_not_repeated(reference):
    """A reference that is none may be the secret itself: it is refused without a word of it."""
    with pytest.raises(SecretMisplaced) as caught:
        resolve(reference)
    assert SECRET not in str(caught.value)
    assert SECRET.upper() not in str(caught.value)


def failing():
    """A vault whose own message gives the secret away."""
    raise KeyError(f"no lease for {SECRET}")


@pytest.mark.parametrize(
    "reference",
    [failing, lambda: None, SECRET.encode, lambda: "", lambda: SECRET + "\n", lambda: SECRET * 2000],
    ids=["raises", "none", "bytes", "empty", "line break", "too long"],
)
def test_a_callables_errors_show_no_value(reference):
    """Whatever a vault raises or returns, the error names the action and the reference, and nothing else."""
    with pytest.raises(SecretMissing) as caught:
        resolve(reference)
    shown = told(caught.value)
    # The source line of this very test may stand in a traceback; the value itself may not.
    assert SECRET not in shown
    assert "pay" in str(caught.value)


@pytest.mark.parametrize(
    "value",
    ["", SECRET + "\r\nx-evil: 1", SECRET + "\x7f", SECRET + "x" * SECRET_BYTES_MAX],
    ids=["empty", "crlf", "del", "long"],
)
def test_a_value_no_header_can_carry_is_refused_unseen(monkeypatch, value):
    """Empty, too long or unprintable: missing as it stands, and not shown."""
    monkeypatch.setenv("BAD", value)
    with pytest.raises(SecretMissing, match="'BAD'") as caught:
        resolve("env:BAD")
    assert SECRET not in told(caught.value)


def test_a_missing_variable_is_named(monkeypatch):
    """The error says which variable to set; of a bare name, which may be the secret itself, only where it is sought."""
    monkeypatch.delenv("FOREM_KEY", raising=False)
    with pytest.raises(SecretMissing, match="FOREM_KEY"):
        resolve("env:FOREM_KEY")
    with pytest.raises(SecretMissing, match="COUNTERFOIL_SECRET_") as caught:
        resolve("forem-key")
    assert "forem" not in told(caught.value).lower().replace(__file__, "").replace('resolve("forem-key")', "")


@pytest.mark.parametrize(
    ("content", "problem"),
    [(None, "cannot be read"), (b"\xff" + SECRET.encode(), "is not text"), (b"x" * (SECRET_BYTES_MAX + 1), "too long")],
)
def test_a_file_that_holds_no_secret(tmp_path, content, problem):
    """Missing, binary or too large: named with its path, and nothing of its content."""
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SecretMissing, match=problem) as caught:
        resolve(f"file:{file}")
    assert SECRET not in told(caught.value)
