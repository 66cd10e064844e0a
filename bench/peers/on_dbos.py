"""DBOS as its documentation has it: a workflow under an id of the caller's, with the send as its one step.

``python on_dbos.py postgresql URL``, ``python on_dbos.py sqlite FOLDER``.
"""

from __future__ import annotations

import sys
from typing import Any

import driven
from dbos import DBOS, DBOSConfig, SetWorkflowID


def launch(store: str, address: str) -> None:
    """With its own defaults: a pool of up to twenty connections on PostgreSQL, SQLite's rollback journal in a file."""
    url = f"sqlite:///{address}/dbos.db" if store == "sqlite" else address
    DBOS(config=DBOSConfig(name="counterfoil-bench", system_database_url=url, log_level="ERROR"))


@DBOS.step()
def send(order_id: str, amount: int, currency: str, memo: str) -> dict[str, str]:  # noqa: ARG001
    """What the workflow is there for."""
    return driven.RESULT


@DBOS.workflow()
def refund(order_id: str, amount: int, currency: str, memo: str) -> dict[str, str]:
    """One blocking call."""
    return send(order_id, amount, currency, memo)


@DBOS.step()
async def asend(order_id: str, amount: int, currency: str, memo: str) -> dict[str, str]:  # noqa: ARG001
    """The same, awaited."""
    return driven.RESULT


@DBOS.workflow()
async def arefund(order_id: str, amount: int, currency: str, memo: str) -> dict[str, str]:
    """The same, awaited."""
    return await asend(order_id, amount, currency, memo)


def call(key: str) -> Any:  # noqa: ANN401
    """Run one workflow under its own id."""
    with SetWorkflowID(key):
        return refund(key, driven.AMOUNT, driven.CURRENCY, driven.MEMO)


async def acall(key: str) -> Any:  # noqa: ANN401
    """The same, awaited."""
    with SetWorkflowID(key):
        return await arefund(key, driven.AMOUNT, driven.CURRENCY, driven.MEMO)


def main() -> None:
    """Serve."""
    answers = driven.own_output()
    launch(*sys.argv[1:3])
    DBOS.launch()
    driven.serve("dbos", answers, call=call, acall=acall)
    DBOS.destroy()


main()
