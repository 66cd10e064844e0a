"""Commands: real ones, and what each way of ending proves."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import time
from pathlib import Path

import msgspec
import pytest

import counterfoil
from counterfoil import contracts
from counterfoil.domain.canonical import canonical
from counterfoil.domain.contract import AnswerRule
from counterfoil.domain.errors import BadValue, PayloadRefused, SecretMisplaced, SecretMissing
from counterfoil.ports.provider import SendOrder
from counterfoil.providers.process import OUTPUT_BYTES_MAX, Command, ProcessProvider

OWNED = {"account": "shop", "owner": "ann", "authoriser": "ben"}
CONTRACT = contracts.load("process.command")
HASTY = msgspec.structs.replace(CONTRACT, send_deadline_seconds=1.0)
SECONDS = 20.0
"""A killed process is gone long before."""
SECRET = "deploy-token-81f2"

DEPLOY = """#!{python}
import json, os, signal, sys, time
payload = json.load(sys.stdin)
with open({runs!r}, "a") as runs:
    runs.write(json.dumps({{"args": sys.argv[1:], "payload": payload, "env": dict(os.environ)}}) + "\\n")
exec(payload.get("then", ""))
"""
"""A command that writes down each of its runs, and then does what its payload asks for."""


class Deploy:
    """The command, and what it did."""

    def __init__(self, folder: Path) -> None:
        self.path, self._runs = folder / "deploy", folder / "runs.jsonl"
        self.path.write_text(DEPLOY.format(python=sys.executable, runs=str(self._runs)), "utf-8")
        self.path.chmod(0o700)

    @property
    def runs(self):
        """Every run there was."""
        return [json.loads(one) for one in self._runs.read_text("utf-8").splitlines()] if self._runs.exists() else []


@pytest.fixture
def deploy(tmp_path):
    """A command of its own for each test."""
    return Deploy(tmp_path)


@pytest.fixture
def ledger(tmp_path):
    """A ledger of its own for each test."""
    with counterfoil.open(tmp_path / "receipts.db", actor="robot") as ledger:
        yield ledger


def running(ledger, deploy, *arguments, **given):
    """The action that runs the command."""
    return ledger.process("deploy", command=[str(deploy.path), *arguments], **{**OWNED, **given})


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(0, "succeeded"), (3, "rejected"), (75, "unobserved"), (4, "succeeded"), (1, "unknown"), (126, "unknown")],
)
def test_an_exit_code_proves_what_is_declared_of_it(ledger, deploy, code, outcome):
    """Zero is success; any other says what the deployment declared, and nothing where it declared nothing."""
    act = running(ledger, deploy, exits={3: "rejected", 75: "not_sent", 4: "accepted"})
    receipt = act({"then": f"sys.exit({code})"}, key="release-1")
    assert receipt.outcome == outcome
    assert len(deploy.runs) == 1


def test_nothing_is_run_twice_and_only_not_sent_may_be_called_again(ledger, deploy):
    """A success and an unknown answer the same call; a command that says it did nothing runs once more for it."""
    act = running(ledger, deploy, exits={75: "not_sent"})
    for then in ("", "sys.exit(1)"):
        before = len(deploy.runs)
        assert len({act({"then": then}, key=f"release{then}").id for _ in range(3)}) == 1
        assert len(deploy.runs) == before + 1
    before = len(deploy.runs)
    act({"then": "sys.exit(75)"}, key="release-busy")
    act({"then": "sys.exit(75)"}, key="release-busy")
    assert len(deploy.runs) == before + 2


def test_an_unknown_end_is_a_persons(ledger, deploy):
    """No command can be asked what it did: the next step is a person's."""
    receipt = running(ledger, deploy)({"then": "sys.exit(1)"}, key="release-1")
    assert (receipt.lifecycle, receipt.operation.unresolved) == ("manual_review", 1)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_what_a_signal_ended_is_unknown(ledger, deploy, number):
    """It may have done everything before that; no declaration can speak of it."""
    said = AnswerRule(status=("200",), where={"/exit_code": -int(number)}, finding="rejected", source="exit")
    act = running(ledger, deploy, contract=msgspec.structs.replace(CONTRACT, answers=(said,)))
    assert act({"then": f"os.kill(os.getpid(), {int(number)})"}, key="release-1").outcome == "unknown"


@pytest.mark.slow
def test_what_runs_too_long_is_ended_with_its_children_and_unknown(ledger, deploy, tmp_path):
    """At the deadline the whole group is killed: nothing of it writes any more."""
    left = tmp_path / "child.pid"
    then = f"pid = os.fork(); pid and open({str(left)!r}, 'w').write(str(pid)); time.sleep(600)"
    receipt = running(ledger, deploy, contract=HASTY)({"then": then}, key="release-1")
    assert receipt.outcome == "unknown"
    until = time.monotonic() + SECONDS
    while alive(int(left.read_text())):
        assert time.monotonic() < until, "what it started goes on"


