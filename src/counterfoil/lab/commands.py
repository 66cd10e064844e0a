"""Every command of the laboratory: what it runs, what it prints, and how it ends."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from counterfoil.cli import exits
from counterfoil.domain.errors import CounterfoilError
from counterfoil.lab import arguments as command_line
from counterfoil.lab import report
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.processes import NotReady
from counterfoil.lab.sabotage import checked

Step = Callable[[str], None]
"""Is told what a run has come to."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _attend()
    try:
        code = _told(given, as_json="--json" in command_line.parted(given)[0])
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:  # nothing but the last word itself: no exit code of Python's may stand for it
        return report.unheard(error)
    return code


def _attend() -> None:
    """Hear Ctrl+C in a script's background too, which is deaf to it, and have an error stream in any case."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - as long as the process


def _told(given: Sequence[str], *, as_json: bool) -> int:
    """Carry a command line out to its last word.

    Raises:
        OSError: standard output takes nothing.
    """
    try:
        if given and given[0] in command_line.SERVERS:
            return _serve(*given)
        with exits.terminable():
            return _carry_out(command_line.read(given))
    except BrokenPipeError:
        raise
    except (RunFailed, NotReady, CounterfoilError, OSError) as error:
        return report.failed(str(error), as_json=as_json)
    except SystemExit as left:  # --help has said everything, and a server has its own last word
        return report.NOT_RUN if left.code else report.HELD
    except exits.Terminated:
        return report.failed("stopped by SIGTERM", as_json=as_json, code=exits.TERMINATED)
    except KeyboardInterrupt:
        return report.failed("stopped by Ctrl+C", as_json=as_json, code=exits.INTERRUPTED)
    except Exception as defect:  # noqa: BLE001 - the laboratory's own defect: Python's exit code 1 would blame a rule
        traceback.print_exc()
        said = f"a defect of the laboratory's own ({type(defect).__name__})"
        return report.failed(said, as_json=as_json)


def _serve(name: str, *rest: str) -> int:
    """Serve until ended; the server reads its own arguments and hears signals itself."""
    main: Callable[[Sequence[str]], int] = importlib.import_module(f"counterfoil.lab.{name}").main
    return report.NOT_RUN if main(rest) else report.HELD


def _carry_out(asked: argparse.Namespace) -> int:
    if sys.stdout is None:
        raise RunFailed("standard output is closed: nobody would hear what came out")
    checked(asked.sabotage, asked.command)
    command_line.meant(asked)
    return _RUNS[asked.command](asked)


def _recorded(asked: argparse.Namespace, steps: int, play: Callable[[Path, Step], dict[str, Any]]) -> dict[str, Any]:
    """Play a run in its folder and return its result, which stands there too if the folder is kept."""
    from counterfoil.lab.progress import progress
    from counterfoil.lab.run_folder import run_folder, write_result

    with run_folder(asked.keep) as top:
        with progress(steps) as step:
            result = report.judged(play(top, step), asked.sabotage)
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
        result = report.judged(result, asked.sabotage)
        if keep is not None:
            write_result(keep, result)
    if not asked.json:
        from counterfoil.cli.terminal import console

        command.show(result, console())
    return report.last_word(result, as_json=asked.json)


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
        result = report.judged(result, asked.sabotage)
        if asked.keep:
            for case in ACCIDENTS:
                write_exports(demo.folder_of(top, case, GUARDED))
            write_result(top, result)
        if not asked.json:
            from counterfoil.cli.terminal import console
            from counterfoil.lab.demo_page import show

            show(rows, top, console())
    return report.last_word(result, as_json=asked.json)


def _kill_loop(asked: argparse.Namespace) -> int:
    from counterfoil.lab import kill_loop
    from counterfoil.lab.progress import progress
    from counterfoil.lab.run_folder import run_folder, write_exports, write_result

    contracts = kill_loop.CONTRACTS if asked.contract == "all" else (asked.contract,)
    plan = kill_loop.Plan(asked.operations, asked.kills, contracts, asked.seed, asked.sabotage)
    with run_folder(asked.keep) as top:
        with progress(len(contracts) * (asked.kills + 1)) as step:
            result = report.judged(kill_loop.run(top, plan, step), asked.sabotage)
        if asked.keep:
            for contract in contracts:
                write_exports(top / contract)
            write_result(top, result)
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.kill_page import show

        show(result, console())
    return report.last_word(result, as_json=asked.json)


def _approvals(asked: argparse.Namespace) -> int:
    from counterfoil.lab import approvals

    result = _recorded(asked, len(approvals.CASES), lambda top, step: approvals.run(top, asked.sabotage, step))
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.approvals_page import show

        show(result, console())
    return report.last_word(result, as_json=asked.json)


def _simulate(asked: argparse.Namespace) -> int:
    from counterfoil.lab import simulate

    operations = asked.operations or command_line.SIMULATED
    plan = simulate.Plan(operations=operations, seed=asked.seed, sabotage=asked.sabotage)
    if asked.world is not None or asked.options is not None:
        story = simulate.story(plan, asked.options or asked.world)
        return _story(story, asked.sabotage, as_json=asked.json)
    result = _recorded(asked, plan.worlds, lambda top, step: simulate.run(plan, top if asked.keep else None, step))
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.simulate_page import show

        show(result, console())
    return report.last_word(result, as_json=asked.json)


def _story(story: Iterator[dict[str, Any]], sabotage: str | None, *, as_json: bool) -> int:
    """Tell one world; its last line is the result."""
    if as_json:
        *_, last = story
        broken = len(last["violations"])
    else:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.simulate_page import tell

        last, broken = {}, tell(story, console())
    return report.last_word(report.judged({**last, "ok": not broken}, sabotage), as_json=as_json)


def _exhaust(asked: argparse.Namespace) -> int:
    from counterfoil.lab import exhaust
    from counterfoil.lab.world.provider import KINDS

    kinds = KINDS if asked.kind == "all" else (asked.kind,)
    plan = exhaust.Plan(faults=asked.faults, kinds=kinds, most=asked.most, sabotage=asked.sabotage)
    if asked.path is not None:
        return _story(exhaust.story(plan, asked.first_send, asked.path), asked.sabotage, as_json=asked.json)
    result = _recorded(asked, len(plan.tasks), lambda top, step: exhaust.run(plan, step, top if asked.keep else None))
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.exhaust_page import show

        show(result, console())
    return report.last_word(result, as_json=asked.json)


def _matrix(asked: argparse.Namespace) -> int:
    from counterfoil.lab.matrix import command, page

    plan = command.Plan(cells=tuple(dict.fromkeys(asked.cell)), mutants=asked.mutants, sabotage=asked.sabotage)
    if asked.list:
        result: dict[str, Any] = {"rows": command.listed(), "ok": True}
    else:
        result = _recorded(asked, plan.steps, lambda top, step: command.run(plan, top if asked.keep else None, step))
    if not asked.json:
        from counterfoil.cli.terminal import console

        (page.show_list(result["rows"], console()) if asked.list else page.show(result, plan.names, console()))
    return report.last_word(result, as_json=asked.json)


def _mutants(asked: argparse.Namespace) -> int:
    from counterfoil.lab.mutants import command, page

    if asked.list:
        result: dict[str, Any] = {"mutants": command.listed(), "ok": True}
    else:
        plan = command.Plan(tier=asked.tier, slugs=tuple(dict.fromkeys(asked.only)))
        steps = len(plan.hunts())
        result = _recorded(asked, steps, lambda top, step: command.run(plan, step, top if asked.keep else None))
    if not asked.json:
        from counterfoil.cli.terminal import console

        (page.show_list(result["mutants"], console()) if asked.list else page.show(result, console()))
    return report.last_word(result, as_json=asked.json)


def _images(asked: argparse.Namespace) -> int:
    from counterfoil.lab.images import command

    plan = command.Plan(asked.images, asked.script, asked.seed, asked.sabotage)
    result = _recorded(asked, plan.tasks(), lambda top, step: command.run(top, plan, step))
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.images.page import show

        show(result, console())
    return report.last_word(result, as_json=asked.json)


def _chaos(asked: argparse.Namespace) -> int:
    from counterfoil.lab import chaos
    from counterfoil.lab.disk import Full
    from counterfoil.lab.progress import progress
    from counterfoil.lab.run_folder import run_folder, write_exports, write_result

    plan = chaos.Plan(
        kills=asked.kills, seed=asked.seed, mutant=asked.sabotage, full=Full(asked.disk) if asked.disk else None,
        postgresql=asked.store == "postgresql", restarts=asked.restarts, commit_cuts=asked.commit_cuts,
        pooler=asked.pooler,
    )  # fmt: skip
    with run_folder(asked.keep) as top:
        with progress(plan.steps) as step:
            result = report.judged(chaos.run(top, plan, step), asked.sabotage)
        if asked.keep:
            write_exports(top)
            write_result(top, result)
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.chaos_page import show

        show(result, console())
    return report.last_word(result, as_json=asked.json)


def _contracts(asked: argparse.Namespace) -> int:
    from counterfoil.lab.catalogue import command

    names = command.chosen(asked.contract)
    if not asked.check:
        return _named(names, as_json=asked.json)
    result = _recorded(
        asked, len(names), lambda top, step: command.run(names, top if asked.keep else None, step, asked.sabotage)
    )
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.catalogue.page import show

        show(result, console())
    return report.last_word(result, as_json=asked.json)


def _named(names: list[str], *, as_json: bool) -> int:
    if not as_json:
        print("\n".join(names), flush=True)
    return report.last_word({"contracts": names, "ok": True}, as_json=as_json)


def _certify_real(asked: argparse.Namespace) -> int:
    from counterfoil.lab.certify import Bounds, receipts_of
    from counterfoil.lab.progress import progress
    from counterfoil.lab.real import run as real
    from counterfoil.lab.real.relay import Fate
    from counterfoil.lab.real.servers import checked as servers_of
    from counterfoil.lab.run_folder import run_folder, write_exports, write_result

    servers = servers_of(asked.real)
    with run_folder(asked.keep) as top:
        with progress(len(servers) * len(Fate)) as step:
            trials = real.run(top, servers, Bounds(asked.deadline, asked.life), asked.sabotage, step)
        result = report.judged(real.as_json(trials), asked.sabotage)
        if asked.keep:
            for folder in top.glob("*-guarded"):
                for receipts in receipts_of(folder):
                    write_exports(folder, receipts)
            write_result(top, result)
    if not asked.json:
        from counterfoil.cli.terminal import console
        from counterfoil.lab.real.page import show

        show(trials, result, console())
    return report.last_word(result, as_json=asked.json)


def _certify(asked: argparse.Namespace) -> int:
    if asked.real is not None:
        return _certify_real(asked)
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
        result = report.judged(certify.as_json(trials), asked.sabotage)
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
    return report.last_word(result, as_json=asked.json)


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
