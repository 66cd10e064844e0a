"""One connection through the fault proxy: what was asked, what came back, and every way to spoil it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from counterfoil.lab.faults import Rule, Vocabulary
from counterfoil.lab.messages import HEAD_BYTES_MAX, Message, read_reply
from counterfoil.lab.replies import RESET_ON_CLOSE, Reply

DELAY_SECONDS = 1.0
"""How long a delay lasts when the rule does not say."""


@dataclass(slots=True)
class Passage:
    """A client on one side, the real server on the other, reached by a fresh connection for every request."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    target: tuple[str, int]
    open: bool = True
    """Whether another request may follow on the client's connection."""

    async def forward(self, request: Message) -> Message:
        """Give the whole request to the server and return its whole reply."""
        async with self._server() as (reader, writer):
            writer.write(request.raw)
            await writer.drain()
            return await read_reply(reader, request.start[0])

    async def forward_part(self, request: Message, sent: int) -> None:
        """Give the server the first bytes of a request, then leave both sides."""
        async with self._server() as (_, writer):
            writer.write(request.raw[:sent])
            await writer.drain()
        self.open = False

    async def answer(self, reply: Message, sent: int | None = None) -> None:
        """Give the client a reply, or its first bytes only and then the end of the connection."""
        self.writer.write(reply.raw[:sent])
        await self.writer.drain()
        self.open = self.open and not reply.last and sent is None

    async def hold(self, seconds: float | None) -> None:
        """Answer nothing until the client leaves or the time is over (None: until the process ends), then close."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while await self.reader.read(HEAD_BYTES_MAX):
                    pass
        self.open = False

    def reset(self) -> None:
        """Break the client's connection: it sees a reset, not an end."""
        raw: socket.socket = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self.writer.transport.abort()
        self.open = False

    def end(self) -> None:
        """Leave the client."""
        self.writer.close()

    @contextlib.asynccontextmanager
    async def _server(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection(*self.target, limit=HEAD_BYTES_MAX)
        try:
            yield reader, writer
        finally:
            writer.close()


async def relay(passage: Passage, request: Message) -> None:
    """Pass a request and its reply on, unspoilt."""
    await passage.answer(await passage.forward(request))


async def _lose_reply(passage: Passage, request: Message, _rule: Rule) -> None:
    await passage.forward(request)
    passage.open = False


async def _lose_request(passage: Passage, _request: Message, _rule: Rule) -> None:
    passage.open = False


async def _hang(passage: Passage, request: Message, rule: Rule) -> None:
    await passage.forward(request)
    await passage.hold(rule.seconds)


async def _reset(passage: Passage, request: Message, _rule: Rule) -> None:
    await passage.forward(request)
    passage.reset()


async def _cut_request(passage: Passage, request: Message, rule: Rule) -> None:
    await passage.forward_part(request, len(request.raw) // 2 if rule.bytes is None else rule.bytes)


async def _cut_reply(passage: Passage, request: Message, rule: Rule) -> None:
    reply = await passage.forward(request)
    await passage.answer(reply, len(reply.raw) // 2 if rule.bytes is None else rule.bytes)


async def _delay(passage: Passage, request: Message, rule: Rule) -> None:
    await asyncio.sleep(DELAY_SECONDS if rule.seconds is None else rule.seconds)
    await relay(passage, request)


async def _delay_reply(passage: Passage, request: Message, rule: Rule) -> None:
    reply = await passage.forward(request)
    await asyncio.sleep(DELAY_SECONDS if rule.seconds is None else rule.seconds)
    await passage.answer(reply)


async def _stall_reply(passage: Passage, request: Message, rule: Rule) -> None:
    reply = await passage.forward(request)
    half = len(reply.raw) // 2 if rule.bytes is None else rule.bytes
    passage.writer.write(reply.raw[:half])
    await passage.writer.drain()
    await asyncio.sleep(DELAY_SECONDS if rule.seconds is None else rule.seconds)
    passage.writer.write(reply.raw[half:])
    await passage.writer.drain()
    passage.open = passage.open and not reply.last


async def _unavailable(passage: Passage, _request: Message, _rule: Rule) -> None:
    await passage.answer(Message(head=Reply(status=HTTPStatus.SERVICE_UNAVAILABLE).encode()[0]))


async def _refuse(passage: Passage, _rule: Rule) -> None:
    passage.reset()


async def _half_open(passage: Passage, rule: Rule) -> None:
    await passage.hold(rule.seconds)


REQUESTS: Mapping[str, Callable[[Passage, Message, Rule], Awaitable[None]]] = {
    "lose_reply": _lose_reply,
    "lose_request": _lose_request,
    "hang": _hang,
    "reset": _reset,
    "cut_request": _cut_request,
    "cut_reply": _cut_reply,
    "delay": _delay,
    "delay_reply": _delay_reply,
    "stall_reply": _stall_reply,
    "unavailable": _unavailable,
}

CONNECTIONS: Mapping[str, Callable[[Passage, Rule], Awaitable[None]]] = {
    "refuse": _refuse,  # the kernel has accepted already: the client sees a reset before it can read anything
    "half_open": _half_open,
}

LOSING = frozenset({"lose_reply", "lose_request", "hang", "reset", "cut_request", "cut_reply"})
"""Behaviours after which the client does not hold the whole reply."""

VOCABULARY = Vocabulary(
    scope="method",
    unscoped=frozenset({"connection"}),
    behaviours=dict.fromkeys(REQUESTS, "request") | dict.fromkeys(CONNECTIONS, "connection"),
)
