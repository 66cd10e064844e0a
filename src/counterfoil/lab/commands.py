"""Every command of the laboratory: what it runs, what it prints, and how it ends."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterfoil.cli import exits
from counterfoil.domain.errors import CounterfoilError
from counterfoil.lab import arguments as command_line
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.processes import NotReady
from counterfoil.lab.sabotage import checked

if TYPE_CHECKING:
    from counterfoil.lab.simulate import Plan

Step = Callable[[str], None]
"""Is told what a run has come to."""

HELD, BROKEN, NOT_RUN = 0, 1, 3
"""Every rule held; one is broken; the run says nothing about them."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in command_line.parted(given)[0]
    try:
        if given and given[0] in command_line.SERVERS:
            return _serve(*given)
        with exits.terminable():
            return _carry_out(command_line.read(given))
    except (RunFailed, NotReady, CounterfoilError, OSError) as error:
        return _not_run(str(error), as_json=as_json)
    except SystemExit as left:  # --help has said everything, and a server has its own last word
        return NOT_RUN if left.code else HELD
    except exits.Terminated:
        return exits.TERMINATED
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except Exception as defect:  # noqa: BLE001 - the laboratory's own defect: Python's exit code 1 would blame a rule
        traceback.print_exc()
        return _not_run(f"a defect of the laboratory's own ({type(defect).__name__})", as_json=as_json)


def _not_run(why: str, *, as_json: bool) -> int:
    print(f"counterfoil-lab: {why}", file=sys.stderr, flush=True)
    if as_json:
        print(json.dumps({"error": why}), flush=True)
    return NOT_RUN


def _serve(name: str, *rest: str) -> int:
    """Serve until ended; the server reads its own arguments and hears signals itself."""
    main: Callable[[Sequence[str]], int] = importlib.import_module(f"counterfoil.lab.{name}").main
    return NOT_RUN if main(rest) else HELD


def _carry_out(asked: argparse.Namespace) -> int:
    checked(asked.sabotage, asked.command)
    return _RUNS[asked.command](asked)


def _recorded(asked: argparse.Namespace, steps: int, play: Callable[[Path, Step], dict[str, Any]]) -> dict[str, Any]:
    """Play a run in its folder and return its result, which stands there too if the folder is kept."""
    from counterfoil.lab.progress import progress
    from counterfoil.lab.run_folder import run_folder, write_result

    with run_folder(asked.keep) as top:
        with progress(steps) as step:
            result = play(top, step)
        if asked.keep:
            write_result(top, result)
    return result


def _bench(asked: argparse.Namespace) -> int:
    from counterfoil.lab.bench import command
    from counterfoil.lab.run_folder import run_folder, write_result

    if asked.plots and not asked.peers:
        raise RunFailed("--plots draws what --peers measures")
    with run_folder(asked.keep) as top:
        keep = top if asked.keep else None
        result = command.run(
            store=asked.store, rounds=asked.rounds, with_peers=asked.peers, grown=asked.growth, keep=keep,
            plots=asked.plots, progress=_announce,
        )  # fmt: skip
        if keep is not None:
            write_result(keep, result)
    if not asked.json:
        from counterfoil.cli.terminal import console

        command.show(result, console())
    return _ended(result, as_json=asked.json)


def _announce(what: str) -> None:
    print(f"  {what} ...", file=sys.stderr, flush=True)


def _demo(asked: argparse.Namespace) -> int:
    from counterfoil.lab import demo
    from counterfoil.lab.accident import ACCIDENTS
    from counterfoil.lab.agentloop import GUARDED
    from counterfoil.lab.canary import leaks
    from counterfoil.lab.progress import progress
    from counterfoil.lab.run_folder import run_folder, write_exports, write_result

    with run_folder(asked.keep) as top:
        with progress(len(ACCIDENTS) * len(demo.RUNNERS)) as step:
            rows = demo.run(top, asked.sabotage, step)
        result = demo.as_json(rows)
        result["leaks"] = leaks(top)
        result["ok"] = result["ok"] and not result["leaks"]
        if asked.keep:
            for case in ACCIDENTS:
                write_exports(demo.folder_of(top, case, GUARDED))
            write_result(top, result)
        if not asked.json:
            from counterfoil.cli.terminal import console
            from counterfoil.lab.demo_page import show

            show(rows, top, console())
    return _ended(result, as_json=asked.json)


def _kill_loop(asked: argparse.Namespace) -> int:
    from counterfoil.lab import kill_loop
    from counterfoil.lab.progress import progress
    from counterfoil.lab.run_folder import run_folder, write_exports, write_result

    contracts = kill_loop.CONTRACTS if asked.contract == "all" else (asked.contract,)
    plan = kill_loop.Plan(asked.operations, asked.kills, contracts, asked.seed, asked.sabotage)
    with run_folder(asked.keep) as top:
        with progress(len(contracts) * (asked.kills + 1)) as step:
            result = kill_loop.run(top, plan, step)
        if asked.keep:
            for contract in contracts:
                write_exports(top / contract)
            write_result(top, result)
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.kill_page import show

        show(result, console())
    return _ended(result, as_json=asked.json)


def _approvals(asked: argparse.Namespace) -> int:
    from counterfoil.lab import approvals

    result = _recorded(asked, len(approvals.CASES), lambda top, step: approvals.run(top, asked.sabotage, step))
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.approvals_page import show

        show(result, console())
    return _ended(result, as_json=asked.json)


def _simulate(asked: argparse.Namespace) -> int:
    from counterfoil.lab import simulate

    plan = simulate.Plan(operations=asked.operations, seed=asked.seed, sabotage=asked.sabotage)
    if asked.world is not None:
        return _one_world(plan, asked.world, as_json=asked.json)
    result = _recorded(asked, plan.worlds, lambda top, step: simulate.run(plan, top if asked.keep else None, step))
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.simulate_page import show

        show(result, console())
    return _ended(result, as_json=asked.json)


