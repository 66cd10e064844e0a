"""Mutants of the wire: what is repeated below the plan, and what an error says aloud."""

from __future__ import annotations

from typing import Any


def retry_on_timeout() -> None:
    """Send again when an attempt's answer is silence, as retry layers do."""
    from counterfoil.domain.answer import Answer, Silent
    from counterfoil.plans.effects import Send
    from counterfoil.runtime.executor import Executor

    blocking, awaited = Executor._send, Executor._asend  # noqa: SLF001 - a mutant replaces what nobody may call

    def is_silence(answer: Answer) -> bool:
        return isinstance(answer, Silent) and answer.may_have_left

    def send(self: Executor, effect: Send) -> Answer:
        answer = blocking(self, effect)
        return blocking(self, effect) if is_silence(answer) else answer

    async def asend(self: Executor, effect: Send) -> Answer:
        answer = await awaited(self, effect)
        # Where a thread sends for the event loop, that thread has come through `send` already.
        again = is_silence(answer) and self.registered(effect.action.name).awaited
        return await awaited(self, effect) if again else answer

    changed: Any = Executor
    changed._send, changed._asend = send, asend  # noqa: SLF001 - likewise


def transport_retries() -> None:
    """Send once more from below the adapter when the connection falls silent, as clients with a retry do."""
    from counterfoil.domain.answer import Silent
    from counterfoil.providers import wire

    exchange = wire.exchange
    changed: Any = wire

    def exchanged(request: Any, **given: Any) -> Any:
        answer = exchange(request, **given)
        again = isinstance(answer, Silent) and answer.may_have_left and request.method != "GET"
        return exchange(request, **given | {"flight": wire.Flight()}) if again else answer

    changed.exchange = exchanged


def secret_in_error() -> None:
    """Say in an error what was sent, credential and all."""
    import msgspec

    from counterfoil.domain.answer import Silent
    from counterfoil.providers import wire

    exchange = wire.exchange
    changed: Any = wire

    def exchanged(request: Any, **given: Any) -> Any:
        answer = exchange(request, **given)
        if isinstance(answer, Silent):
            return msgspec.structs.replace(answer, reason=f"{answer.reason}: {dict(request.headers)}")
        return answer

    changed.exchange = exchanged
