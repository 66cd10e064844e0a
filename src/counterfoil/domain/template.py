"""Request templates: what a contract sends or asks, with placeholders of a closed vocabulary.

A template never holds a secret: secrets stand at header pointers the contract declares and are put in
by the provider at the last moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal
from urllib.parse import quote, urlencode

import msgspec

from counterfoil.domain import body, canonical, pointer
from counterfoil.domain.errors import PayloadRefused
from counterfoil.domain.spelling import NotCanonical

Pointer = Annotated[str, msgspec.Meta(pattern=r"^(/([^/~]|~[01])*)*$")]
"""A JSON pointer (RFC 6901); the empty one is the whole document."""
HeaderName = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9!#$%&'*+.^_`|~-]+$")]
"""A field name (RFC 9110 5.1), lower case so that one name is written one way."""
PathText = Annotated[str, msgspec.Meta(pattern=r"^(\{?/[^?#\s]*)?$")]
"""A path below the provider's base URL, or empty for the base URL itself.

`{payload/POINTER}` is one segment; `{/payload/POINTER}` is a slash and one or more of them (RFC 6570 3.2.6). Its value
may hold what the path has anyhow: the slash that the path begins with, and one that the template goes on with.
"""
BodyText = Annotated[str, msgspec.Meta(pattern=r"^(none|json|form|payload(/.*)?)$")]

_TYPES = {"json": "application/json", "form": "application/x-www-form-urlencoded"}
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_WORDS = frozenset({"provider_key", "provider_uuid", "external_id", "reference", "control", "negative", "cursor"})
_OPTIONAL = ("control", "cursor")
"""Left out with the place it stands in where nothing is known for it."""
_KEY = re.compile(r"op_([0-9a-f]{32})")
_PATH_REFUSED = re.compile(r"[/\\\x00-\x1f\x7f]")
"""Servers decode %2F before they route: a value with a slash would name another resource."""
_HEADER_REFUSED = re.compile(r"[^\t\x20-\x7e]")


class RequestTemplate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The one write of a contract."""

    method: Literal["POST", "PUT", "PATCH", "DELETE"]
    path: PathText
    query: dict[str, str | tuple[str, ...]] = {}
    headers: dict[HeaderName, str] = {}
    body: BodyText = "json"
    """`json`: the payload's bytes as approved; `form`: its fields, `a[b]=c` where they are nested; `payload/POINTER`:
    that text of the payload; `none`."""
    without: tuple[Pointer, ...] = ()
    """Pointers left out of a `json` or `form` body because they are sent elsewhere."""
    put: dict[Pointer, str] = {}
    """Texts that stand in a `json` or `form` body beside the payload's fields: a key that is carried there."""


class LookTemplate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A read: by GET, or by a POST of which a source says that it only reads."""

    path: PathText
    method: Literal["GET", "POST"] = "GET"
    read_only: str = ""
    """Names the source by which that POST changes nothing."""
    query: dict[str, str | tuple[str, ...]] = {}
    headers: dict[HeaderName, str] = {}
    body: dict[str, Any] | None = None
    """The JSON of a POST; a text in it that is one placeholder, and nothing else, is filled in."""


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """What the placeholders stand for, besides the payload; an empty one is not known."""

    provider_key: str = ""
    external_id: str = ""
    reference: str = ""
    control: str = ""
    negative: str = ""
    cursor: str = ""
    """Where the next page of a list begins, by the word of the page before."""

    @property
    def provider_uuid(self) -> str:
        """The provider key in the form of a UUID, for providers that take nothing else; empty where it has none.

        The same for the same key; what marks it as a version 4 takes six bits of the key's chance.
        """
        found = _KEY.fullmatch(self.provider_key)
        if found is None:
            return ""
        digits = found[1]
        variant = "89ab"[int(digits[16], 16) % 4]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """A request that lacks only its base URL and its secrets."""

    method: str
    target: str
    """Path and query, percent-encoded."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


def problems(template: RequestTemplate | LookTemplate) -> tuple[str, ...]:
    """Name every placeholder that is not of the vocabulary, and every brace that is none."""
    found: list[str] = []
    for index, text in enumerate(texts(template)):
        rest = _PLACEHOLDER.sub("", text)
        if "{" in rest or "}" in rest:
            found.append(f"{text!r} holds a brace that opens no placeholder")
        # Only a path, the first of the texts, may hold more than one segment at once.
        words = [(w, w if index else w.removeprefix("/")) for w in _PLACEHOLDER.findall(text)]
        found += [f"{{{word}}} is no placeholder here" for word, bare in words if not _known(bare)]
    return tuple(found)


def texts(template: RequestTemplate | LookTemplate) -> tuple[str, ...]:
    """Every text of the template in which placeholders may stand."""
    query = tuple(v for value in template.query.values() for v in _many(value))
    inside = template.put.values() if isinstance(template, RequestTemplate) else _placeholders(template.body)
    return (template.path, *query, *template.headers.values(), *inside)


