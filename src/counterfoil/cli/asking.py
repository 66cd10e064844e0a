"""What people are asked, as it is shown to whoever approves: all that an approval binds, and what lies beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.text import Text

from counterfoil.cli import leaf
from counterfoil.cli.exact import flagged, laid_out
from counterfoil.cli.marks import AMBER, QUIET, STRONG, duration, figure, moment, word
from counterfoil.cli.terminal import clipped
from counterfoil.domain.approval import Authority, Proposed, binding
from counterfoil.domain.compensation import compensates
from counterfoil.domain.event import History
from counterfoil.domain.lifecycle import permission_now
from counterfoil.domain.payload import frozen_payload
from counterfoil.domain.terms import Required
from counterfoil.domain.words import Permission

WIDTH_MAX = 120
NONE = "none"
GONE = "the payload was erased: nobody can see any more what would be sent"


def page(
    history: History, standing: Authority, *, now: float, holders: Sequence[str] = ()
) -> RenderableType:  # fmt: skip
    """Draw the question whole; nothing of it is cut.

    Args:
        history: the operation with its events.
        standing: who has allowed it what; somebody is asked.
        now: seconds since the epoch, by the store's clock.
        holders: the other operations of its effect that are unresolved.
    """
    proposed = standing.proposed
    assert proposed is not None  # noqa: S101 - its caller has looked
    operation = history.operation
    head = Text.assemble((operation.id, STRONG), "  ", word(permission_now(operation, now)))
    parts: list[RenderableType] = [
        head,
        leaf.facts(_what(history, proposed, holders)),
        Text(""),
        Text("Payload, as it is frozen and would be sent", style=STRONG),
        *_payload(history),
        Text(""),
        Text("Who is asked", style=STRONG),
        leaf.facts(_whom(proposed, standing, now)),
        Text(""),
        Text("Bound to; show --json has every digest in full", style=STRONG),
        leaf.facts(_bound(proposed)),
        Text(""),
        Text("Beside it", style=STRONG),
        leaf.facts(_beside(history, proposed)),
        Text(""),
    ]
    return Constrain(Group(*parts), WIDTH_MAX)


def _what(history: History, proposed: Proposed, holders: Sequence[str]) -> Iterator[leaf.Fact]:
    bound, operation = proposed.bound, history.operation
    yield "action", flagged(bound.action)
    yield "account", flagged(bound.account)
    yield "destination", _or_none(bound.destination)
    yield "asked by", flagged(bound.actor)
    yield "tenant", flagged(bound.tenant)
    yield "key", flagged(operation.key)
    yield "value at risk", figure(operation.value)
    for holder in holders:
        # It may be this very effect: whoever approves should know that it may have happened.
        yield "held by", Text(f"{holder}: the same effect, unresolved; an approval lifts no hold", style=AMBER)


def _payload(history: History) -> Iterator[RenderableType]:
    frozen = frozen_payload(history)
    if frozen is None:
        yield Text(GONE, style=AMBER)
        return
    yield from (flagged(line) for line in laid_out(frozen.decode("utf-8", "backslashreplace")))


def _whom(proposed: Proposed, standing: Authority, now: float) -> Iterator[leaf.Fact]:
    required = proposed.required
    yield "rule", flagged(proposed.rule) if proposed.rule else NONE
    yield "people", flagged(whom(required))
    yield "approved by", flagged(", ".join(standing.approved_by)) if standing.approved_by else "nobody yet"
    yield _end(standing), ends(standing, now)
    times = f"{required.uses} {'attempt' if required.uses == 1 else 'attempts'}"
    yield "allows", f"{times} that may leave: {', '.join(required.attempts)}"
    if proposed.because:
        yield "asked anew", flagged("; ".join(proposed.because))


def whom(required: Required) -> str:
    """How many people, and of whom."""
    if required.approvers:
        return f"{required.people} of {', '.join(required.approvers)}"
    return f"{required.people} {'person' if required.people == 1 else 'people'}, anybody but whoever asked"


def _end(standing: Authority) -> str:
    return "approval ends" if standing.approval else "question ends"


def ends(standing: Authority, now: float) -> str:
    """When the question, or the approval, comes to an end."""
    left = standing.ends_at - now
    return f"{moment(standing.ends_at)} UTC, {f'in {duration(left)}' if left > 0 else f'{duration(-left)} ago'}"


def _bound(proposed: Proposed) -> Iterator[leaf.Fact]:
    bound = proposed.bound
    yield "binding", binding(proposed)  # whole: it is what `--bound` takes
    yield "fingerprint", leaf.short(bound.fingerprint)
    yield "payload", leaf.short(bound.payload_digest)
    yield "wire", _or_none(leaf.short(bound.wire))
    named = f" ({proposed.contract_id})" if proposed.contract_id else ""
    yield "contract", flagged(leaf.short(bound.contract) + named)
    yield "policy", leaf.short(bound.policy)
    yield "action code", _or_none(leaf.short(bound.code))
    yield "provider key", flagged(proposed.provider_key)


def _beside(history: History, proposed: Proposed) -> Iterator[leaf.Fact]:
    """What it undoes, what the fingerprint leaves out, and what the receipt would rest on."""
    if undone := compensates(history):
        yield "compensates", flagged(undone)
    if not proposed.immaterial:
        yield "left out", "nothing: every field of the payload is part of the fingerprint"
    for pointer, why in proposed.immaterial.items():
        yield "left out", flagged(f"{pointer}: {why}")
    for name, assumed in proposed.assumptions.items():
        yield "rests on", flagged(f"{name}: {_plain(assumed)}")
    if proposed.mentioned:
        yield "mentioned", flagged(_plain(proposed.mentioned))


def _or_none(text: str) -> RenderableType:
    return flagged(text) if text else Text(NONE, style=QUIET)


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


# -- on the receipt ----------------------------------------------------------------------------------------------------


def on_receipt(standing: Authority, permission: Permission, *, now: float) -> Iterator[leaf.Fact]:
    """Who was asked, who has answered, and until when, in a few lines.

    Args:
        standing: who has allowed it what.
        permission: as it reads now.
        now: seconds since the epoch.
    """
    proposed = standing.proposed
    if proposed is None:
        return
    required = proposed.required
    yield "approval of", clipped(f"{whom(required)}; rule {proposed.rule!r}", leaf.TEXT_COLUMNS)
    by = ", ".join(standing.approved_by)
    count = f", {len(standing.approved_by)} of {required.people}" if required.people > 1 else ""
    yield "approved by", clipped(by, leaf.TEXT_COLUMNS) + count if by else "nobody"
    if permission in (Permission.PENDING, Permission.AUTHORIZED, Permission.EXPIRED):
        yield _end(standing), ends(standing, now)
    if standing.approval:
        yield "used", f"{standing.uses} of {required.uses}"
    if proposed.because:
        yield "asked anew", clipped("; ".join(proposed.because), leaf.TEXT_COLUMNS)
    yield "binding", binding(proposed)
