"""What a model is told when its call gets no receipt: fixed words, never an error's own text."""

from __future__ import annotations

import asyncio
import json

import pytest

import counterfoil
from counterfoil.domain.errors import NotRecorded, StoreBusy
from counterfoil.runtime.receipt import refused_for_model

SECRET_LIKE = "customer 4111-1111"


@pytest.fixture
def ledger(tmp_path):
    with counterfoil.open(tmp_path / "receipts.db") as opened:
        yield opened


def test_r78_a_tool_answers_refusals_with_fixed_words(ledger):
    """A changed argument, a check's refusal and a wrong call reach the model as a code, without their text."""

    @ledger.action(
        owner="a",
        authoriser="b",
        key=lambda order, amount: order,
        check=lambda order, amount: SECRET_LIKE if amount > 9 else None,
    )
    def pay(order: str, amount: int) -> str:
        return "paid"

    tool = pay.as_tool()
    assert tool(order="o-1", amount=1)["outcome"] == "succeeded"
    refusals = [tool(order="o-1", amount=2), tool(order="o-2", amount=10), tool(order="o-3"), tool(order={1}, amount=1)]
    assert [r["error"] for r in refusals] == ["CF-102", "CF-105", "CF-109", "CF-103"]
    assert [r.get("retry") for r in refusals] == ["blocked", "blocked", None, None]
    assert [r["permitted"][0] for r in refusals] == ["ask_operator", "ask_operator", *["correct_arguments"] * 2]
    assert {r["effect"] for r in refusals} == {"not sent by this call"}
    assert SECRET_LIKE not in json.dumps(refusals)


def test_an_awaited_tool_does_the_same(ledger):
    """An async tool answers refusals with the same fixed words."""

    @ledger.action(owner="a", authoriser="b", key=lambda order, amount: order)
    async def pay(order: str, amount: int) -> str:
        return "paid"

    tool = pay.as_tool()

    async def run():
        return [await tool(order="o-1", amount=1), await tool(order="o-1", amount=2)]

    done, refused = asyncio.run(run())
    assert (done["outcome"], refused["error"]) == ("succeeded", "CF-102")


def test_an_answer_that_could_not_be_stored_is_unknown_to_the_model():
    """What was sent and could not be recorded may have happened: the model is not told that nothing was sent."""
    told = refused_for_model(NotRecorded("op_1", spooled=True))
    assert (told["outcome"], told["retry"], told["permitted"]) == (
        "unknown",
        "blocked",
        ["get_outcome", "wait", "ask_operator"],
    )


def test_a_busy_store_may_be_asked_again():
    """Nothing was decided: the same call may be made again."""
    assert refused_for_model(StoreBusy("busy"))["permitted"] == ["call_again", "ask_operator"]


def test_a_declaration_that_does_not_fit_is_a_developers_error(ledger):
    """A check that cannot take the payload's fields is not told to the model as its own mistake."""

    @ledger.action(owner="a", authoriser="b", key=lambda order: order, check=lambda other: None)
    def pay(order: str) -> str:
        return "paid"

    with pytest.raises(TypeError):
        pay.as_tool()(order="o-1")
