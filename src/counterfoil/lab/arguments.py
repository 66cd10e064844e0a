"""The laboratory's command line: its commands, the options they share, and bounds for every number."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from counterfoil.cli.parser import count, seconds
from counterfoil.lab.disk import Full
from counterfoil.lab.failure import RunFailed
from counterfoil.lab.images.scripts import SCRIPTS
from counterfoil.lab.kill_loop import CONTRACTS
from counterfoil.lab.mutants.command import TIERS
from counterfoil.lab.world.chance import DIGITS
from counterfoil.lab.world.options import BASES
from counterfoil.lab.world.options import read as read_options
from counterfoil.lab.world.provider import KINDS

OPERATIONS, OPERATIONS_MAX = 200, 10_000
KILLS, KILLS_MAX = 30, 1_000
CHAOS_KILLS = 200
RESTARTS, RESTARTS_MAX = 10, 1_000
COMMIT_CUTS, COMMIT_CUTS_MAX = 100, 10_000
ROUNDS, ROUNDS_MAX = 60, 1_000
GROWTH_MAX = 100_000_000
IMAGES, IMAGES_MAX = 21_000, 1_000_000
SEED_MAX = 1_000_000_000
SIMULATED, SIMULATED_MAX = 20_000, 10_000_000
FAULTS, FAULTS_MAX = 1, 3
SCHEDULES_MAX = 10_000_000
DEADLINE_SECONDS, LIFE_SECONDS, SECONDS_MIN, SECONDS_MAX = 2.0, 60.0, 0.1, 3600.0

WORKER = "--"
"""What stands before a command of somebody else's."""

SERVERS = ("provider", "proxy")
"""Commands that serve until they are ended; each reads its own arguments, and here they only have their line."""

EPILOG = """\
exit codes:
  0    everything came out as it must
  1    a rule is broken (and with --sabotage one must be)
  3    the run could not be made, not be finished or not be told, or met nothing that a rule is about: it says nothing
  130  stopped by Ctrl+C
  141  whoever read the output went away
  143  stopped by SIGTERM
"""


class _Parser(argparse.ArgumentParser):
    """An argument parser whose refusals are the laboratory's own kind of error: code 2 would say something else."""

    def error(self, message: str) -> NoReturn:
        raise RunFailed(f"{message} (see {self.prog} --help)")


def read(arguments: Sequence[str]) -> argparse.Namespace:
    """Read one command line.

    Raises:
        RunFailed: it cannot be read.
    """
    parser = _parser("counterfoil-lab", "Real processes, faults on the wire, and what really happened.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, line, options in (
        ("demo", "one agent, three accidents, with receipts and without", ()),
        ("kill-loop", "`counterfoil run`, killed and started again until done", _KILL_LOOP),
        ("approvals", "nothing goes without its authority: changed, expired, revoked, used up", ()),
        ("images", "the power goes at every boundary, and everything fails once", _IMAGES),
        ("simulate", "thousands of operations in virtual worlds, each with troubles of its own", _SIMULATE),
        ("exhaust", "one operation, and everything that can go wrong at any place", _EXHAUST),
        ("matrix", "45 fault points by six kinds of provider, and a crash at every place of every plan", _MATRIX),
        ("mutants", "each safety rule turned off once, and what notices", _MUTANTS),
        ("chaos", "real workers killed, stopped, interrupted, with wrong clocks and full disks", _CHAOS),
        ("contracts", "every contract of the catalogue against its provider's behaviour", _CONTRACTS),
        ("certify", "any worker command through three accidents: certify [OPTION ...] -- COMMAND ...", _CERTIFY),
        ("bench", "what a receipt costs on this machine", _BENCH),
    ):
        command = commands.add_parser(
            name, help=line, description=line, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )  # fmt: skip
        for option in options:
            option(command)
        _shared(command)
    for name in SERVERS:
        commands.add_parser(name, help=f"the laboratory's {name}, until it is ended ({name} --help)", add_help=False)
    ours, worker = parted(arguments)
    asked = parser.parse_args(ours)
    asked.worker = worker
    real = getattr(asked, "real", None)
    if (asked.command == "certify" and real is None) != bool(worker):
        raise RunFailed("certify takes the command to certify after a bare --, or --real, and nothing else takes one")
    if real is not None and asked.junit is not None:
        raise RunFailed("--junit is about somebody's command, and --real has none")
    if asked.command == "certify" and asked.life < asked.deadline:
        said = f"--life {asked.life:g} is shorter than --deadline {asked.deadline:g}"
        raise RunFailed(f"{said}: a worker that waits as long as it may could not end in time")
    if asked.command == "chaos":
        _stored_in(asked)
    if asked.command == "exhaust" and asked.path is not None and asked.kind == "all":
        raise RunFailed("--path is one kind's: name it with --kind")
    return asked


