"""Field reports, section 7: cancellation, connections that break, and proxies. Counted at the server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.cases.stage import (
    BLOCKED,
    PAUSE_SECONDS,
    SHORT,
    WHO,
    auntil,
    document,
    done,
    evidence,
    guard,
    is_unknown,
    reply,
    until,
)
from tests.integration.wire.servers import CERTIFICATE, Peer, Server, dead_port, full_backlog, proxying

import counterfoil

NOT_SENT = {"outcome": "unobserved", "effect": "not sent", "permitted": ["call_again", "get_outcome"]}
"""What a model is told when not one byte left, whole, beside the operation's id."""
LIES = ("rejected", "cancel", "not executed", "did not", "fail", "abort", "denied", "stopped", "interrupt")
"""Words that would tell a model that an interrupted effect did not happen."""


class Counter(Server):
    """A server that commits each request when it has read it, and answers those it holds only when told to."""

    def __init__(self, *held: str) -> None:
        super().__init__(self._serve_one)
        self.taken, self.go = threading.Event(), threading.Event()
        self._held = held

    def _serve_one(self, peer: Peer) -> None:
        seen = peer.take()
        number = len(self.requests)
        if any(name.encode() in seen.body for name in self._held):
            self.taken.set()
            self.go.wait(20)
        peer.say(reply(201, done(number)))

    def sends(self, order: str) -> int:
        """How many requests for one order arrived."""
        return sum(order.encode() in seen.body for seen in self.requests)


def words_of(receipt) -> str:
    """Everything a model can read of a receipt, in one line of small letters."""
    texts = [str(receipt.for_model()), repr(receipt)]
    try:
        receipt.expect()
    except counterfoil.OutcomeUnknown as error:
        texts.append(str(error))
    return " ".join(texts).lower()


def tells_no_lie(receipt) -> bool:
    """Nothing in what a model reads says that it did not happen."""
    assert [word for word in LIES if word in words_of(receipt)] == []
    return is_unknown(receipt)


def test_r60_each_tool_of_a_cancelled_batch_says_what_became_of_it(book):
    """Done, in flight and not begun are succeeded, unknown and not sent; asked again, only the last one is sent."""
    ledger = book()
    orders = ["done", "flying", "waiting"]

    async def scene(server, pay):
        loop = asyncio.get_running_loop()
        first = await pay.acall({"order": "done"})
        loop.set_default_executor(ThreadPoolExecutor(1))  # one line to the provider: the third tool waits for it
        batch = [asyncio.create_task(pay.acall({"order": order})) for order in orders[1:]]
        await auntil(lambda: server.taken.is_set() and len(ledger.store.unresolved()) == 2)
        for task in batch:
            task.cancel()
        ended = await asyncio.gather(*batch, return_exceptions=True)
        loop.set_default_executor(ThreadPoolExecutor(4))
        stand = {order: _stands(ledger, order) for order in orders}
        again = {order: await pay.acall({"order": order}) for order in orders}
        server.go.set()
        return first, ended, stand, again

    with Counter("flying") as server:
        first, ended, stand, again = asyncio.run(scene(server, guard(ledger, server.url(""))))
        until(lambda: not ledger.store.unresolved(), "the late answer")
    assert [type(error) for error in ended] == [asyncio.CancelledError] * 2
    assert stand["done"].for_model() == {**first.for_model(), "outcome": "succeeded", "effect": "happened"}
    assert stand["flying"].for_model() == {"operation": stand["flying"].id, **BLOCKED}
    assert stand["waiting"].for_model() == {"operation": stand["waiting"].id, **NOT_SENT}
    assert [again[order].standing.value for order in orders] == ["existing", "unresolved", "new"]
    assert {order: again[order].id for order in orders} == {order: stand[order].id for order in orders}
    assert [server.sends(order) for order in orders] == [1, 1, 1]
    assert evidence(again["flying"].refresh())[-1]["source"] == "late_answer"


def _stands(ledger, order):
    """The receipt of one order, read and not called."""
    (found,) = [o for o in ledger.store.operations(limit=9) if o.key == order]
    return ledger.get(found.id)


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM], ids=["KeyboardInterrupt", "SystemExit"])
def stopped(request) -> Iterator[tuple[int, type[BaseException]]]:
    """A signal, and what its handler raises in the main thread."""
    kind = KeyboardInterrupt if request.param is signal.SIGINT else SystemExit

    def handler(number, frame):
        raise kind

    before = signal.signal(request.param, handler)
    yield request.param, kind
    signal.signal(request.param, before)