def _placeholders(document: object) -> Iterator[str]:
    """The texts of a look's body that are one placeholder each: all others are sent as they are."""
    if isinstance(document, dict | list):
        for item in document.values() if isinstance(document, dict) else document:
            yield from _placeholders(item)
    elif isinstance(document, str) and _PLACEHOLDER.fullmatch(document):
        yield document


def places(text: str) -> tuple[str, ...]:
    """The places in the payload that a text's placeholders read."""
    words = (word.removeprefix("/") for word in _PLACEHOLDER.findall(text))
    return tuple(word.removeprefix("payload") for word in words if word.startswith("payload"))


def words_of(template: RequestTemplate | LookTemplate) -> tuple[str, ...]:
    """Every placeholder of the template."""
    return tuple(word.removeprefix("/") for text in texts(template) for word in _PLACEHOLDER.findall(text))


def uses(template: RequestTemplate | LookTemplate, word: str) -> bool:
    """The template holds that placeholder somewhere."""
    return any(word in _PLACEHOLDER.findall(text) for text in texts(template))


def render(template: RequestTemplate | LookTemplate, payload: bytes, names: Names) -> Rendered:
    """Fill the placeholders in; nothing is sent and no secret is known here.

    Args:
        template: from a contract that was checked.
        payload: the canonical JSON that was approved.
        names: what the other placeholders stand for.

    Raises:
        PayloadRefused: a value is missing, is not text or a whole number, or may not stand where it would.
    """
    fill = _Fill(document=document_of(payload) if _reads(template, payload) else None, names=names)
    pairs = [
        (name, fill.text(text))
        for name, value in template.query.items()
        for text in _many(value)
        if not _is_idle(text, names)
    ]
    query = urlencode(pairs, quote_via=quote, safe="")
    headers = {name: fill.header(text) for name, text in template.headers.items()}
    content = b""
    if isinstance(template, RequestTemplate):
        content = _body(template, payload, fill)
        if template.body in _TYPES:
            headers.setdefault("content-type", _TYPES[template.body])
    elif template.body is not None:
        content = body.encode(fill.inside(template.body))
        headers.setdefault("content-type", _TYPES["json"])
    path = fill.path(template.path)
    return Rendered(
        method=template.method,
        target=f"{path}?{query}" if query else path,
        headers=tuple(headers.items()),
        body=content,
    )


def _is_idle(text: str, names: Names) -> bool:
    return any("{" + word + "}" in text and not getattr(names, word) for word in _OPTIONAL)


def document_of(payload: bytes) -> object:
    """The value of a canonical payload, its tags read.

    Raises:
        PayloadRefused: the bytes are no canonical form.
    """
    try:
        return canonical.parse(payload)
    except NotCanonical as refusal:
        problem = PayloadRefused(refusal.pointer, refusal.problem)
    raise problem


class _Fill(msgspec.Struct, frozen=True, kw_only=True):
    """Puts values in, each in the manner of the place it stands in."""

    document: object
    names: Names

    def text(self, template: str) -> str:
        return _PLACEHOLDER.sub(lambda found: self._value(found[1]), template)

    def inside(self, document: object) -> object:
        """A look's body with its placeholders filled in; what nothing is known for is left out, with its name."""
        if isinstance(document, dict):
            return {name: self.inside(item) for name, item in document.items() if not self._idle(item)}
        if isinstance(document, list):
            return [self.inside(item) for item in document if not self._idle(item)]
        is_one = isinstance(document, str) and _PLACEHOLDER.fullmatch(document)
        return self.text(document) if isinstance(document, str) and is_one else document

    def _idle(self, item: object) -> bool:
        return isinstance(item, str) and item in {"{" + word + "}" for word in _OPTIONAL} and _is_idle(item, self.names)

    def header(self, template: str) -> str:
        value = self.text(template)
        if _HEADER_REFUSED.search(value):
            raise PayloadRefused(template, "a header may hold printable ASCII only (RFC 9110 5.5)")
        return value

    def path(self, template: str) -> str:
        value = _PLACEHOLDER.sub(self._segments, template)
        if any(part in {".", ".."} for part in value.split("/")):
            raise PayloadRefused(template, "a path may not hold a dot segment (RFC 3986 3.3)")
        return value

    def _segments(self, found: re.Match[str]) -> str:
        word = found[1].removeprefix("/")
        value = self._value(word)
        if word == found[1]:
            return self._encoded(word, value)
        # A slash at an end of the value is the path's own there. Elsewhere it is one too many, and refused: without it
        # another resource would be written than was approved.
        if found.start() == 0:
            value = value.removeprefix("/")
        if found.string.startswith("/", found.end()):
            value = value.removesuffix("/")
        return "".join("/" + self._encoded(word, part) for part in value.split("/"))

    def _encoded(self, word: str, value: str) -> str:
        if not value or _PATH_REFUSED.search(value):
            raise PayloadRefused(
                word.removeprefix("payload"),
                "a path segment may be neither empty (a slash too many) nor hold slashes or control characters",
            )
        return quote(value, safe="")

    def _value(self, word: str) -> str:
        if word in _WORDS:
            value = str(getattr(self.names, word))
            if not value:
                raise PayloadRefused(word, "is not known here")
            return value
        return text_of(self.document, word)


