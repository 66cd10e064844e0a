"""The laboratory's own door to its provider: other rules, and what is still on its way."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from counterfoil.lab.failure import RunFailed
from counterfoil.lab.watch import wait_for

DRAIN_SECONDS_MAX = 30.0
"""No effect of a laboratory run is applied later than this."""


def put_rules(port: int, rules: Iterable[Mapping[str, Any]]) -> None:
    """Put other fault rules in force at a provider; none means that nothing goes wrong any more."""
    _ask(port, "POST", "/_lab/faults", json.dumps(list(rules)))


def drain(port: int) -> None:
    """Wait until no effect is on its way any more: only then is what did not happen known."""
    wait_for("the draining of the provider", lambda: not _ask(port, "GET", "/_lab/truth")["late"], DRAIN_SECONDS_MAX)


def _ask(port: int, method: str, path: str, body: str | None = None) -> dict[str, Any]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=DRAIN_SECONDS_MAX)) as connection:
        connection.request(method, path, body)
        reply = connection.getresponse()
        said: dict[str, Any] = json.loads(reply.read())
    if reply.status != http.HTTPStatus.OK:
        raise RunFailed(f"the provider refused {method} {path}: {said}")
    return said
