"""The table of verbs and the options they share; a verb's module is imported only when the verb is chosen.

A verb's module has `add(parser)`, which declares its arguments, and `run(asked)`, which does it and returns the exit
code.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from counterfoil.cli import exits

VERBS = (
    ("run", "send a file of intents, each at most once, and settle what is unknown"),
    ("worker", "recover, look and follow, until told to stop"),
    ("attempt", "dispatch one operation again, on a basis that is on record, or fence it off"),
    ("list", "list operations"),
    ("queue", "list what waits for somebody: why, what is next, whose it is and when it is passed up"),
    ("show", "draw one operation: permission, dispatch, outcome and evidence"),
    ("explain", "replay one receipt event by event, with the rule that allowed each"),
    ("reconcile", "look now at what is unresolved"),
    ("resolve", "record what a person found out about one operation"),
    ("evidence", "hand in a late answer, a webhook or a statement file"),
    ("approve", "show exactly what is asked, and allow it; nothing is sent by it"),
    ("deny", "answer no, for good"),
    ("revoke", "take permission back"),
    ("override", "decide that one more attempt may go although nothing proves it safe"),
    ("release", "lift a hold, so that its caller may ask again"),
    ("abandon", "stop working on one unresolved operation; its outcome stays"),
    ("wait", "put the next step of one operation off"),
    ("investigate", "record by which other way one operation is looked into"),
    ("assign", "name who acts on one operation"),
    ("escalate", "pass one operation up to somebody"),
    ("policy", "check, adopt and show whose approval is needed"),
    ("contracts", "name what is known of providers, show one, begin one, and say what is wrong with one"),
    ("retain", "remove and erase what the policy in force keeps no longer"),
    ("erase", "null the payload and the results of one resolved operation, for good"),
    ("brief", "say what must not be repeated, for a model's prompt"),
    ("verify", "check every receipt's chain and projection"),
    ("audit", "take a random sample of receipts and say whether each can be reconstructed"),
    ("export", "write one operation as a JSON document"),
    ("store", "check a store, prepare a database, and move a file into one"),
)
"""Every verb with its one line; its module is `counterfoil.cli.VERB`."""

STORE, ACTIONS = "COUNTERFOIL_STORE", "COUNTERFOIL_ACTIONS"
"""Environment variables that stand for `--store` and `--actions`."""

DESCRIPTION = "A receipt before anything leaves, one send, and UNKNOWN said aloud until evidence settles it."


class _Refused(Exception):
    """The command line cannot be read."""

    def __init__(self, usage: str, message: str) -> None:
        super().__init__(message)
        self.usage = usage


class _Parser(argparse.ArgumentParser):
    """An argument parser that raises instead of leaving, so that `--json` holds for a bad command line too."""

    def error(self, message: str) -> NoReturn:
        raise _Refused(self.format_usage(), message)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a narrow locale must not turn a receipt into a traceback
    try:
        asked = _parse(given)
    except _Refused as refused:
        if not as_json:
            print(refused.usage if given else _help(), end="", file=sys.stderr)
        return exits.say(exits.BAD_CALL_CODE, str(refused), as_json=as_json, exit_code=exits.BAD_CALL)
    except SystemExit as left:  # --help and --version have said everything
        return int(left.code or 0)
    return _carry_out(asked)


def _help() -> str:
    """What there is, for whoever says nothing yet."""
    import contextlib
    import io

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        _parse(["--help"])
    return said.getvalue()


def _carry_out(asked: argparse.Namespace) -> int:
    import warnings

    from counterfoil.domain.errors import CounterfoilError

    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            return int(asked.verb(asked))
    except CounterfoilError as error:
        return exits.refuse(error, as_json=asked.json)
    except exits.Terminated:
        return exits.TERMINATED
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:
        return _pipe_closed()
    except Exception as error:  # noqa: BLE001 - a defect: shown with its place and without its text, which may quote a secret
        return exits.defect(error)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as one line: where in the code it was raised is no help to whoever reads it here."""
    from counterfoil.cli.terminal import note

    note(f"counterfoil: warning: {message}")


