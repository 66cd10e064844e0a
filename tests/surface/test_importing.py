"""While a module of actions is imported for a command, a call in it is refused."""

from __future__ import annotations

import sys

import pytest

from counterfoil.domain.errors import ActionsInvalid
from counterfoil.runtime.importing import importing, refuse_while_importing


def test_a_call_is_refused_only_while_its_module_is_imported(capsys):
    """Inside the block a call raises with what to do, whatever happens in it; outside it is allowed."""
    refuse_while_importing()
    with importing("shop:ledger"):
        sys.stdout.write("a greeting\n")
        with pytest.raises(ActionsInvalid, match=r'^shop:ledger: calls an action .* if __name__ == "__main__"'):
            refuse_while_importing()
    refuse_while_importing()
    with pytest.raises(ZeroDivisionError), importing("shop:ledger"):
        raise ZeroDivisionError
    refuse_while_importing()
    assert capsys.readouterr() == ("", "a greeting\n")