def alive(pid):
    """Whether a process still runs; one that only waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(deploy):
    """It was there when it was declared."""
    deploy.path.unlink()


def shut(deploy):
    """Nobody may run it any more; root may run what anybody may."""
    deploy.path.chmod(stat.S_IRUSR | stat.S_IWUSR)


def unreadable(deploy):
    """Its interpreter is not there."""
    deploy.path.write_text("#!/nowhere/python\n")


@pytest.mark.parametrize("spoil", [gone, shut, unreadable])
def test_what_cannot_be_started_was_not_sent(ledger, deploy, spoil):
    """The kernel said no: nothing ran, and the same call may be made again."""
    act, kept = running(ledger, deploy), deploy.path.read_text()
    spoil(deploy)
    first = act({}, key="release-1")
    assert (first.outcome, first.dispatch, deploy.runs) == ("unobserved", "not_started", [])
    deploy.path.write_text(kept)
    deploy.path.chmod(0o700)
    assert act({}, key="release-1").outcome == "succeeded"


def test_what_it_prints_is_the_result(ledger, deploy):
    """JSON as JSON, other text as text; too much of it is kept nowhere, and changes no outcome."""
    act = running(ledger, deploy)
    said = {"json": "print(json.dumps({'id': 7}))", "text": "print('done')", "much": f"print('x' * {OUTPUT_BYTES_MAX})"}
    receipts = {name: act({"then": then}, key=name) for name, then in said.items()}
    assert {name: receipt.outcome for name, receipt in receipts.items()} == dict.fromkeys(said, "succeeded")
    assert receipts["json"].result == {"exit_code": 0, "output": {"id": 7}}
    assert receipts["text"].result == {"exit_code": 0, "output": "done\n"}
    assert receipts["much"].result == {"exit_code": 0, "output": None}


def test_it_gets_its_payload_its_key_and_nothing_of_the_environment(ledger, deploy, monkeypatch):
    """JSON on standard input, placeholders filled in, the operation's key; no variable that was not declared."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-for-you")
    act = running(ledger, deploy, "--to={payload/to}", "{provider_key}", environment={"LANG": "C.UTF-8"})
    receipt = act({"to": "a b; rm -rf $HOME"}, key="release-1")
    [run] = deploy.runs
    assert run["args"] == ["--to=a b; rm -rf $HOME", receipt.id]
    assert run["payload"] == {"to": "a b; rm -rf $HOME"}
    assert run["env"].pop("LC_CTYPE", "C.UTF-8")  # Python's own
    assert run["env"] == {"PATH": os.defpath, "LANG": "C.UTF-8", "COUNTERFOIL_PROVIDER_KEY": receipt.id}


def test_a_secret_reaches_the_command_and_nothing_else(ledger, deploy, tmp_path):
    """It stands in a variable; where the command prints it, the result has stars, and no file of the store has it."""
    act = running(ledger, deploy, secrets={"TOKEN": lambda: SECRET})
    receipt = act({"then": "print(os.environ['TOKEN'])"}, key="release-1")
    assert deploy.runs[0]["env"]["TOKEN"] == SECRET
    assert receipt.result["output"].strip() == "*" * len(SECRET)
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("receipts.db*") if path.is_file())
    assert SECRET.encode() not in kept


def test_a_secret_that_is_not_there_is_named(ledger, deploy):
    """Before anything is claimed."""
    act = running(ledger, deploy, secrets={"TOKEN": "env:NO_SUCH_TOKEN"})
    with pytest.raises(SecretMissing, match="TOKEN"):
        act({}, key="release-1")


@pytest.mark.parametrize("to", ["--force", "-rf", "a\0b", None])
def test_no_value_becomes_an_option(ledger, deploy, to):
    """A dash at the beginning of an argument is the declaration's to write; a null character is nobody's."""
    act = running(ledger, deploy, "{payload/to}")
    with pytest.raises(PayloadRefused):
        act({"to": to}, key="release-1")
    assert deploy.runs == []


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ([], {}),
        ("deploy --now", {}),
        (["no-such-program-81f2"], {}),
        ([sys.executable, "{payload}{"], {}),
        ([sys.executable, "{nothing}"], {}),
        ([sys.executable], {"exits": {126: "rejected"}}),
        ([sys.executable], {"exits": {-9: "rejected"}}),
        ([sys.executable], {"exits": {True: "rejected"}}),
        ([sys.executable], {"exits": {3: "absent"}}),
        ([sys.executable], {"exits": {3: "fine"}}),
    ],
)
def test_a_command_that_cannot_be_is_refused_where_it_is_declared(ledger, command, given):
    """No program, a line for a shell, a placeholder of nobody's, a code that is not the command's, no finding."""
    with pytest.raises(BadValue):
        ledger.process("deploy", command=command, **OWNED, **given)


def test_another_code_is_another_contract(ledger, deploy):
    """What is declared of the exit codes is pinned by every receipt."""
    plain = running(ledger, deploy)
    other = ledger.process("other", command=[str(deploy.path)], exits={3: "rejected"}, **OWNED)
    assert plain.action.contract_digest != other.action.contract_digest
    assert "declared" in other.action.contract.sources


def test_what_is_approved_names_everything_but_the_secret():
    """The same bytes twice: the command, what is around it, and where its secret comes from."""
    given = {"secrets": {"TOKEN": lambda: SECRET}, "references": {"TOKEN": "env:TOKEN"}, "account": "shop"}
    command = Command(arguments=("/nowhere/deploy", "{payload/to}"), environment={"LANG": "C"})
    provider = ProcessProvider(CONTRACT, command=command, **given)
    order = SendOrder(
        account="shop", destination="", payload=canonical({"to": "x"}), provider_key="op_1", deadline_seconds=1.0
    )
    assert provider.form(order) == provider.form(order)
    assert all(word in provider.form(order) for word in (b"/nowhere/deploy", b'"x"', b"LANG", b"env:TOKEN"))
    assert SECRET.encode() not in provider.form(order)
    other = msgspec.structs.replace(order, account="other")
    with pytest.raises(SecretMisplaced):
        provider.check(other)
    assert provider.send(other, Flight()).reason == "not_ours"
    flight = Flight()
    assert (provider.send(order, flight).reason, flight.may_have_left) == ("spawn_failed", False)


class Flight:
    """What a plan keeps of a send that is under way."""

    may_have_left = False
