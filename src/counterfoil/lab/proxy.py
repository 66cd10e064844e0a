"""A TCP proxy that loses, cuts, delays and refuses what passes between a client and any HTTP/1.1 server.

``python -m counterfoil.lab.proxy --target HOST:PORT --port 0`` prints one line, ``ready PORT``, and serves until
SIGTERM, Ctrl+C or, with ``--parent-pipe``, until its standard input ends. Rules are those of `counterfoil.lab.faults`
with the scope ``method``; requests are counted over all connections, because a careful client opens a fresh one for
every write::

    --rule '{"method": "PUT", "every": 3, "behaviour": "lose_reply"}'

With ``--folder`` every request is written to ``wire.jsonl`` there before it is forwarded.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from counterfoil.lab import faults
from counterfoil.lab.ground_truth import WIRE
from counterfoil.lab.journal import Journal, JournalTaken
from counterfoil.lab.messages import HEAD_BYTES_MAX, Unreadable, read_request, start_of
from counterfoil.lab.passage import CONNECTIONS, LOSING, REQUESTS, VOCABULARY, Passage, relay
from counterfoil.lab.tether import on_parent_gone

LOOPBACK = "127.0.0.1"

LOOKS = frozenset({"GET", "HEAD", "OPTIONS", "PROPFIND", "REPORT"})
"""Methods that change nothing (RFC 9110 section 9.2.1, RFC 4918 section 9.1, RFC 3253 section 3.6)."""

EXIT_CANNOT_START = 2

_WORDS_IN_REQUEST_LINE = 3


class Proxy:
    """Every connection through the proxy, and the record of what passed.

    Args:
        target: host and port of the real server.
        plan: what goes wrong, and when.
        wire: where each request is written before it is forwarded; None keeps no record.
    """

    def __init__(self, target: tuple[str, int], plan: faults.FaultPlan, wire: Journal | None) -> None:
        self._target = target
        self._plan = plan
        self._wire = wire
        self._tasks: set[asyncio.Task[None]] = set()

    def accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection in a task of its own."""
        task = asyncio.get_running_loop().create_task(self._serve(Passage(reader, writer, self._target)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, passage: Passage) -> None:
        try:
            rule = self._plan.choose("connection", faults.ANY)
            if rule is not None:
                await CONNECTIONS[rule.behaviour](passage, rule)
            while passage.open:
                await self._turn(passage)
        except Unreadable as cut:
            if cut.head:
                self._record(cut.head, b"", None, whole=False)
        except OSError:
            pass  # one side left or the server is not there: the other side sees its connection end
        finally:
            passage.end()

    async def _turn(self, passage: Passage) -> None:
        request = await read_request(passage.reader)
        if request is None:
            passage.open = False
            return
        rule = self._plan.choose("request", request.start[0])
        self._record(request.head, request.body, rule, whole=True)
        if rule is None:
            await relay(passage, request)
        else:
            await REQUESTS[rule.behaviour](passage, request, rule)
        passage.open = passage.open and not request.last

    def _record(self, head: bytes, body: bytes, rule: faults.Rule | None, *, whole: bool) -> None:
        words = start_of(head)
        if self._wire is None or len(words) != _WORDS_IN_REQUEST_LINE:
            return
        behaviour = rule.behaviour if rule else None
        self._wire.append(
            {
                "at": time.time(),
                "act": "look" if words[0] in LOOKS else "send",
                "method": words[0],
                "path": words[1],
                "payload_sha256": hashlib.sha256(body).hexdigest(),
                "whole": whole,
                "behaviour": behaviour,
                "lost": behaviour in LOSING or not whole,
            }
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to end; the exit code is 0 after an ordinary end and 2 when serving could not begin."""
    asked = _parser().parse_args(arguments)
    try:
        plan = faults.from_arguments(VOCABULARY, asked)
        wire = Journal(asked.folder / WIRE) if asked.folder else None
        asyncio.run(_serve(asked, Proxy(asked.target, plan, wire)))
    except (OSError, ValueError, JournalTaken) as reason:
        print(f"the proxy cannot start: {reason}", file=sys.stderr)
        return EXIT_CANNOT_START
    return 0


async def _serve(asked: argparse.Namespace, proxy: Proxy) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = await asyncio.start_server(proxy.accepted, LOOPBACK, asked.port, limit=HEAD_BYTES_MAX)
    if asked.parent_pipe:
        on_parent_gone(lambda: loop.call_soon_threadsafe(stop.set))
    print(f"ready {server.sockets[0].getsockname()[1]}", flush=True)
    await stop.wait()
    server.close()  # not waited for: the connections left are cancelled with the loop, they may hang on purpose


def _target(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise argparse.ArgumentTypeError("must be HOST:PORT")
    return host, int(port)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="counterfoil.lab.proxy", description=__doc__)
    parser.add_argument("--target", type=_target, required=True, metavar="HOST:PORT", help="the real server")
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--folder", type=Path, help="where wire.jsonl stands; none keeps no record")
    parser.add_argument("--parent-pipe", action="store_true", help="end when standard input ends")
    faults.add_arguments(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
