"""How peers are measured: each answers for itself, what is not there is named, and nothing of it is made up."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from counterfoil.lab.bench import command, environment, peers, places
from counterfoil.lab.bench.environment import Missing
from counterfoil.lab.bench.peer import Peer
from counterfoil.lab.failure import RunFailed

PROJECT = Path(__file__).parents[3]
DRIVEN = PROJECT / "bench" / "peers"

PROGRAM = """
import sys
sys.path.insert(0, {driven!r})
import driven, os

answers = driven.own_output()
print("noise of a library's own")

def call(key):
    with open(os.path.join(sys.argv[-1], "calls"), "a") as file:
        file.write(key + "\\n")
        file.flush()
        os.fsync(file.fileno())

async def acall(key):
    call(key)

given = {{"acall": acall}} if "tasks" in sys.argv else {{}}
driven.serve("pytest", answers, call=call, **given)
"""
"""A peer as the real ones are, whose every call is one line that was synced once."""


@pytest.fixture
def program(tmp_path):
    """Its command line, without the folder it writes to."""
    (tmp_path / "peer.py").write_text(PROGRAM.format(driven=str(DRIVEN)))
    return [sys.executable, str(tmp_path / "peer.py")]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["tasks", "threads"])
def test_a_peer_measures_its_own_calls(program, tmp_path, way):
    """As many calls as were asked for, each under a key of its own, and a rate of what was really done."""
    with contextlib.closing(Peer([*program, way, str(tmp_path)])) as peer:
        assert peer.way == way
        assert len([seconds for seconds in peer.block(5) if seconds > 0.0]) == 5
        keys = (tmp_path / "calls").read_text().split()
        assert len(set(keys)) == 5
        rate = peer.load(4, 0.2)
    made = len((tmp_path / "calls").read_text().split()) - 5
    assert made >= 4
    assert 0.0 < rate <= made / 0.2


def test_a_peer_that_ends_is_missing(tmp_path):
    """It is told with its own last word, and no figure stands in its place."""
    with pytest.raises(Missing, match="no such library"):
        Peer([sys.executable, "-c", "raise SystemExit('no such library')"])


@pytest.mark.slow
def test_a_peer_that_ends_in_the_middle_ends_the_run(program, tmp_path, monkeypatch):
    """Rounds that it was part of are no figures of anybody's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(environment, "require", lambda _: None)
    monkeypatch.setattr(peers, "_commands", lambda *_: iter([("peer", ([*program, "tasks"], "sqlite"))]))
    monkeypatch.setattr(peers, "COUNTED", (1, 2))
    monkeypatch.setattr(Peer, "load", lambda *_: (_ for _ in ()).throw(Missing("it ended by itself")))
    monkeypatch.setattr(peers, "LOAD_SECONDS", 0.1)
    with pytest.raises(RunFailed, match="ended by itself"):
        peers.run("sqlite", rounds=1)
    monkeypatch.undo()
    assert not list(tmp_path.glob("counterfoil-bench-*"))


def test_a_peer_sees_nothing_of_ours(monkeypatch):
    """Its environment is its own: our path would give it our libraries."""
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    said = 'import json, os; print(json.dumps({"version": os.environ.get("PYTHONPATH", "none"), "way": "tasks"}))'
    with contextlib.closing(Peer([sys.executable, "-c", said])) as peer:
        assert peer.version == "none"


@pytest.mark.slow
def test_syncs_are_counted_between_two_runs(program, tmp_path, monkeypatch):
    """One a call, whatever starting costs; and none is told where there is nothing to count with."""
    monkeypatch.setattr(peers, "COUNTED", (2, 7))
    folder, missing = places.Folder(tmp_path), dict[str, str]()
    found = peers._fsyncs(program, "sqlite", folder, "peer", missing)
    assert found == (1.0 if places.shutil.which("strace") else None)
    monkeypatch.setattr(places.shutil, "which", lambda _: None)
    assert peers._fsyncs(program, "sqlite", folder, "peer", missing) is None
    assert missing == {}


def test_without_a_redis_its_peers_are_missing_by_name(tmp_path, monkeypatch):
    """No other Redis, and no Redis that keeps nothing, takes its place."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with peers._field("sqlite") as field:
        assert set(field.places) == {"sqlite"}
        assert set(field.missing) == {"idemkit", "powertools"}
        assert all("redis-server" in why for why in field.missing.values())


@pytest.mark.slow
def test_what_cannot_be_installed_is_missing_by_name(tmp_path):
    """A pin without its hash is refused by the installer, and nothing is left that looks like an environment."""
    pins = tmp_path / "requirements" / "peers"
    pins.mkdir(parents=True)
    (pins / "other.txt").write_text("./nothing-here\n")
    with pytest.raises(Missing, match="cannot be installed"):
        environment.python_of("other", tmp_path)
    with pytest.raises(Missing, match="cannot be installed"):  # half an environment is none
        environment.python_of("other", tmp_path)


@pytest.mark.slow
def test_an_environment_is_made_once_and_anew_for_other_pins(tmp_path):
    """The first run makes it; the next takes it as it stands, until its pins change."""
    pins = tmp_path / "requirements" / "peers"
    pins.mkdir(parents=True)
    (pins / "none.txt").write_text("")
    python = environment.python_of("none", tmp_path)
    assert subprocess.run([python, "-c", ""], check=True, timeout=60).returncode == 0
    made = python.parents[1].stat().st_ino
    assert environment.python_of("none", tmp_path) == python
    assert python.parents[1].stat().st_ino == made
    (pins / "none.txt").write_text("# other pins\n")
    environment.python_of("none", tmp_path)
    stamp = (python.parents[1] / "content").stat().st_mtime_ns
    environment.python_of("none", tmp_path)
    assert (python.parents[1] / "content").stat().st_mtime_ns == stamp


def test_an_installed_package_has_no_peers(tmp_path):
    """Their pins and programs come with the project, not with the wheel."""
    with pytest.raises(RunFailed, match="requirements/peers"):
        environment.require(tmp_path)
    environment.require(PROJECT)


def test_each_peer_has_pins_and_a_program():
    """What is measured beside a store is there, and nothing is there that is never measured."""
    named = {kind.name for kinds in peers.KINDS.values() for kind in kinds}
    assert {path.stem for path in (PROJECT / "requirements" / "peers").glob("*.txt")} == named
    assert {path.stem.removeprefix("on_") for path in DRIVEN.glob("on_*.py")} == named


@pytest.mark.parametrize(("over", "misses"), [({"idemkit": 1.5}, 0), ({"idemkit": 1.4, "dbos": 2.0}, 1), ({}, 0)])
def test_a_peer_that_was_measured_is_held_against_its_bar(held, over, misses):
    """A slower figure is a miss; a peer that was not measured has none."""
    assert len(command.missed({**held, "concurrent_over": over})) == misses
