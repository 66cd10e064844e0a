"""A request as a provider reads it, and the references by which answers speak of one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from counterfoil.domain.template import Rendered

QUERY = "@query/"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, read."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes
    account: str
    document: Any = None
    wire: int = 0
    """Which write of ours it is, from 1; 0: somebody else's."""
    names: dict[str, str] = field(default_factory=dict)
    """Path segments by the names of the route."""

    @property
    def content(self) -> str:
        """What it asks for; equal only where path, query and body are."""
        parts = [self.method, self.path, sorted(self.query.items()), self.body.decode("utf-8", "replace")]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def read(made: Rendered, *, body: str, account: str, route: str, wire: int = 0) -> Asked | None:
    """Read a request as its provider does; None where it goes to another route."""
    parts = urlsplit(made.target)
    names = routed(route, parts.path)
    if names is None:
        return None
    query: dict[str, list[str]] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        query.setdefault(name, []).append(value)
    return Asked(
        method=made.method, path=parts.path, query=query, headers=dict(made.headers), body=made.body, account=account,
        document=_document(made.body, body), wire=wire, names=names,
    )  # fmt: skip


def routed(route: str, path: str) -> dict[str, str] | None:
    """The named segments of a path, where it is of that route; the last name may hold slashes."""
    ours, theirs = route.strip("/").split("/"), path.strip("/").split("/")
    if ours[-1].startswith("{+"):
        theirs = [*theirs[: len(ours) - 1], "/".join(theirs[len(ours) - 1 :])]
    if len(ours) != len(theirs):
        return None
    names = {}
    for want, got in zip(ours, theirs, strict=True):
        if want.startswith("{"):
            names[want.strip("{+}")] = unquote(got)
        elif want != got:
            return None
    return names


def _document(content: bytes, kind: str) -> Any:
    if kind == "json":
        try:
            return json.loads(content) if content else {}
        except ValueError:
            return None
    if kind == "form":
        return _nested(parse_qsl(content.decode("utf-8"), keep_blank_values=True))
    return content.decode("utf-8", "replace")


def _nested(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Read `a[b]=c` as what it stands for."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        first, *rest = name.replace("]", "").split("[")
        place, steps = made, [first, *rest]
        for step in steps[:-1]:
            place = place.setdefault(step, {})
        place[steps[-1]] = value
    return made


def at(document: Any, where: str) -> Any:
    """What stands at a pointer; None where nothing does."""
    for token in where.split("/")[1:]:
        step = token.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(step)
        elif isinstance(document, list) and step.isdigit() and int(step) < len(document):
            document = document[int(step)]
        else:
            return None
    return document


def put(document: Any, where: str, value: Any) -> Any:
    """The document with something else at a pointer."""
    _, *tokens = where.split("/")
    if not tokens:
        return value
    changed = list(document) if isinstance(document, list) else dict(document or {})
    step: Any = int(tokens[0]) if isinstance(changed, list) else tokens[0].replace("~1", "/").replace("~0", "~")
    inner = changed[step] if isinstance(changed, list) else changed.get(step)
    changed[step] = put(inner, "".join("/" + token for token in tokens[1:]), value)
    return changed


def differing(asked: Asked, where: str, value: Any) -> Asked:
    """Somebody else's request: this one with another value at a pointer into its body, or at `@query/NAME`.

    What follows a `#` only tells two values for one place apart.
    """
    where = where.partition("#")[0]
    if where.startswith(QUERY):
        query = asked.query | {where.removeprefix(QUERY): [str(value)]}
        return replace(asked, query=query, wire=0)
    return replace(asked, document=put(asked.document, where, value), body=asked.body + b" ", wire=0)


def fill(template: Any, values: dict[str, Any]) -> Any:
    """A template with every reference in the place of what it stands for; text inside braces is filled in too."""
    if isinstance(template, dict):
        return {name: fill(value, values) for name, value in template.items()}
    if isinstance(template, list):
        return [fill(value, values) for value in template]
    if isinstance(template, str) and template.startswith("$"):
        return referred(template, values)
    return template


def referred(reference: str, values: dict[str, Any]) -> Any:
    """What one reference stands for: `$NAME` or `$NAME/POINTER`, with `$number:`, `$text:` or `$tail:` for as what."""
    word, slash, rest = reference.removeprefix("$").partition("/")
    kind, _, name = word.rpartition(":")
    found = at(values.get(name), slash + rest) if slash else values.get(name)
    return _AS[kind](found) if kind and found is not None else found


_AS: dict[str, Callable[[Any], Any]] = {
    "number": int,
    "text": str,
    "tail": lambda found: str(found).partition("/")[2],
}
"""`tail` is what follows the first slash."""
