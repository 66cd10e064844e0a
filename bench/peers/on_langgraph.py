"""LangGraph as its documentation has it: one node, a thread for each order, `SqliteSaver`, durability "sync".

``python on_langgraph.py sqlite FOLDER``.
"""

from __future__ import annotations

import sqlite3
import sys
from typing import Any, TypedDict

import driven
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph


class Order(TypedDict, total=False):
    """What goes through the graph."""

    order_id: str
    amount: int
    currency: str
    memo: str
    result: dict[str, str]


def main() -> None:
    """Serve."""
    answers = driven.own_output()
    builder = StateGraph(Order)
    builder.add_node("refund", lambda _: {"result": driven.RESULT})
    builder.add_edge(START, "refund")
    builder.add_edge("refund", END)
    saver = SqliteSaver(sqlite3.connect(f"{sys.argv[2]}/langgraph.db", check_same_thread=False))
    graph = builder.compile(checkpointer=saver)

    def call(key: str) -> Any:  # noqa: ANN401
        order = {"order_id": key, "amount": driven.AMOUNT, "currency": driven.CURRENCY, "memo": driven.MEMO}
        return graph.invoke(order, {"configurable": {"thread_id": key}}, durability="sync")

    driven.serve("langgraph", answers, call=call)


main()
