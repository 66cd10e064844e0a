"""The process provider: one command, run once, of which nothing is known but how it ended.

spawn fails                     | exit code      | signal, deadline
Silent, nothing left            | Replied        | Silent, may have left
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

from counterfoil.domain.answer import Answer, Replied, Silent
from counterfoil.domain.contract import AnswerRule, Citation, Confidence, Contract
from counterfoil.domain.errors import BadValue, PayloadRefused, SecretMisplaced, SecretMissing
from counterfoil.domain.template import LookTemplate, Names, RequestTemplate, filled, problems, render
from counterfoil.domain.words import Finding
from counterfoil.ports import provider
from counterfoil.providers.reply import Flight

EXIT_CODE_MAX = 125
"""Beyond it a shell speaks of itself: not found, not to be run, ended by a signal."""
OUTPUT_BYTES_MAX = 48 * 1024
"""What is read of the standard output; a result may have 64 KiB, and JSON needs more room than what it holds."""
KEY_VARIABLE = "COUNTERFOIL_PROVIDER_KEY"
"""Where the command finds the operation's own key, the same for every attempt."""
DECLARED = "declared"
"""The name of the source that a deployment's own clauses rest on."""

_STDIN = RequestTemplate(method="POST", path="", body="json")
_SAID = Citation(
    says="What these exit codes of this command prove, by whoever declared the action.",
    confidence=Confidence.INFERRED,
    document="the action's declaration",
)