def interrupting(number: int, server: list[Server]) -> None:
    """Interrupt the main thread once the server has taken a request."""
    until(lambda: server and server[0].requests, "the request")
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("kind", ["key", "nothing"])
def test_r61_a_tool_that_is_interrupted_while_it_runs_is_unknown(book, stopped, kind):
    """Ctrl+C or SIGTERM during a send goes on as it is, and no text says that the effect did not happen."""
    number, raised = stopped
    ledger = book()
    with Counter("o-61") as server:
        pay = guard(ledger, server.url(""), f"lab.{kind}")
        hand = threading.Thread(target=interrupting, args=(number, [server]))
        hand.start()
        with pytest.raises(raised):
            pay({"order": "o-61"})
        hand.join()
        receipt = _stands(ledger, "o-61")
        assert tells_no_lie(receipt)
        assert tells_no_lie(pay({"order": "o-61"}))
        server.go.set()
    assert (receipt.dispatch.value, document(receipt)["attempts"][0]["finding"]) == ("completed", "unknown")
    assert len(server.requests) == 1


def test_r61_an_interrupted_function_is_unknown_too(lab, book, stopped):
    """A guarded function that is interrupted after its effect: unknown, and not run again."""
    number, raised = stopped
    runs = []

    def charge(order):
        runs.append(order)
        lab.charge({"order": order, "signal": number})
        os.kill(os.getpid(), number)
        threading.Event().wait(20)

    ledger = book()
    pay = ledger.action(charge, key=lambda order: order, **WHO)
    with pytest.raises(raised):
        pay("o-61")
    receipt = pay("o-61")
    assert tells_no_lie(receipt)
    assert (runs, len(lab.effects(receipt.id))) == (["o-61"], 1)


async def gives_up(task: asyncio.Task, flying: threading.Event) -> None:
    """Wait for a call as a client does that loses patience while it is in flight."""
    await auntil(flying.is_set)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(task, PAUSE_SECONDS)


def test_r61_an_async_function_that_is_cancelled_is_unknown(lab, book):
    """A cancelled coroutine has had its effect; the cancellation goes on and the receipt stays unknown."""
    ledger, charged = book(), threading.Event()

    async def charge(order):
        lab.charge({"order": order})
        charged.set()
        await asyncio.Event().wait()

    pay = ledger.action(charge, key=lambda order: order, **WHO)

    async def scene():
        await gives_up(asyncio.create_task(pay("r61-async")), charged)
        return await pay("r61-async")

    receipt = asyncio.run(scene())
    assert tells_no_lie(receipt)
    assert len(lab.effects(receipt.id)) == 1


def test_r62_a_client_that_gave_up_does_not_lose_the_answer(book):
    """After wait_for has ended the outcome is unknown; the exchange goes on, and what it hears settles the receipt."""
    ledger = book()

    async def scene(server, pay):
        await gives_up(asyncio.create_task(pay.acall({"order": "o-62"})), server.taken)
        given_up = _stands(ledger, "o-62")
        repeated = await pay.acall({"order": "o-62"})
        server.go.set()
        return given_up, repeated

    with Counter("o-62") as server:
        given_up, repeated = asyncio.run(scene(server, guard(ledger, server.url(""))))
        until(lambda: not ledger.store.unresolved(), "the late answer")
        settled = given_up.refresh()
    assert tells_no_lie(given_up)
    assert tells_no_lie(repeated)
    assert given_up.dispatch.value == "started"  # its sender still writes: no replay may stand on it
    assert (settled.outcome.value, settled.expect()) == ("succeeded", done())
    assert [said["source"] for said in evidence(settled)] == ["transport", "late_answer"]
    assert len(server.requests) == 1


def test_r62_a_late_refusal_settles_what_was_given_up(book):
    """Whatever comes late is evidence: a refusal that proves no effect turns unknown into rejected."""
    taken, go = threading.Event(), threading.Event()

    def script(peer: Peer) -> None:
        peer.take()
        taken.set()
        go.wait(20)
        peer.say(reply(422, {"error": "refused"}))

    ledger = book()
    with Server(script) as server:
        pay = guard(ledger, server.url(""))

        async def scene():
            await gives_up(asyncio.create_task(pay.acall({"order": "o-62"})), taken)
            receipt = _stands(ledger, "o-62")
            go.set()
            return receipt

        receipt = asyncio.run(scene())
        until(lambda: not ledger.store.unresolved(), "the late answer")
    assert tells_no_lie(receipt)
    assert receipt.refresh().outcome.value == "rejected"
    assert len(server.requests) == 1


@pytest.mark.parametrize("end", [lambda peer: None, Peer.reset], ids=["r63 closed", "r64 reset"])
def test_r63_r64_a_connection_that_was_kept_alive_is_not_trusted(book, end):
    """The second request is read whole and the connection ends without a byte: counted once, and unknown."""

    def script(peer: Peer) -> None:
        peer.take()
        while len(peer.server.requests) == 1:
            peer.say(reply(201, done(), connection="keep-alive"))
            peer.take()  # a second request on this connection would be the trap
        end(peer)

    with Server(script) as server:
        pay = guard(book(), server.url(""), "lab.nothing")
        assert pay({"order": "o-1"}).outcome.value == "succeeded"
        receipt = pay({"order": "o-2"})
        assert is_unknown(receipt)
        assert is_unknown(pay({"order": "o-2"}))
    assert [b"o-2" in seen.body for seen in server.requests] == [False, True]
    assert server.connections == 2
    assert receipt.operation.attempts == 1


