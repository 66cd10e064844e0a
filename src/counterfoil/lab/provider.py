"""The laboratory's provider as a process: real sockets, and the truth in a folder of its own.

``python -m counterfoil.lab.provider --folder DIR --port 0`` prints one line, ``ready PORT``, and serves until SIGTERM,
Ctrl+C or, with ``--parent-pipe``, until its standard input ends.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from counterfoil.lab import faults
from counterfoil.lab.front import Front, ProviderServer
from counterfoil.lab.ground_truth import GroundTruth
from counterfoil.lab.journal import JournalTaken
from counterfoil.lab.misbehaviour import VOCABULARY
from counterfoil.lab.service import Service
from counterfoil.lab.tether import stop_event

TOKEN, ACCOUNT = "lab-secret", "acct_lab"
"""Who may ask when no `--token` is given."""

EXIT_CANNOT_START = 2

_POLL_SECONDS = 0.05  # how long an ending process may wait for its accept loop


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to end; the exit code is 0 after an ordinary end and 2 when serving could not begin."""
    asked = _parser().parse_args(arguments)
    try:
        plan = faults.from_arguments(VOCABULARY, asked)
        truth = GroundTruth(asked.folder, index_lag=asked.index_lag)
        service = Service(truth, key_retention=asked.key_retention)
        front = Front(truth=truth, service=service, plan=plan, tokens=_tokens(asked.token))
        server = ProviderServer(asked.port, front)
    except (OSError, ValueError, JournalTaken) as reason:
        print(f"the provider cannot start: {reason}", file=sys.stderr)
        return EXIT_CANNOT_START
    stop = stop_event(parent_pipe=asked.parent_pipe)
    threading.Thread(target=server.serve_forever, args=[_POLL_SECONDS], daemon=True).start()
    print(f"ready {server.port}", flush=True)
    stop.wait()
    server.shutdown()
    server.server_close()
    return 0


def _tokens(pairs: Sequence[str]) -> dict[str, str]:
    tokens = dict(pair.partition("=")[::2] for pair in pairs)
    if not all(token and account for token, account in tokens.items()):
        raise ValueError("--token takes TOKEN=ACCOUNT")
    return tokens or {TOKEN: ACCOUNT}


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= faults.SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"must be from 0 to {faults.SECONDS_MAX:g} seconds")
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="counterfoil.lab.provider", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="where effects.jsonl and wire.jsonl stand")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--token", action="append", default=[], metavar="TOKEN=ACCOUNT", help="who may ask")
    parser.add_argument("--key-retention", type=_seconds, metavar="SECONDS", help="how long a key is remembered")
    parser.add_argument("--index-lag", type=_seconds, default=0.0, metavar="SECONDS", help="how late looks find things")
    parser.add_argument("--parent-pipe", action="store_true", help="end when standard input ends")
    faults.add_arguments(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
