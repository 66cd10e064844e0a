"""Child processes: ready when they say so, ended when asked, never outliving their parent."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from counterfoil.lab.processes import Child, NotReady, free_port, module, wait_until_listening

READY = "import sys; print('ready 4711 and more', flush=True); sys.stdin.read()"
DEAF = (
    "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready 1', flush=True); sys.stdin.read()"
)


def python(program):
    """The argument list of a small program."""
    return [sys.executable, "-c", program]


def gone(pid):
    """Whether no such process is left, not even one that nobody has waited for."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_child_is_ready_when_it_says_so():
    """What follows the word is kept, and the child runs until it is stopped."""
    with Child(python(READY)) as child:
        assert child.ready == "4711 and more"
        assert child.running
    assert not child.running
    assert gone(child.pid)


def test_a_child_that_ends_first_is_not_ready():
    """The error says so and carries the end of the error stream."""
    with pytest.raises(NotReady, match="ended before it was ready") as ended:
        Child(python("raise SystemExit('no reason')"))
    assert ended.value.said == "no reason"


@pytest.mark.parametrize("program", ["input()", "print('hello', flush=True); input()", "print('x' * 9999); input()"])
def test_a_child_that_is_never_ready_is_ended(program):
    """Silence, another word or no end of the line: the child is not left running."""
    with pytest.raises(NotReady, match="did not say that it is ready"):
        Child(python(program), ready_seconds=0.3)


def test_a_deaf_child_is_killed():
    """A child that does not listen to SIGTERM ends by SIGKILL."""
    child = Child(python(DEAF))
    assert child.stop(seconds=0.1) == -signal.SIGKILL
    assert gone(child.pid)


def test_a_killed_child_may_be_stopped_again():
    """Ending what has ended does nothing, and the code stays what it was."""
    child = Child(python(READY))
    assert child.kill() == -signal.SIGKILL
    assert child.stop() == child.kill() == -signal.SIGKILL
    assert child.errors() == ""


def test_a_child_hears_only_its_own_signals():
    """A child lives in a session of its own: Ctrl+C in the terminal reaches its parent alone."""
    with Child(python(READY)) as child:
        assert os.getsid(child.pid) == child.pid


def test_a_child_gets_variables_besides_its_parents_own():
    """Variables are added, not exchanged."""
    program = "import os; print('ready', os.environ['ADDED'], 'PATH' in os.environ, flush=True); input()"
    with Child(python(program), env={"ADDED": "yes"}) as child:
        assert child.ready == "yes True"


def test_a_free_port_can_be_listened_on():
    """A port that is free now is named, and a child that says nothing is waited for until it listens."""
    port = free_port()
    program = f"import socket, sys; s = socket.create_server(('127.0.0.1', {port})); sys.stdin.read()"
    with Child(python(program), ready_seconds=None) as child:
        wait_until_listening(child, port)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "reason"),
    [("raise SystemExit('no reason')", "ended before it listened"), ("input()", "does not listen")],
)
def test_a_child_that_never_listens_is_ended(program, reason):
    """Whether it ended or only said nothing, it is not left running."""
    child = Child(python(program), ready_seconds=None)
    with pytest.raises(NotReady, match=reason):
        wait_until_listening(child, free_port(), seconds=0.5)
    assert not child.running


def test_a_tethered_module_runs_as_if_alone():
    """A module on a tether has its own arguments, its own error stream and its own exit code."""
    with Child(module("counterfoil.lab.tether", "json.tool", "--nonsense"), ready_seconds=None) as child:
        assert child.wait() == 2
        assert child.errors().endswith("unrecognized arguments: --nonsense")


def test_a_tethered_module_ends_with_its_parent():
    """When the pipe ends, a module that knows nothing of it is ended by SIGTERM."""
    argv = module("counterfoil.lab.tether", "http.server", "--bind", "127.0.0.1", "0")
    with Child(argv, ready_seconds=None) as child:
        child.let_go()
        assert child.wait() == -signal.SIGTERM