def _one_world(plan: Plan, world: int, *, as_json: bool) -> int:
    from counterfoil.cli.terminal import console
    from counterfoil.lab.simulate import story
    from counterfoil.lab.simulate_page import tell

    if not as_json:
        return BROKEN if tell(story(plan, world), console()) else HELD
    *_, last = story(plan, world)
    return _ended({**last, "ok": not last["violations"]}, as_json=True)


def _exhaust(asked: argparse.Namespace) -> int:
    from counterfoil.lab import exhaust
    from counterfoil.lab.world.provider import KINDS

    kinds = KINDS if asked.kind == "all" else (asked.kind,)
    plan = exhaust.Plan(faults=asked.faults, kinds=kinds, most=asked.most, sabotage=asked.sabotage)
    result = _recorded(asked, len(plan.tasks), lambda top, step: exhaust.run(plan, step, top if asked.keep else None))
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.exhaust_page import show

        show(result, console())
    return _ended(result, as_json=asked.json)


def _matrix(asked: argparse.Namespace) -> int:
    from counterfoil.lab.matrix import command, page

    plan = command.Plan(cells=tuple(asked.cell), mutants=asked.mutants, sabotage=asked.sabotage)
    if asked.list:
        result: dict[str, Any] = {"rows": command.listed(), "ok": True}
    else:
        result = _recorded(asked, plan.steps, lambda top, step: command.run(plan, top if asked.keep else None, step))
    if not asked.json:
        from counterfoil.cli.terminal import console

        (page.show_list(result["rows"], console()) if asked.list else page.show(result, plan.names, console()))
    return _ended(result, as_json=asked.json)


def _mutants(asked: argparse.Namespace) -> int:
    from counterfoil.lab.mutants import command, page

    if asked.list:
        result: dict[str, Any] = {"mutants": command.listed(), "ok": True}
    else:
        plan = command.Plan(tier=asked.tier, slugs=tuple(map(str, map(checked, asked.only))))
        steps = len(plan.hunts())
        result = _recorded(asked, steps, lambda top, step: command.run(plan, step, top if asked.keep else None))
    if not asked.json:
        from counterfoil.cli.terminal import console

        (page.show_list(result["mutants"], console()) if asked.list else page.show(result, console()))
    return _ended(result, as_json=asked.json)


def _images(asked: argparse.Namespace) -> int:
    from counterfoil.lab.images import command

    plan = command.Plan(asked.images, asked.script, asked.seed, asked.sabotage)
    result = _recorded(asked, plan.tasks(), lambda top, step: command.run(top, plan, step))
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.images.page import show

        show(result, console())
    return _ended(result, as_json=asked.json)


def _chaos(asked: argparse.Namespace) -> int:
    from counterfoil.lab import chaos
    from counterfoil.lab.disk import Full
    from counterfoil.lab.progress import progress
    from counterfoil.lab.run_folder import run_folder, write_exports, write_result

    plan = chaos.Plan(asked.kills, asked.seed, asked.sabotage, Full(asked.disk) if asked.disk else None)
    with run_folder(asked.keep) as top:
        with progress(chaos.rounds_of(asked.kills)) as step:
            result = chaos.run(top, plan, step)
        if asked.keep:
            write_exports(top)
            write_result(top, result)
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.chaos_page import show

        show(result, console())
    return _ended(result, as_json=asked.json)


def _contracts(asked: argparse.Namespace) -> int:
    from counterfoil.lab.catalogue import command

    names = command.chosen(asked.contract)
    if not asked.check:
        return _ended({"contracts": names, "ok": True}, as_json=True) if asked.json else _named(names)
    result = _recorded(
        asked, len(names), lambda top, step: command.run(names, top if asked.keep else None, step, asked.sabotage)
    )
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.catalogue.page import show

        show(result, console())
    return _ended(result, as_json=asked.json)


def _named(names: list[str]) -> int:
    print("\n".join(names), flush=True)
    return HELD


def _certify(asked: argparse.Namespace) -> int:
    from counterfoil.lab import certify
    from counterfoil.lab.accident import ACCIDENTS
    from counterfoil.lab.junit import checked as file_checked
    from counterfoil.lab.junit import write
    from counterfoil.lab.progress import progress
    from counterfoil.lab.run_folder import run_folder, write_exports, write_result

    junit = file_checked(asked.junit)
    with run_folder(asked.keep) as top:
        with progress(len(ACCIDENTS)) as step:
            bounds = certify.Bounds(asked.deadline, asked.life)
            trials = certify.run(top, asked.worker, bounds, asked.sabotage, step)
        result = certify.as_json(trials)
        if asked.keep:
            for folder in (top / case for case in ACCIDENTS):
                for receipts in certify.receipts_of(folder):
                    write_exports(folder, receipts)
            write_result(top, result)
    if junit is not None:
        write(junit, trials)
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.certify_page import show

        show(trials, result["why"], console(), kept=bool(asked.keep))
    return _ended(result, as_json=asked.json)


def _ended(result: Mapping[str, Any], *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(result), flush=True)
    return HELD if result["ok"] else BROKEN


_RUNS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "demo": _demo,
    "kill-loop": _kill_loop,
    "approvals": _approvals,
    "simulate": _simulate,
    "exhaust": _exhaust,
    "matrix": _matrix,
    "mutants": _mutants,
    "images": _images,
    "chaos": _chaos,
    "contracts": _contracts,
    "certify": _certify,
    "bench": _bench,
}
"""What carries each command out."""
