"""The demo's agent: a scripted model that refunds one order through a tool, and tries again when it did not work.

``python -m counterfoil.lab.agentloop naive|guarded --port PORT --folder DIR`` is one life of it. Both runners are this
loop; what differs is the tool it was given. A killed agent is started again from the beginning, as agents are.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from counterfoil.lab.credential import SECRETS, VARIABLE
from counterfoil.lab.journal import Journal
from counterfoil.lab.provider import ACCOUNT
from counterfoil.lab.run_folder import STORE
from counterfoil.lab.watch import wait_for

if TYPE_CHECKING:
    from counterfoil.runtime.receipt import Receipt

NAIVE, GUARDED = "naive", "guarded"

ORDER, AMOUNT = "order-1042", 1500
TRIES_MAX = 3
"""How often the model asks for the same refund before it gives up."""

HTTP_SECONDS = 5.0
"""The naive tool's time-out; no accident of the demo waits for it."""
SETTLE_SECONDS = 20.0
"""How long the guarded agent waits for its receipt to be settled; a look is due within a second or two."""

TRANSCRIPT = "transcript.jsonl"

LONGEST_DELIVERY_SECONDS = 0.5
WHY = "the laboratory's provider applies a request at once; half a second is many times what it needs"


class Tool(Protocol):
    """What the model was given to act with; its answer names the outcome."""

    def __call__(self, *, order: str, amount: int) -> dict[str, Any]:
        """Refund an order."""
        ...


class Transcript:
    """What was said and done, kept as it happens: a killed agent's words stay."""

    def __init__(self, folder: Path) -> None:
        self._journal = Journal(folder / TRANSCRIPT)

    def say(self, who: str, what: str, **details: object) -> None:
        """Add one line."""
        self._journal.append({"who": who, "what": what, **details})


def converse(tool: Tool, transcript: Transcript) -> dict[str, Any]:
    """Let the model act until the tool reports that it worked, or it gives up; return the last answer."""
    answer: dict[str, Any] = {"outcome": "unobserved"}
    for _ in range(TRIES_MAX):
        transcript.say("model", "refund", order=ORDER, amount=AMOUNT)
        answer = tool(order=ORDER, amount=AMOUNT)
        transcript.say("tool", answer["outcome"], answer=answer)
        if answer["outcome"] == "succeeded":
            break
    return answer


class NaiveTool:
    """A tool as they are written every day: whatever is not an answer is reported as a failure."""

    def __init__(self, port: int) -> None:
        self._port = port

    def __call__(self, *, order: str, amount: int) -> dict[str, Any]:
        """Send; an exception of any kind becomes a failure, and here begins all the trouble."""
        body = json.dumps({"order": order, "amount": amount})
        headers = {"Authorization": os.environ[VARIABLE], "X-Client-Reference": order}
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=HTTP_SECONDS)) as connection:
                connection.request("POST", "/lookup/effects", body, headers)
                return {"outcome": "succeeded", "result": json.loads(connection.getresponse().read())}
        except (OSError, http.client.HTTPException, ValueError) as error:
            return {"outcome": "failed", "error": type(error).__name__}


class GuardedTool:
    """The same refund as a guarded action: its answer is the receipt's own."""

    def __init__(self, port: int, folder: Path, house: ExitStack) -> None:
        import counterfoil

        ledger = house.enter_context(counterfoil.open(folder / STORE, actor="agent:support", worker=True))
        self._refund = ledger.http(
            "refund",
            contract=str(folder / "lab.lookup.yaml"),
            base_url=f"http://127.0.0.1:{port}",
            account=ACCOUNT,
            secrets=dict(SECRETS),
            owner="payments",
            authoriser="payments-lead",
            longest_delivery=LONGEST_DELIVERY_SECONDS,
            longest_delivery_by="counterfoil-lab demo",
            longest_delivery_why=WHY,
        )
        self._receipt: Receipt | None = None

    def __call__(self, *, order: str, amount: int) -> dict[str, Any]:
        """Send at most once, whatever the model asks for how often."""
        self._receipt = self._refund({"order": order, "amount": amount}, key=order)
        return self._receipt.for_model()

    def get_outcome(self) -> dict[str, Any]:
        """Wait, as the receipt permits, until the ledger's worker has settled what is unknown."""
        receipt = self._receipt
        if receipt is None:
            return {"outcome": "unobserved"}
        wait_for("the settling of the receipt", lambda: not receipt.refresh().operation.unresolved, SETTLE_SECONDS)
        return receipt.refresh().for_model()


def _act(runner: str, port: int, folder: Path) -> str:
    transcript = Transcript(folder)
    with ExitStack() as house:
        if runner == NAIVE:
            outcome = converse(NaiveTool(port), transcript)["outcome"]
        else:
            tool = GuardedTool(port, folder, house)
            if (outcome := converse(tool, transcript)["outcome"]) != "succeeded":
                answer = tool.get_outcome()
                outcome = answer["outcome"]
                transcript.say("model", "get_outcome")
                transcript.say("tool", outcome, answer=answer)
        transcript.say("agent", outcome)
    return str(outcome)


def main(arguments: Sequence[str] | None = None) -> int:
    """Live once; the last thing the agent believes stands in the transcript."""
    parser = argparse.ArgumentParser(prog="counterfoil.lab.agentloop", description=__doc__)
    parser.add_argument("runner", choices=(NAIVE, GUARDED))
    parser.add_argument("--port", type=int, required=True, help="where the provider listens")
    parser.add_argument("--folder", type=Path, required=True, help="holds transcript, receipts and contract")
    asked = parser.parse_args(arguments)
    _act(asked.runner, asked.port, asked.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