TRUSTED = {"verify": str(CERTIFICATE)}


@contextlib.contextmanager
def refusing():
    """Nobody listens."""
    with dead_port() as port:
        yield f"http://127.0.0.1:{port}", {}, []


@contextlib.contextmanager
def never_connecting():
    """A connection that never comes to stand."""
    with full_backlog() as port:
        yield f"http://127.0.0.1:{port}", {}, []


@contextlib.contextmanager
def unresolvable():
    """A name that nobody has."""
    yield "http://nobody.invalid", {}, []


@contextlib.contextmanager
def untrusted():
    """A certificate that nobody here trusts."""
    with Server(Peer.take, scheme="https") as server:
        yield server.url(""), {}, server.requests


@contextlib.contextmanager
def speaking_no_tls():
    """A plain server under https."""
    with Server(lambda peer: peer.say(b"plain " * 100)) as server:
        yield server.url("").replace("http:", "https:"), TRUSTED, server.requests


@contextlib.contextmanager
def proxy_down():
    """A proxy that is not there."""
    with dead_port() as port, Server(Peer.take, scheme="https") as server:
        yield server.url(""), {"proxy": f"http://127.0.0.1:{port}", **TRUSTED}, server.requests


@contextlib.contextmanager
def proxy_refusing():
    """A proxy that opens no tunnel."""
    refusal = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"
    with Server(proxying(refusal, tunnel=False)) as proxy, Server(Peer.take, scheme="https") as server:
        yield server.url(""), {"proxy": proxy.url(""), **TRUSTED}, server.requests


@contextlib.contextmanager
def tls_failing_in_a_tunnel():
    """A tunnel to a server whose certificate nobody here trusts."""
    with Server(proxying()) as proxy, Server(Peer.take, scheme="https") as server:
        yield server.url(""), {"proxy": proxy.url("")}, server.requests


DIRECT = [refusing, never_connecting, unresolvable, untrusted, speaking_no_tls]
BEFORE = [*DIRECT, proxy_down, proxy_refusing, tls_failing_in_a_tunnel]


@pytest.mark.parametrize("accident", BEFORE, ids=[accident.__name__ for accident in BEFORE])
def test_r65_what_fails_before_the_first_byte_is_not_sent(book, brief, accident):
    """The receipt proves that nothing left: the model may call again, and the same operation is then dispatched."""
    with accident() as (base_url, way, seen):
        ledger = book()
        pay = guard(ledger, base_url, brief("nothing", send_deadline_seconds=SHORT), **way)
        receipt = pay({"order": "o-65"})
        again = pay({"order": "o-65"})
    assert receipt.for_model() == {"operation": receipt.id, **NOT_SENT}
    with pytest.raises(counterfoil.NotSent):
        receipt.expect()
    assert (again.id, again.operation.attempts, again.standing.value) == (receipt.id, 2, "new")
    assert {attempt["finding"] for attempt in document(again)["attempts"]} == {"not_sent"}
    assert document(again)["submitted_at"] is None
    assert (ledger.store.unresolved(), seen) == ([], [])


CREATED = reply(201, done())
AFTER = {
    "hangs": Peer.hang,
    "closes": lambda peer: None,
    "resets": Peer.reset,
    "says nothing readable": lambda peer: peer.say(b"\x00\x01garbage\r\n\r\n"),
    "cuts the status line": lambda peer: peer.say(CREATED[:12]),
    "cuts the head": lambda peer: peer.say(CREATED[:30]),
    "cuts the body": lambda peer: peer.say(CREATED[:-3]),
    "resets in the body": lambda peer: (peer.say(CREATED[:-3]), peer.reset()),
    "sends a body nobody can read": lambda peer: peer.say(reply(201, b"\x1f\x8bxx", content_encoding="gzip")),
    "sends no JSON": lambda peer: peer.say(reply(201, b"<html>created</html>")),
    "redirects": lambda peer: peer.say(reply(307, b"", location=peer.server.url("/again"))),
    "sends a gateway's page": lambda peer: peer.say(reply(502, b"<html>Bad Gateway</html>")),
}


