"""What the roles of a receipts database may do, as SQL for its owner: no worker can change what it has once written."""

from __future__ import annotations

import re

from counterfoil.domain.errors import BadValue

_ROLE = re.compile(r"[A-Za-z_][A-Za-z0-9_$-]{0,62}")

# An event is written and never changed; an operation, its projection, is: the chain finds out whoever edits that.
_APPLICATION = """
GRANT SELECT ON book, operation, event, body, worker, policy, refusal, clock TO {role};
GRANT INSERT ON operation, event, body, worker, policy, refusal TO {role};
GRANT UPDATE ON operation, worker, refusal, clock TO {role};
"""
_ERASER = """
GRANT UPDATE (body) ON event TO {role};
GRANT DELETE ON event, body TO {role};
"""


def grants(application: str, eraser: str) -> str:
    """The statements that give two roles what they need, and no more.

    Args:
        application: of every process that calls, works or decides.
        eraser: of `counterfoil retain` and `counterfoil erase`; it may do what the application may, too.

    Raises:
        BadValue: one of them is no name of a role.
    """
    for option, role in (("--application", application), ("--eraser", eraser)):
        if not _ROLE.fullmatch(role):
            raise BadValue(option, role, wanted="the name of a role: letters, digits and underscores")
    both = [_APPLICATION.format(role=f'"{role}"') for role in dict.fromkeys((application, eraser))]
    return "".join(both).lstrip() + _ERASER.format(role=f'"{eraser}"').lstrip()
