"""Field reports, section 10: secrets reach the provider and nothing else: no file, log, error, text or print of ours."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import logging
import re
import subprocess
import traceback
from urllib.parse import quote, quote_plus

import pytest
from rich.pretty import pretty_repr
from tests.cases.stage import (
    BLOCKED,
    POINTER,
    SHORT,
    WHO,
    auntil,
    document,
    done,
    guard,
    later,
    listing,
    reply,
)
from tests.integration.wire.servers import CERTIFICATE, Peer, Server, dead_port, proxying

import counterfoil
from counterfoil.lab.ground_truth import item
from counterfoil.lab.provider import ACCOUNT

CANARY = 'kanary-9f2c/77+aa=d0"4e1b'
"""A token that looks different in JSON, in a URL, in base64 and in hex."""
PASSWORD = "kanary:pass-3b3b/word"
BASIC = base64.b64encode(PASSWORD.encode()).decode()
PROXY = "kanary-proxy-51d0aa"


def spellings(secret: str) -> set[bytes]:
    """Every form in which a secret may be written down: plain, escaped, encoded, and inside something encoded."""
    octets = secret.encode()
    found = {secret, quote(secret, safe=""), quote_plus(secret), quote(secret), json.dumps(secret)[1:-1]}
    found |= {quote(secret, safe="").lower(), octets.hex(), octets.hex().upper(), repr(secret)[1:-1], secret[::-1]}
    for skipped in range(3):  # where it begins in somebody's base64
        coded = base64.b64encode(b"\0" * skipped + octets).decode()
        core = coded[-(-skipped * 8 // 6) : (skipped + len(octets)) * 8 // 6]
        found |= {core, core.replace("+", "-").replace("/", "_")}
    return {form.encode() for form in found}


FORMS = set().union(*map(spellings, (CANARY, PASSWORD, BASIC, PROXY, PASSWORD.partition(":")[2])))


def leaks(*texts: str | bytes) -> set[bytes]:
    """The forms found in any of these."""
    octets = b"\n".join(text.encode() if isinstance(text, str) else text for text in texts)
    return {form for form in FORMS if form in octets}


def traces(error: BaseException | None) -> str:
    """A traceback as the most talkative reporter prints it: every cause, suppressed or not, and our own variables."""
    text = ""
    while error is not None:
        text += "".join(traceback.format_exception(error, chain=False))
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if "/counterfoil/" in frame.f_code.co_filename:
                text += pretty_repr(frame.f_locals)
        error = error.__cause__ or error.__context__
    return text


def on_disk(folder) -> bytes:
    """Every byte below a folder; read by another process, because ours would lose its locks by closing a file."""
    files = [str(path) for path in folder.rglob("*") if path.is_file()]
    assert any(name.endswith("receipts.db-wal") for name in files), files
    return subprocess.run(["cat", *files], capture_output=True, check=True, timeout=20).stdout


@pytest.fixture
def logged():
    """Every record of every logger at the lowest level, with its traceback."""
    stream, root = io.StringIO(), logging.getLogger()
    handler = logging.StreamHandler(stream)
    loggers = [root, *(logging.getLogger(name) for name in ("httpx", "httpcore", "h11", "asyncio", "counterfoil"))]
    loggers += [known for known in root.manager.loggerDict.values() if isinstance(known, logging.Logger)]
    before = [(logger, logger.level) for logger in loggers]
    root.addHandler(handler)
    for logger in loggers:
        logger.setLevel(logging.NOTSET + 1)
    yield stream
    root.removeHandler(handler)
    for logger, level in before:
        logger.setLevel(level)


def told(ledger, receipt) -> str:
    """Everything the product says of a receipt, to whomever."""
    texts = [repr(receipt), str(receipt.for_model()), ledger.briefing(), json.dumps(document(receipt, payload=True))]
    texts += [pretty_repr(receipt.operation), pretty_repr(receipt.result), str(receipt.because), repr(ledger)]
    texts += [pretty_repr(ledger.registry), pretty_repr(ledger.history(receipt.id).events)]
    try:
        receipt.expect()
    except counterfoil.CounterfoilError as error:
        texts.append(traces(error))
    return "\n".join(texts)


CREDENTIALS = {"bearer": (f"Bearer {CANARY}", CANARY), "bare": (CANARY, CANARY), "basic": (f"Basic {BASIC}", PASSWORD)}
"""Whole header values, and what a server knows them as."""


def echoing(status: int, body: object, plain: str) -> bytes:
    """An answer that shows our credential back wherever an answer can."""
    location = f"http://user:{quote(plain, safe='')}@127.0.0.1/next?api_key={quote(plain, safe='')}"
    named = {"location": location, "x_echo": plain, "set_cookie": f"session={plain}", "retry_after": plain}
    return reply(status, body, **named)


def ends(plain: str) -> dict[str, bytes | None]:
    """What a server may do that brings a call to each of its ends, with our credential in its mouth."""
    octets = plain.encode()
    names = {
        "as it is": plain,
        "in base64": base64.b64encode(octets).decode(),
        "in base64url": base64.urlsafe_b64encode(octets).decode(),
        "in hex": octets.hex(),
        "in capital hex": octets.hex().upper(),
        "in a URL": "https://host/?key=" + quote(plain, safe=""),
        "with its password": plain.partition(":")[2] or plain,
    }
    told = {"error": "refused", "token": plain, "message": f"no rights for {plain}"}
    return {f"names the thing by it {how}": reply(201, {**done(), "id": name}) for how, name in names.items()} | {
        "succeeds": reply(201, done()),
        "does not know us": echoing(401, {**told, "error": "unauthorized"}, plain),
        "rejects": echoing(422, told, plain),
        "is busy": echoing(503, told, plain),
        "fails": echoing(500, f"<html>{plain}</html>".encode(), plain),
        "redirects": echoing(307, b"", plain),
        "cuts the body": echoing(201, done(), plain)[:-4],
        "talks garbage": f"{plain}\r\n\r\n".encode(),
        "closes": b"",
        "hangs": None,
    }


@pytest.mark.parametrize("credential", CREDENTIALS)
@pytest.mark.parametrize("name", ends(""))
def test_r76_no_end_of_a_call_leaves_a_secret_behind(book, brief, tmp_path, logged, capfd, name, credential):
    """However a call, a repeat and a look end: nothing on disk, logged, printed, raised or told holds the secret."""
    secret, plain = CREDENTIALS[credential]
    octets = ends(plain)[name]

    def script(peer: Peer) -> None:
        if peer.take().method == "GET":
            odd = item(plain, ACCOUNT, key=plain, reference=plain, payload={"token": plain})
            peer.say(echoing(200, listing(odd) | {"echo": plain}, plain))
        elif octets is None:
            peer.hang()
        else:
            peer.say(octets)

    with Server(script) as server:
        ledger = book()
        terms = brief("key", send_deadline_seconds=SHORT) if name == "hangs" else "lab.key"
        pay = guard(ledger, server.url(""), terms, secrets={POINTER: lambda: secret})
        receipt = pay({"order": "o-76", "amount": 10})
        texts = [told(ledger, receipt), told(ledger, pay({"order": "o-76", "amount": 10}))]
        with contextlib.suppress(counterfoil.CounterfoilError):
            texts.append(told(ledger, ledger.reconcile(receipt.id)))
        stored = on_disk(tmp_path)
    captured = capfd.readouterr()
    assert server.requests[0].headers["authorization"] == secret
    assert leaks(*texts) == set()
    assert leaks(stored) == set()
    assert leaks(logged.getvalue(), captured.out, captured.err) == set()
