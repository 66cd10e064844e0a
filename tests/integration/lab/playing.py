"""Scenarios of one contract against one behaviour, in virtual time, and what came of them."""

from __future__ import annotations

from counterfoil import contracts
from counterfoil.lab.behaviour import model
from counterfoil.lab.catalogue.bench import Bench
from counterfoil.lab.catalogue.playing import play
from counterfoil.lab.catalogue.scenarios import SCENARIOS
from counterfoil.lab.catalogue.weaken import weakened
from counterfoil.lab.world.run import folder, virtual


def claiming(name, clause):
    """The contract with one clause that claims too much."""
    return next(weak.contract for weak in weakened(contracts.load(name)) if weak.clause == clause)


def played(name, scenario, clause=None, behaviour=None):
    """Play one scenario of a contract, as it stands or claiming too much; every result."""
    return of(claiming(name, clause) if clause else contracts.load(name), behaviour or model.load(name), scenario)


def of(contract, behaviour, scenario):
    """Play one scenario of any contract against any provider."""
    with virtual(), folder() as place:
        bench = Bench(place, behaviour)
        try:
            return [play(bench, contract, case) for case in SCENARIOS[scenario](contract, behaviour)]
        finally:
            bench.close()


def unsafe(results):
    """Whatever was unsafe in any of them."""
    return {said for result in results for said in result.unsafe}


def outcomes(results):
    """What their operations came to, by its word."""
    return {result.run.outcome.value for result in results}
