"""Secrets by reference: resolved at the last moment, handed to the provider and to nothing else."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from counterfoil.domain.contract import Contract
from counterfoil.domain.errors import SecretMisplaced, SecretMissing

SECRET_BYTES_MAX = 16 * 1024
"""A credential, not a document."""

Resolve = Callable[[], str]

_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,39}")
"""A bare name is a short word: most secrets put in its place by mistake are none, and are then never repeated."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def resolvers(action: str, declared: Mapping[str, Any], contract: Contract) -> dict[str, Resolve]:
    """Turn declared references into functions that read the secret when it is needed.

    Args:
        action: whose they are, for errors.
        declared: by pointer, `env:NAME`, `file:PATH` or a callable; a bare name reads `COUNTERFOIL_SECRET_NAME`.
        contract: names the pointers where secrets may stand.

    Raises:
        SecretMisplaced: a pointer the contract does not declare.
        SecretMissing: a pointer the contract declares has no reference.
    """
    for pointer in declared:
        if pointer not in contract.secrets:
            where = ", ".join(contract.secrets) or "none"
            why = f"is not declared by {contract.id}, which allows: {where}"
            # Pointer and secret may have changed places: only what looks like a pointer is repeated.
            raise SecretMisplaced(action, pointer=pointer if pointer.startswith("/") else "(no pointer)", why=why)
    for pointer in contract.secrets:
        if pointer not in declared:
            raise SecretMissing(action, name=pointer, problem="is declared by the contract and has no reference here")
    return {pointer: resolver(action, reference) for pointer, reference in declared.items()}


def references(declared: Mapping[str, Any]) -> dict[str, str]:
    """Name where each secret comes from, by pointer: an approval is bound to that, and never to what is found there."""
    return {pointer: _named(reference) for pointer, reference in declared.items()}


def _named(reference: Any) -> str:
    if not callable(reference):
        return str(reference)
    own = reference if hasattr(reference, "__qualname__") else type(reference)
    return f"call:{own.__module__}.{own.__qualname__}"


def resolver(action: str, reference: Any) -> Resolve:
    """Turn one declared reference into a function that reads the secret when it is needed.

    Raises:
        SecretMisplaced: it is no reference.
    """
    if callable(reference):
        return lambda: _from_call(action, reference)
    kind, colon, name = str(reference).partition(":")
    if not colon and _NAME.fullmatch(kind):
        variable = "COUNTERFOIL_SECRET_" + kind.upper().replace("-", "_").replace(".", "_")
        return lambda: _from_env(action, variable, name="of a bare name")
    if kind == "env" and _VARIABLE.fullmatch(name):
        return lambda: _from_env(action, name)
    if kind == "file" and name:
        return lambda: _from_file(action, name)
    # The reference may be the secret itself, put there by mistake: it is not repeated.
    raise SecretMisplaced(action, pointer="secrets", why="must be env:NAME, file:PATH, a bare name or a callable")


def _from_call(action: str, reference: Callable[[], Any]) -> str:
    name = getattr(reference, "__name__", "callable")
    try:
        found = reference()
    except Exception as error:  # noqa: BLE001 - a vault's own message may hold what it was asked for
        raise SecretMissing(action, name=name, problem=f"cannot be read: {type(error).__name__}") from None
    if not isinstance(found, str):
        raise SecretMissing(action, name=name, problem="is not text")
    return _usable(action, name, found)


def _from_env(action: str, variable: str, *, name: str = "") -> str:
    # A bare name may be the secret itself, put there by mistake: the error does not repeat it.
    shown = name or variable
    found = os.environ.get(variable)
    if found is None:
        raise SecretMissing(
            action,
            name=shown,
            problem="is not set in the environment (COUNTERFOIL_SECRET_…)" if name else "is not set in the environment",
        )
    return _usable(action, shown, found)


def _from_file(action: str, name: str) -> str:
    try:
        with Path(name).open("rb") as file:
            found = file.read(SECRET_BYTES_MAX + 1)
        return _usable(action, name, found.decode("utf-8").rstrip("\r\n"))
    except OSError as error:
        raise SecretMissing(action, name=name, problem=f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SecretMissing(action, name=name, problem="is not text") from None


def _usable(action: str, name: str, value: str) -> str:
    if not value:
        raise SecretMissing(action, name=name, problem="is empty")
    if len(value) > SECRET_BYTES_MAX or not value.isprintable():
        raise SecretMissing(action, name=name, problem="is too long or holds characters no header can carry")
    return value