def meant(asked: argparse.Namespace) -> None:
    """Refuse options that nothing would come of: whoever gave them must not take the answer for theirs.

    Raises:
        RunFailed: there is one.
    """
    for command, only_tells, why, idle in (
        ("matrix", lambda: asked.list, "--list plays nothing", ("cell", "mutants", "sabotage", "keep")),
        ("mutants", lambda: asked.list, "--list tries nothing", ("only", "keep")),
        ("contracts", lambda: not asked.check, "without --check nothing is checked", ("sabotage", "keep")),
        ("simulate", lambda: asked.world is not None, "--world tells one world", ("operations", "keep")),
    ):
        given = [name for name in idle if asked.command == command and getattr(asked, name)]
        if given and only_tells():
            raise RunFailed(f"{why}: --{given[0]} would come to nothing")


def parted(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Part a command line from the command of somebody else's that it ends in: that one's options are its own."""
    at = arguments.index(WORKER) if WORKER in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


def _parser(prog: str, description: str) -> _Parser:
    return _Parser(
        prog=prog, description=description, epilog=EPILOG, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip


def _shared(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="write one JSON object to standard output, nothing else")
    command.add_argument("--keep", type=Path, metavar="DIR", help="leave the raw ground truth in a new folder")
    command.add_argument(
        "--sabotage", metavar="MUTANT", help="turn one safety rule off; exit code 1 says that it was noticed"
    )


def _operations(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--operations", metavar="N", type=count(1, OPERATIONS_MAX), default=OPERATIONS,
        help=f"operations under each contract (default {OPERATIONS})",
    )  # fmt: skip


def _kills(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--kills", metavar="N", type=count(1, KILLS_MAX), default=KILLS,
        help=f"kills under each contract (default {KILLS})",
    )  # fmt: skip


def _contract(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--contract", choices=(*CONTRACTS, "all"), default="all", help="one contract, or each in turn (default all)"
    )


def _seed(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--seed", metavar="N", type=count(0, SEED_MAX), default=1, help="draws what is left to chance (default 1)"
    )


def _images(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--images", metavar="N", type=count(1, IMAGES_MAX), default=IMAGES,
        help=f"crash images at least (default {IMAGES})",
    )  # fmt: skip


def _script(command: argparse.ArgumentParser) -> None:
    command.add_argument("--script", choices=(*SCRIPTS, "all"), default="all", help="one script, or each (default all)")


def _store(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--store", choices=("sqlite", "postgresql"), default="sqlite", help="which store (default sqlite)"
    )


def _rounds(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--rounds", metavar="N", type=count(1, ROUNDS_MAX), default=ROUNDS,
        help=f"interleaved rounds of each subject (default {ROUNDS})",
    )  # fmt: skip


def _peers(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--peers",
        action="store_true",
        help="also measure other libraries beside it, each installed once in .cache/peers",
    )


def _plots(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--plots", type=Path, metavar="DIR", help="with --peers: also draw one caller and many, as SVG"
    )


def _growth(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--growth", metavar="N", type=count(1, GROWTH_MAX),
        help="also measure a call, list, queue and verify in a store that holds N operations",
    )  # fmt: skip


def _simulated(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--operations", metavar="N", type=count(1, SIMULATED_MAX), default=None,
        help=f"operations at least (default {SIMULATED})",
    )  # fmt: skip
    command.add_argument("--world", metavar="N", type=count(0, SIMULATED_MAX), help="tell one world of that seed")
    command.add_argument(
        "--options", metavar="JSON", type=_options, help="tell the world that these options name, as a run printed them"
    )


def _exhausted(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--faults", metavar="N", type=count(0, FAULTS_MAX), default=FAULTS,
        help=f"how many may strike in one schedule (default {FAULTS})",
    )  # fmt: skip
    command.add_argument("--kind", choices=(*KINDS, "all"), default="all", help="one kind of provider (default all)")
    command.add_argument(
        "--most", metavar="N", type=count(1, SCHEDULES_MAX), default=None,
        help="schedules of one kind and first send at most (default: all there are)",
    )  # fmt: skip


def _options(text: str) -> str:
    """Options that name a world, as they are."""
    try:
        read_options(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _path(text: str) -> str:
    """The path of a schedule, as it is."""
    if not set(text) <= set(DIGITS):
        raise argparse.ArgumentTypeError(f"{text!r} is no path: a digit or a small letter for each choice")
    return text


def _scheduled(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--path", metavar="PATH", type=_path, help="tell the one schedule of --kind that a search printed"
    )
    command.add_argument(
        "--first-send", choices=BASES, default=BASES[0],
        help=f"what became of the first send in it (default {BASES[0]})",
    )  # fmt: skip


def _matrix(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--cell", metavar="CELL", action="append", default=[], help="only this one, e.g. 7-LS; may be repeated"
    )
    command.add_argument("--mutants", action="store_true", help="also play each cell without the rule it is about")
    command.add_argument("--list", action="store_true", help="say what the rows are, and play none")


def _mutants(command: argparse.ArgumentParser) -> None:
    command.add_argument("--tier", choices=TIERS, default=TIERS[0], help=f"how far to go (default {TIERS[0]})")
    command.add_argument("--only", metavar="MUTANT", action="append", default=[], help="this one; may be repeated")
    command.add_argument("--list", action="store_true", help="say what there is, and try none")


def _chaos_kills(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--kills", metavar="N", type=count(1, KILLS_MAX), default=CHAOS_KILLS,
        help=f"kills, with one trouble of each other kind for 20 (default {CHAOS_KILLS})",
    )  # fmt: skip


def _outages(command: argparse.ArgumentParser) -> None:
    for option, most, default, what in (
        ("--restarts", RESTARTS_MAX, RESTARTS, "how often the database is stopped at once and started again"),
        ("--commit-cuts", COMMIT_CUTS_MAX, COMMIT_CUTS, "commits whose answer is lost"),
    ):
        said = f"{what}; only with --store postgresql (default there {default})"
        command.add_argument(option, metavar="N", type=count(0, most), default=None, help=said)
    said = "reach the database through pgbouncer, which is killed before each restart; only with --store postgresql"
    command.add_argument("--pooler", action="store_true", help=said)


def _stored_in(asked: argparse.Namespace) -> None:
    """Refuse what only a database or only a file can suffer, and say what it suffers where nobody did."""
    if asked.store == "sqlite":
        if (asked.restarts, asked.commit_cuts) != (None, None) or asked.pooler:
            raise RunFailed("--restarts, --commit-cuts and --pooler are a database's: name it by --store postgresql")
        asked.restarts = asked.commit_cuts = 0
        return
    if asked.disk is not None:
        raise RunFailed("--disk fills the disk of a file of receipts; with --store postgresql there is none")
    asked.restarts = RESTARTS if asked.restarts is None else asked.restarts
    asked.commit_cuts = COMMIT_CUTS if asked.commit_cuts is None else asked.commit_cuts


def _disk(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--disk", choices=[full.value for full in Full], help="how it is full: a small tmpfs where one can be mounted "
        "(root), else a limit on one process's files (default: as well as this machine allows)",
    )  # fmt: skip


def _check(command: argparse.ArgumentParser) -> None:
    command.add_argument("--check", action="store_true", help="check them; without it they are only named")


def _one_contract(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--contract", action="append", default=[], metavar="ID",
        help="one of them; may be given again (default: each that has a behaviour)",
    )  # fmt: skip


def _junit(command: argparse.ArgumentParser) -> None:
    command.add_argument("--junit", type=Path, metavar="FILE", help="also write the cases as JUnit XML")


def _deadline(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--deadline", metavar="SECONDS", type=seconds(SECONDS_MIN, SECONDS_MAX), default=DEADLINE_SECONDS,
        help="told to the worker: nothing it waits for may take longer; case L waits past it "
        f"(default {DEADLINE_SECONDS:g})",
    )  # fmt: skip


def _life(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--life", metavar="SECONDS", type=seconds(SECONDS_MIN, SECONDS_MAX), default=LIFE_SECONDS,
        help=f"how long the worker may take from each start to its end (default {LIFE_SECONDS:g})",
    )  # fmt: skip


def _real(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--real", metavar="SERVERS", help="no command, but our own guarded worker against servers that nobody here "
        "wrote: some of moto,smtp,exim,postgres,git,radicale",
    )  # fmt: skip


_KILL_LOOP = (_operations, _kills, _contract, _seed)
_IMAGES = (_images, _script, _seed)
_CHAOS = (_store, _chaos_kills, _outages, _seed, _disk)
_CONTRACTS = (_check, _one_contract)
_CERTIFY = (_junit, _deadline, _life, _real)
_BENCH = (_store, _rounds, _peers, _growth, _plots)
_SIMULATE = (_simulated, _seed)
_EXHAUST = (_exhausted, _scheduled)
_MATRIX = (_matrix,)
_MUTANTS = (_mutants,)