def filled(texts: tuple[str, ...], payload: bytes, names: Names) -> tuple[str, ...]:
    """Each text with its placeholders filled in, as it is: for whatever takes whole texts and no syntax.

    Raises:
        PayloadRefused: a value is missing, or is not text or a whole number.
    """
    fill = _Fill(document=document_of(payload), names=names)
    return tuple(fill.text(text) for text in texts)


def text_of(document: object, word: str) -> str:
    """The payload's text (or whole number) at `payload/POINTER`.

    Raises:
        PayloadRefused: nothing stands there, or something that has no one form as text.
    """
    where = word.removeprefix("payload")
    value = body.at(document, where)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise PayloadRefused(where, "must be text or a whole number to stand in a request")
    return str(value)


def _body(template: RequestTemplate, payload: bytes, fill: _Fill) -> bytes:
    if template.body == "none":
        return b""
    if template.body not in _TYPES:
        return text_of(fill.document, template.body).encode()
    if template.body == "json" and _as_approved(template, payload):
        return payload  # the bytes that were approved, not a second encoding of them
    document = fill.document
    try:
        # The last pointer first: items of a list move up behind a removed one.
        for where in sorted(map(pointer.parse, template.without), key=_order, reverse=True):
            document = pointer.without(document, where)
        for where_to, text in template.put.items():
            document = _with(document, where_to, fill.text(text))
        if template.body == "form":
            return urlencode(list(_fields((), document)), quote_via=quote, safe="").encode()
        return body.encode(document)
    except pointer.BadPointer as refusal:
        problem = PayloadRefused(refusal.pointer, refusal.problem)
    except TypeError:
        where_from = pointer.write(_foreign(document) or ())
        problem = PayloadRefused(
            where_from, "is a value that JSON has no form for; pass text, in the provider's format"
        )
    raise problem


def _with(document: object, where: str, text: str) -> object:
    """The document with a text of the contract's at a place that the payload leaves free."""
    if body.at(document, where) is not pointer.MISSING:
        raise PayloadRefused(where, "is where the contract's own text stands")
    return pointer.put(document, pointer.parse(where), text)


def _fields(at: tuple[str, ...], value: object) -> Iterator[tuple[str, str]]:
    """The fields of a form in the order of their names, a list's by their numbers: equal documents are equal bytes."""
    if isinstance(value, dict):
        for name, item in sorted(value.items()):
            yield from _fields((*at, name), item)
    elif isinstance(value, list) and at:
        for number, item in enumerate(value):
            yield from _fields((*at, str(number)), item)
    elif isinstance(value, str | int) and at:
        first, *nested = at
        yield first + "".join(f"[{name}]" for name in nested), _plain(value)
    else:
        raise PayloadRefused(pointer.write(at), "must be text, a whole number or a boolean to stand in a form")


def _plain(value: str | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _order(tokens: tuple[str, ...]) -> list[tuple[int, str]]:
    """Of two indexes without leading zeros the longer is the larger."""
    return [(len(token), token) for token in tokens]


def _foreign(document: object) -> tuple[str, ...] | None:
    """Where the first value stands that JSON has no form for."""
    if document is None or isinstance(document, str | int | float):
        return None
    if not isinstance(document, dict | list):
        return ()
    for token, item in document.items() if isinstance(document, dict) else enumerate(document):
        found = _foreign(item)
        if found is not None:
            return (str(token), *found)
    return None


def _reads(template: RequestTemplate | LookTemplate, payload: bytes) -> bool:
    """The payload has to be taken apart, which costs time that most requests need not spend."""
    if any(
        word.removeprefix("/").startswith("payload") for text in texts(template) for word in _PLACEHOLDER.findall(text)
    ):
        return True
    if isinstance(template, LookTemplate) or template.body == "none":
        return False
    return template.body != "json" or not _as_approved(template, payload)


def _as_approved(template: RequestTemplate, payload: bytes) -> bool:
    """All of the canonical bytes are sent, and they are plain JSON: without `"$` there is no tag in them."""
    return not template.without and not template.put and b'"$' not in payload


def _many(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def _known(word: str) -> bool:
    return word in _WORDS or word == "payload" or word.startswith("payload/")
