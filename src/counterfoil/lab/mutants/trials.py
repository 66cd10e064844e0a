"""One mutant before whoever must notice it: what was broken by which law, and that without it nothing is."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from counterfoil.lab import repeating
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.mutants.catalogue import APPROVALS, DEMO, IMAGES, MATRIX, RACE, TAMPER, WORLDS, Mutant
from counterfoil.lab.mutants.hunting import options_for
from counterfoil.lab.shares import told_by
from counterfoil.lab.world.options import differing
from counterfoil.lab.world.score import law_of

EACH = (APPROVALS, MATRIX)
"""Subjects of which a mutant names the part that it is put before."""
SCRIPT, IMAGES_MAX = "unknown", 400
"""Which of the scripts of crash images shows a disk's mutants, and by how many images."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one mutant."""

    number: int
    slug: str
    subject: str
    law: str = ""
    """The law that noticed; empty: none did."""
    said: str = ""
    where: str = ""
    """The world, the case or the script that showed it."""
    again: str = ""
    """The command that shows it once more: of a world event by event."""
    operations: int = 0
    """How many it took."""
    figures: Mapping[str, int] = {}
    """Of the world that showed it: what anybody can count from its raw truth."""
    seconds: float = 0.0


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a subject found broken."""

    law: str = ""
    said: str = ""
    where: str = ""
    operations: int = 0
    figures: Mapping[str, int] = {}


Subject = Callable[[Mutant, str | None, range, Path | None], Broken]
"""Runs what must notice a mutant; without its slug, the same with every rule in force. A folder gets the world."""


def tried(mutant: Mutant, worlds: range, keep: Path | None = None) -> Trial:
    """Turn the rule off and say what noticed.

    Args:
        mutant: not pending.
        worlds: those it is hunted through, where it is hunted in worlds.
        keep: gets the world that noticed it; None: nobody looks at that.
    """
    started = time.monotonic()
    found = SUBJECTS[mutant.subject](mutant, mutant.slug, worlds, keep)
    noticed = found if found.law in mutant.laws else Broken(operations=found.operations)
    again = _again(mutant, noticed.where) if noticed.law else ""
    return Trial(
        number=mutant.number, slug=mutant.slug, subject=mutant.subject, again=again,
        seconds=round(time.monotonic() - started, 2),
        **msgspec.structs.asdict(noticed),
    )  # fmt: skip


def _again(mutant: Mutant, where: str) -> str:
    """The command that shows what noticed a mutant."""
    if mutant.subject == WORLDS:
        return repeating.world(differing(options_for(mutant, int(where))), mutant.slug)
    if mutant.subject == MATRIX:
        return repeating.command("matrix", "--cell", where, sabotage=mutant.slug)
    return repeating.command("mutants", "--only", mutant.slug)


def controls(trials: Iterable[Trial], known: Mapping[str, Mutant]) -> list[str]:
    """Play once more, with every rule in force, whatever noticed a mutant; say what was broken all the same."""
    noticed = [trial for trial in trials if trial.law]
    worlds = [f"{trial.slug}:{trial.where}" for trial in noticed if trial.subject == WORLDS]
    broken = [
        f"{row['slug']}: {said}"
        for row in (told_by(None, "counterfoil.lab.mutants.hunting", "control", *worlds) if worlds else ())
        for said in row["violations"]
    ]
    # What is played whole whoever is on trial is played once; cases of approvals and cells each.
    others = {(t.subject, t.where if t.subject in EACH else ""): t for t in noticed if t.subject != WORLDS}
    for trial in others.values():
        found = SUBJECTS[trial.subject](known[trial.slug], None, range(0), None)
        broken += [f"{trial.subject}: {found.law}: {found.said}"] if found.law else []
    return broken


def _in_worlds(mutant: Mutant, slug: str | None, worlds: range, keep: Path | None) -> Broken:
    given = ("hunt", mutant.slug, str(worlds.start), str(worlds.stop), *([str(keep)] if keep else []))
    lines = list(told_by(slug, "counterfoil.lab.mutants.hunting", *given))
    if len(lines) != 1:
        raise RunFailed(f"the hunt for {mutant.slug} did not come to an end")
    found = lines[0]
    where = "" if found["world"] is None else str(found["world"])
    return Broken(
        law=found["law"], said=found["said"], where=where, operations=found["operations"], figures=found["figures"]
    )


def _in_approvals(mutant: Mutant, slug: str | None, worlds: range, keep: Path | None) -> Broken:
    del worlds, keep
    from counterfoil.lab import approvals

    only = tuple(mutant.terrain["cases"])
    with tempfile.TemporaryDirectory(prefix="counterfoil-lab-") as top:
        result = approvals.run(Path(top), slug, lambda _: None, only=only)
    figures = (result["bytes_sent_without_authority"], result["approvals_used_twice"])
    said = "{} bytes sent without authority, {} approvals used twice".format(*figures)
    return Broken(law="I2" if any(figures) else "", said=said, where=", ".join(only), operations=len(only))


def _in_the_demo(mutant: Mutant, slug: str | None, worlds: range, keep: Path | None) -> Broken:
    del mutant, worlds, keep
    from counterfoil.lab import demo
    from counterfoil.lab.canary import leaks

    with tempfile.TemporaryDirectory(prefix="counterfoil-lab-") as top:
        rows = demo.run(Path(top), slug, lambda _: None)
        leaked = leaks(Path(top))
    if leaked:
        return Broken(law="I13", said=f"the credential stands in {leaked[0]}", where=leaked[0], operations=len(rows))
    failed = [row for row in rows if not row.held]
    said = [f"{row.sent} sent, {row.effects} effects, told {row.outcome}" for row in failed]
    return Broken(law="I3", said=said[0], where=failed[0].case, operations=len(rows)) if failed else Broken()


def _in_images(mutant: Mutant, slug: str | None, worlds: range, keep: Path | None) -> Broken:
    del mutant, worlds, keep
    from counterfoil.lab.images import command

    with tempfile.TemporaryDirectory(prefix="counterfoil-lab-") as top:
        result = command.run(Path(top), command.Plan(IMAGES_MAX, SCRIPT, 1, slug), lambda _: None)
    found = result["found"]
    said = ", ".join(f"{kind.replace('_', ' ')} in {count}" for kind, count in found.items())
    return Broken(law="I6" if "lost" in found else "", said=said, where=SCRIPT, operations=result["images"])


def _in_a_book(mutant: Mutant, slug: str | None, worlds: range, keep: Path | None) -> Broken:
    del mutant, worlds, keep
    with tempfile.TemporaryDirectory(prefix="counterfoil-lab-") as top:
        (told,) = told_by(slug, "counterfoil.lab.tampering", top)
    missed = [row["way"] for row in told["rows"] if not row["named"]]
    return Broken(law="I6", said=f"{missed[0]}: not named", where=missed[0], operations=3) if missed else Broken()


def _in_cells(mutant: Mutant, slug: str | None, worlds: range, keep: Path | None) -> Broken:
    del worlds, keep
    from counterfoil.lab.matrix.trying import PLAYING, first_broken

    cells = tuple(mutant.terrain["cells"])
    rows = list(told_by(slug, PLAYING, "cells", "", *cells))
    broken = [(row["cell"], said) for row in rows if (said := first_broken(row["said"]))]
    where, said = broken[0] if broken else (", ".join(cells), "")
    return Broken(law=law_of(said), said=said, where=where, operations=sum(row["lives"] for row in rows))


def _in_a_race(mutant: Mutant, slug: str | None, worlds: range, keep: Path | None) -> Broken:
    del mutant, worlds, keep
    (told,) = told_by(slug, "counterfoil.lab.mutants.racing")
    twice = told["twice"]
    said = f"{len(twice)} of {told['races']} operations were sent by both of two callers"
    return Broken(law="I11", said=said, where=twice[0], operations=told["races"]) if twice else Broken()


SUBJECTS: Mapping[str, Subject] = {
    WORLDS: _in_worlds,
    APPROVALS: _in_approvals,
    DEMO: _in_the_demo,
    IMAGES: _in_images,
    TAMPER: _in_a_book,
    MATRIX: _in_cells,
    RACE: _in_a_race,
}
"""What runs each subject."""