def with_exits(contract: Contract, exits: Mapping[int, str]) -> Contract:
    """The contract with a clause in front for each exit code that a deployment declares.

    Raises:
        BadValue: a code is not the command's own, or a finding is none that an answer may have.
    """
    known = [finding.value for finding in Finding if finding is not Finding.ABSENT]
    for code, finding in exits.items():
        if type(code) is not int or not 0 <= code <= EXIT_CODE_MAX:
            raise BadValue("exits", code, wanted=f"exit codes from 0 to {EXIT_CODE_MAX}: beyond it a shell speaks")
        if finding not in known:
            raise BadValue("exits", finding, wanted=f"one of {', '.join(known)}")
    rules: list[Any] = [
        AnswerRule(status=("200",), where={"/exit_code": code}, finding=finding, source=DECLARED)  # type: ignore[arg-type]
        for code, finding in exits.items()
    ]
    if not rules:
        return contract
    return msgspec.structs.replace(
        contract, answers=(*rules, *contract.answers), sources={**contract.sources, DECLARED: _SAID}
    )


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What is run, and with what around it."""

    arguments: tuple[str, ...]
    """The program and its arguments; `{payload/POINTER}` and `{provider_key}` may stand in all but the first."""
    environment: Mapping[str, str] = {}
    """All of it but the secrets, the key and a plain PATH: nothing is inherited."""
    folder: str = "/"


class ProcessProvider:
    """Runs a command once, its payload as JSON on standard input; no shell takes part, and nothing is run again.

    Args:
        contract: judges the exit code.
        command: what is run.
        account: the account that its secrets open.
        secrets: by name of a variable, what returns its value.
        references: where each comes from, which an approval is bound to.

    Raises:
        BadValue: there is no command, or a placeholder is none.
    """

    def __init__(
        self,
        contract: Contract,
        *,
        command: Command,
        account: str,
        secrets: Mapping[str, Callable[[], str]],
        references: Mapping[str, str],
    ) -> None:
        self._contract, self._command, self._account = contract, command, account
        self._secrets, self._references = dict(secrets), dict(references)
        if not command.arguments or not Path(command.arguments[0]).is_absolute():
            raise BadValue("command", command.arguments[:1], wanted="a program by its absolute path, and its arguments")
        wrong = problems(LookTemplate(path="", query={"arguments": command.arguments[1:]}))
        if wrong or "{" in command.arguments[0]:
            raise BadValue("command", command.arguments, wanted="; ".join(wrong) or "a program that no payload names")

    def __repr__(self) -> str:
        return f"ProcessProvider({self._contract.id!r}, account={self._account!r})"

    def check(self, order: provider.SendOrder) -> None:
        """Refuse, before anything is claimed, what could never be run as it stands.

        Raises:
            PayloadRefused: the payload does not fit the command's arguments.
            SecretMissing: a declared secret has no value.
            SecretMisplaced: the order is for another account than these secrets open.
        """
        if order.account != self._account:
            raise SecretMisplaced(self._contract.id, pointer="/secrets", why="opens another account than the intent's")
        self._written(order)
        for name in self._secrets:
            if self._value(name) is None:
                raise SecretMissing(self._contract.id, name=name, problem="has no value")

    def form(self, order: provider.SendOrder) -> bytes:
        """Say what would be run, with each secret as the place it comes from.

        Raises:
            PayloadRefused: the payload does not fit the command's arguments.
        """
        arguments, said = self._written(order)
        around = [self._command.folder, dict(self._command.environment), self._references]
        return msgspec.json.encode([arguments, around, said], order="sorted")

    def send(self, order: provider.SendOrder, flight: provider.Flight) -> Answer:
        """Run it once and say how it ended; what still runs at the deadline is killed, and nothing is known of it."""
        if order.account != self._account:
            return Silent(may_have_left=False, reason="not_ours")
        try:
            arguments, said = self._written(order)
        except PayloadRefused:
            return Silent(may_have_left=False, reason="not_rendered")
        secrets = {name: self._value(name) for name in self._secrets}
        given = {name: value for name, value in secrets.items() if value is not None}
        if len(given) < len(secrets):
            return Silent(may_have_left=False, reason="secret_missing")
        around = {"PATH": os.defpath, **self._command.environment, **given, KEY_VARIABLE: order.provider_key}
        try:
            asked, told = _file(said), _file()
        except OSError:
            return Silent(may_have_left=False, reason="spawn_failed")
        with asked, told:
            # Crash here: nothing runs, but nobody can prove it.
            flight.may_have_left = True
            try:
                running = subprocess.Popen(  # noqa: S603 - what is run is what was declared, and no shell reads it
                    arguments, stdin=asked, stdout=told, stderr=subprocess.DEVNULL, env=around,
                    cwd=self._command.folder, start_new_session=True,
                )  # fmt: skip
            except OSError:
                flight.may_have_left = False
                return Silent(may_have_left=False, reason="spawn_failed")
            return _ended(running, order.deadline_seconds, told, tuple(given.values()))

    def look(self, order: provider.LookOrder) -> tuple[Answer, ...]:  # noqa: ARG002 - every provider is asked so
        """A command that has ended shows nothing."""
        return (Silent(may_have_left=False, reason="no_look"),)

    def _written(self, order: provider.SendOrder) -> tuple[tuple[str, ...], bytes]:
        """The arguments and the standard input."""
        names = Names(provider_key=order.provider_key)
        program, *declared = self._command.arguments
        made = filled(tuple(declared), order.payload, names)
        for text, value in zip(declared, made, strict=True):
            if "\0" in value:
                raise PayloadRefused(text, "an argument holds no null character")
            if value.startswith("-") and not text.startswith("-"):
                raise PayloadRefused(text, "a value may not begin with a dash: the command would take it for an option")
        return (program, *made), render(_STDIN, order.payload, names).body

    def _value(self, name: str) -> str | None:
        try:
            return self._secrets[name]()
        except Exception:  # noqa: BLE001 - a vault's error may hold the secret; without a value nothing is run
            return None


def _file(content: bytes = b"") -> IO[bytes]:
    """A file that nobody else finds: unlike a pipe it fills no buffer, and no grandchild holds up its end."""
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by whoever asked for it
    file.write(content)
    file.seek(0)
    return file


def _ended(running: subprocess.Popen[bytes], seconds: float, told: IO[bytes], secrets: tuple[str, ...]) -> Answer:
    """Wait for its end; whoever interrupts the waiting ends it, and all that it started and did not hide."""
    try:
        code = running.wait(max(0.0, seconds))
    except subprocess.TimeoutExpired:
        return Silent(may_have_left=True, reason="deadline")
    finally:
        if running.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    if code < 0:
        return Silent(may_have_left=True, reason="killed_by_signal")
    told.seek(0)
    output = _output(told.read(OUTPUT_BYTES_MAX + 1))
    known = Flight(may_have_left=True, status=200, secrets=secrets)
    known.body = bytearray(json.dumps({"exit_code": code, "output": output}).encode())
    answer = known.answer(None)
    assert isinstance(answer, Replied)  # noqa: S101 - a status was just noted
    return answer


def _output(octets: bytes) -> object:
    """What it printed: JSON where it is JSON, else text; None where there is too much of it."""
    if len(octets) > OUTPUT_BYTES_MAX:
        return None
    text = octets.decode("utf-8", "replace")
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
