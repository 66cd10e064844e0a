"""Every fault the laboratory's provider can show, as a table from its name to what happens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from counterfoil.lab.faults import Rule, Vocabulary
from counterfoil.lab.ground_truth import CONTROL, Request, control
from counterfoil.lab.replies import Line, Reply, as_json, error, page
from counterfoil.lab.service import KINDS, Look, Service, listing

OTHER_ACCOUNT = "acct_other"
"""Who answers when a look was routed to the wrong account."""

EFFECTS_ROUTE = "effects"
"""The scope of looks by id and of lists, which belong to no kind."""

DELAY_SECONDS = 1.0
"""How long `slow` and `apply_late` wait when the rule does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """One write that met a fault."""

    service: Service
    line: Line
    request: Request
    rule: Rule

    def perform(self, *, delay: float = 0.0, copies: int = 1) -> Reply:
        """Let the effect happen and return the answer that somebody else may lose."""
        return self.service.perform(self.request, delay=delay, copies=copies)

    @property
    def delay(self) -> float:
        """How long the rule waits, in seconds."""
        return DELAY_SECONDS if self.rule.seconds is None else self.rule.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """One look that met a fault."""

    service: Service
    line: Line
    look: Look
    rule: Rule

    def known(self, account: str) -> list[dict[str, object]]:
        """Return the positive control, where it was asked for, and nothing else."""
        return [control(account)] if CONTROL in self.look.names else []


def _lose_reply(send: Send) -> None:
    send.perform()
    send.line.close()


def _hang(send: Send) -> None:
    send.perform()
    send.line.hold(send.rule.seconds)


def _lose_request(send: Send) -> None:
    send.line.close()


def _reset(send: Send) -> None:
    send.perform()
    send.line.reset()


def _cut_body(send: Send) -> None:
    send.line.send_part(send.perform(), send.rule.bytes)


def _slow(send: Send) -> None:
    send.line.send(send.perform(delay=send.delay))


def _apply_late(send: Send) -> None:
    send.service.perform_later(send.request, send.delay)
    send.line.close()


def _internal_duplicate(send: Send) -> None:
    send.line.send(send.perform(copies=2))


def _instead(reply: Reply) -> Callable[[Send], None]:
    """Perform, then answer something else."""

    def answer(send: Send) -> None:
        send.perform()
        send.line.send(reply)

    return answer


def _error_500_before(send: Send) -> None:
    send.line.send(error(500, "internal"))


def _accept_drop(send: Send) -> None:
    """Say that it was accepted, and never do it."""
    send.line.send(as_json(202, {"state": "accepted"}))


SENDS: Mapping[str, Callable[[Send], None]] = {
    "lose_reply": _lose_reply,
    "hang": _hang,
    "lose_request": _lose_request,
    "reset": _reset,
    "cut_body": _cut_body,
    "error_500": _instead(error(500, "internal")),
    "error_503_retry_after": _instead(error(503, "unavailable", {"Retry-After": "1"})),
    "error_500_before": _error_500_before,
    "html_200": _instead(page(200)),
    "accept_drop": _accept_drop,
    "slow": _slow,
    "apply_late": _apply_late,
    "internal_duplicate": _internal_duplicate,
}

LOOKS: Mapping[str, Callable[[Glance], None]] = {
    "look_500": lambda glance: glance.line.send(error(500, "internal")),
    "look_401": lambda glance: glance.line.send(error(401, "unauthorized")),
    "look_html": lambda glance: glance.line.send(page(200)),
    "look_empty": lambda glance: glance.line.send(listing(glance.look.account, [])),
    "look_truncated": lambda glance: glance.line.send(
        listing(glance.look.account, glance.known(glance.look.account), complete=False)
    ),
    "look_everything": lambda glance: glance.line.send(glance.service.lie(glance.look)),
    "wrong_account": lambda glance: glance.line.send(listing(OTHER_ACCOUNT, glance.known(OTHER_ACCOUNT))),
    "look_cut": lambda glance: glance.line.send_part(glance.service.look(glance.look), glance.rule.bytes),
    "look_lost": lambda glance: glance.line.close(),
    "look_hang": lambda glance: glance.line.hold(glance.rule.seconds),
}

VOCABULARY = Vocabulary(
    scope="route",
    scopes=KINDS | {EFFECTS_ROUTE},
    behaviours=dict.fromkeys(SENDS, "send") | dict.fromkeys(LOOKS, "look"),
)


def misbehave(met: Send | Glance) -> None:
    """Do what the rule says instead of the right thing."""
    match met:
        case Send():
            SENDS[met.rule.behaviour](met)
        case Glance():
            LOOKS[met.rule.behaviour](met)
