"""Every situation that must come up somewhere in a long run: a simulation that no longer meets them has rotted."""

from __future__ import annotations

from counterfoil.lab.world.provider import BEYOND, KINDS, LOOKS, SENDS

LOOKED_AT = ("key", "natural", "lookup", "eventual")
KEPT = ("key", "natural")
_SENT = tuple(f"{kind}: send: {fate}" for kind in KINDS for fate in SENDS if fate not in BEYOND)
_LOOKED = tuple(f"{kind}: look: {fate}" for kind in LOOKED_AT for fate in LOOKS if fate not in BEYOND)
_COMMANDS = ("Claim", "Settle", "Amend", "Propose")
_EFFECTS = (*_COMMANDS, "Form", "Send", "Look", "Hand")
_ENDED = tuple(
    f"{what}: {when} {effect}" for what in ("killed", "stopped", "interrupted") for when in ("before", "after")
    for effect in _EFFECTS
)  # fmt: skip
_SETTLED = (
    *(f"{kind}: settled by succeeded:answer" for kind in KINDS),
    *(f"{kind}: settled by succeeded:look" for kind in LOOKED_AT),
    *(f"{kind}: settled by absent:look" for kind in ("key", "natural", "lookup")),
    *(f"{kind}: settled by rejected:answer" for kind in KINDS),
    *(f"{kind}: settled by rejected:operator" for kind in KINDS),
    *(f"{kind}: settled by succeeded:operator" for kind in KINDS),
    *(f"{kind}: with a person" for kind in KINDS),
    *(f"{kind}: sent again by same_key_replay" for kind in KEPT),
    *(f"{kind}: sent again by not_sent" for kind in KINDS),
    *(f"{kind}: sent again by operator_override" for kind in KINDS if kind != "one_shot"),
    *(f"{kind}: contradicted" for kind in LOOKED_AT),
)
_TOLD = (
    "a caller was told new, succeeded", "a caller was told new, unknown", "a caller was told new, rejected",
    "a caller was told existing, succeeded", "a caller was told unresolved, unknown",
    "a caller was told held, unobserved", "a caller was told KeyConflict", "a caller was told StoreBusy",
)  # fmt: skip
_OTHER = (
    *(f"the acknowledgement of {command} was lost" for command in _COMMANDS),
    *(f"people: {verb}" for verb in (
        "approve", "deny", "revoke", "override", "release", "abandon", "assign", "wait_until", "investigate", "resolve",
        "reconcile", "attempt", "replay",
    )),
    "killed: mid_socket", "stopped: mid_socket", "a clock was stepped back", "a clock was stepped forward",
    "a row number was taken", "a message was delivered again", "a late answer was recorded",
    "a repeat was answered from the key", "an operation ended held by another", "an operation was abandoned",
    "a question expired", "the store went down", "every host slept for a night", "an answer was spooled",
)  # fmt: skip
SITUATIONS = (*_SENT, *_LOOKED, *_ENDED, *_SETTLED, *_TOLD, *_OTHER)
"""What must come up, by name."""