def _pipe_closed() -> int:
    """The reader went away: what is still buffered must not complain at the end of the process."""
    import os

    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    return exits.PIPE_CLOSED


def _parse(given: list[str]) -> argparse.Namespace:
    parser = _Parser(
        prog="counterfoil",
        description=DESCRIPTION,
        epilog=exits.epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="say which version this is")
    verbs = parser.add_subparsers(metavar="VERB", required=True, parser_class=_Parser, title="verbs")
    chosen = next((word for word in given if not word.startswith("-")), "")
    for name, line in VERBS:
        verb = verbs.add_parser(
            name, help=line, description=line[:1].upper() + line[1:] + ".", epilog=exits.epilog(),
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
        )  # fmt: skip
        if name == chosen:
            import importlib

            module = importlib.import_module(f"counterfoil.cli.{name}")
            module.add(verb)
            verb.add_argument("--json", action="store_true", help="write JSON to standard output, and nothing else")
            verb.set_defaults(verb=module.run)
    return parser.parse_args(given)


class _Version(argparse.Action):
    """`--version`, without reading the package's metadata before somebody asks."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"counterfoil {version('counterfoil')}")
        parser.exit()


# -- options that verbs share ------------------------------------------------------------------------------------------


def operation_argument(parser: argparse.ArgumentParser) -> None:
    """Declare which operation a verb is about."""
    parser.add_argument("operation", metavar="ID", help="its id, op_..., or the beginning of it that fits no other")


def act(
    acts: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    line: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """Declare one act of a verb that has several, with what the acts of all of them share.

    Args:
        acts: of the verb.
        name: what is typed.
        line: what it does, in one line.
        run: carries it out and returns the exit code; it stands in `asked.act`.
    """
    made = acts.add_parser(
        name, help=line, description=line[:1].upper() + line[1:] + ".", epilog=exits.epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False,
    )  # fmt: skip
    # Suppressed where it is not said: the verb's own `--json` before it must not be taken back.
    made.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS,
        help="write JSON to standard output, and nothing else",
    )  # fmt: skip
    made.set_defaults(act=run)
    return made


def store_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--store`."""
    parser.add_argument(
        "--store",
        metavar="PATH|URL",
        help=f"the receipts file or database (default: ${STORE}, the actions file's `store`, or ./receipts.db)",
    )


def actions_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--actions`."""
    parser.add_argument(
        "--actions",
        metavar="FILE.yaml|MODULE:LEDGER",
        help=f"what may be sent and looked at, and how (default: ${ACTIONS})",
    )


def decision_options(parser: argparse.ArgumentParser) -> None:
    """Declare `--as` and `--reason`: who decides, where nobody can be asked."""
    parser.add_argument("--as", dest="decider", metavar="NAME", help="who decides; without it a terminal asks")
    parser.add_argument("--reason", metavar="TEXT", help="why, in their words; it goes on the record")


def seconds(least: float, most: float) -> Callable[[str], float]:
    """A reader of durations in seconds, within bounds.

    Args:
        least: the smallest that makes sense; itself allowed.
        most: the largest; itself allowed.
    """

    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = float("nan")
        if not least <= found <= most:  # written so that NaN fails it too
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of seconds from {least:g} to {most:g}")
        return found

    return read


def count(least: int, most: int) -> Callable[[str], int]:
    """A reader of whole numbers, within bounds; both bounds are allowed."""

    def read(text: str) -> int:
        plain = text.isascii() and text.isdigit() and len(text) <= len(str(most))
        if not plain or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from {least} to {most}")
        return int(text)

    return read


def moment(text: str) -> float:
    """A reader of times, in seconds since the epoch; UTC where the text does not say."""
    from datetime import UTC, datetime

    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no time such as 2027-03-01T09:00Z") from None