@pytest.mark.parametrize("tunnelled", [False, True], ids=["direct", "through a CONNECT proxy"])
@pytest.mark.parametrize("name", AFTER)
def test_r65_what_fails_after_the_first_byte_is_unknown(book, brief, name, tunnelled):
    """However the exchange breaks off, through a proxy too: one request at the server, and an unknown outcome."""

    def script(peer: Peer) -> None:
        peer.take()
        AFTER[name](peer)

    with Server(script, scheme="https") as server, Server(proxying()) as proxy:
        terms = brief("nothing", send_deadline_seconds=SHORT if name == "hangs" else 10)
        pay = guard(book(), server.url(""), terms, **TRUSTED, **({"proxy": proxy.url("")} if tunnelled else {}))
        receipt = pay({"order": "o-65"})
        assert is_unknown(receipt)
        assert is_unknown(pay({"order": "o-65"}))
    assert [seen.method for seen in server.requests] == ["POST"]
    assert [seen.method for seen in proxy.requests] == (["CONNECT"] if tunnelled else [])


PLAIN = """
id: tests.plain
version: 1
provider: tests
effect: a thing that cannot be looked at
sources: {api: {document: this test, says: A 201 says that it was made, confidence: inferred}}
request: {method: POST, path: /things, body: json}
protection: {kind: none, carrier: none, source: api}
repeat: {source: api}
answers: [{status: ["201"], finding: succeeded, external_id: /id, source: api}]
"""


def test_r65_a_success_whose_body_is_cut_is_accepted_and_its_result_unreadable(book, tmp_path):
    """Where the status alone is the provider's word, a cut body loses the result and never the acceptance."""
    path = tmp_path / "plain.yaml"
    path.write_text(PLAIN, encoding="utf-8")

    def script(peer: Peer) -> None:
        peer.take()
        peer.say(CREATED[:-3])

    with Server(script) as server:
        pay = guard(book(), server.url(""), str(path), secrets={})
        receipt = pay({"order": "o-65"})
        again = pay({"order": "o-65"})
    assert (receipt.outcome.value, receipt.result, again.id) == ("accepted", None, receipt.id)
    assert receipt.for_model()["effect"] == "accepted by the provider"
    assert len(server.requests) == 1


def gateway(lab, status: int):
    """A gateway that sends every POST on twice, as one does that retries on a lost answer, and then gives up."""

    def script(peer: Peer) -> None:
        seen = peer.take()
        body = None if seen.method == "GET" else {"order": "o-66"}
        names = {k: v for k, v in seen.headers.items() if k == "x-client-reference"}
        for _ in range(1 if seen.method == "GET" else 2):
            said, octets = lab.ask(seen.method, seen.target, body, **names)
        peer.say(reply(said, octets) if seen.method == "GET" else reply(status, b"<html>Bad Gateway</html>"))

    return script


@pytest.mark.parametrize("doubled", ["gateway", "provider"])
def test_r66_what_somebody_else_doubled_is_found_and_needs_a_person(lab, book, doubled):
    """We sent one; a look that finds two of ours opens a discrepancy that nobody can overlook, and settles nothing."""
    ledger = book()
    payload = {"order": "o-66"}
    with contextlib.ExitStack() as house:
        if doubled == "gateway":
            server = house.enter_context(Server(gateway(lab, 502)))
            receipt = guard(ledger, server.url(""), "lab.lookup")(payload)
            assert [seen.method for seen in server.requests] == ["POST"]
        else:
            lab.faults({"behaviour": "internal_duplicate"})
            proxy = house.enter_context(Server(losing(lab)))
            receipt = guard(ledger, proxy.url(""), "lab.lookup")(payload)
            assert lab.sends(receipt.id) == 1
        assert is_unknown(receipt)
        looked = ledger.reconcile(receipt.id)
    assert len(lab.effects(receipt.id)) == 2
    assert (looked.operation.attempts, looked.discrepancy.value, looked.lifecycle.value) == (1, "open", "manual_review")
    assert looked.operation.unresolved
    told = looked.for_model()
    assert (told["effect"], told["retry"]) == ("evidence disagrees", "blocked")
    assert told["permitted"] == ["get_outcome", "wait", "ask_operator"]
    with pytest.raises(counterfoil.OutcomeUnknown, match="an operator must look"):
        looked.expect()
    said = evidence(looked)[-1]
    assert (said["reason"], said["contradicts"]) == ("duplicate_suspected", True)
    assert sorted(said["facts"]["candidates"]) == sorted(effect["id"] for effect in lab.effects(receipt.id))
    assert receipt.id in ledger.briefing()
    with pytest.raises(counterfoil.CallerError, match="no further attempt is permitted"):
        ledger.attempt(receipt.id, by="mara")


def losing(lab):
    """Pass everything on once; the answer to a write is lost."""

    def script(peer: Peer) -> None:
        seen = peer.take()
        names = {k: v for k, v in seen.headers.items() if k == "x-client-reference"}
        said, octets = lab.ask(seen.method, seen.target, {"order": "o-66"} if seen.body else None, **names)
        if seen.method == "GET":
            peer.say(reply(said, octets))

    return script
