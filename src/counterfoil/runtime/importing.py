"""Whether a module of actions is being imported: a command that only names its ledger must not send what stands there.

Threads that the module itself starts are not known by it.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
from collections.abc import Iterator

from counterfoil.domain.errors import ActionsInvalid

importing_spec: contextvars.ContextVar[str] = contextvars.ContextVar("importing", default="")
"""The `MODULE:LEDGER` that is being imported, or empty."""


@contextlib.contextmanager
def importing(spec: str) -> Iterator[None]:
    """Keep calls from being sent in this block, and what it prints off standard output.

    Args:
        spec: the `MODULE:LEDGER` that is imported.
    """
    token = importing_spec.set(spec)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        importing_spec.reset(token)


def refuse_while_importing() -> None:
    """Refuse a call that is made while its module is imported for a command.

    Raises:
        ActionsInvalid: the module calls an action at its top; nothing was sent.
    """
    spec = importing_spec.get()
    if spec:
        raise ActionsInvalid(
            spec,
            "calls an action while it is imported, and nothing was sent for it; a call belongs under "
            'if __name__ == "__main__", or into another module than the actions',
        )
