"""The beginning of a contract: sound as it is, cautious wherever nothing was said, with a comment at every clause."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from counterfoil.domain.errors import BadValue

_ID = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")
_REQUEST = re.compile(r"(POST|PUT|PATCH|DELETE) (/\S*)")
_KEY = re.compile(r"none|header:[A-Za-z0-9-]+|body:/\S+")
_RETENTION = re.compile(r"never|unknown|[1-9][0-9]{0,8}")
_URL = re.compile(r"https?://\S+")
_PATH = re.compile(r"none|/\S*")


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of the provider action."""

    id: str
    request: str
    key: str
    retention: str
    url: str
    look: str


_QUESTIONS: Mapping[str, tuple[str, str, re.Pattern[str], str]] = {
    "request": ("Which request makes it?", "POST /v1/things", _REQUEST, "a method and a path, e.g. POST /v1/refunds"),
    "key": ("Where does a key stand?", "header:Idempotency-Key", _KEY, "header:NAME, body:/FIELD or none"),
    "retention": ("For how many seconds does a key protect?", "unknown", _RETENTION, "seconds, never or unknown"),
    "url": ("Which page documents it?", "https://example.com/docs", _URL, "the address of a page"),
    "look": ("Which GET lists what there is?", "none", _PATH, "a path, or none"),
}


def answered(given: Mapping[str, Any], *, ask: Callable[[str, str], str] | None) -> Answers:
    """Take what was given, and ask for the rest or leave it as it is usual.

    Args:
        given: by name; None where it was not said.
        ask: asks a question with its usual answer; None: nobody is there.

    Raises:
        BadValue: an answer is not what it must be.
    """
    if not _ID.fullmatch(given["id"]):
        raise BadValue("id", given["id"], wanted="lower-case words joined by dots, e.g. stripe.v1.refunds_create")
    said = {"id": str(given["id"])}
    for name, (question, usual, pattern, wanted) in _QUESTIONS.items():
        value = given.get(name) or (ask(question, usual) if ask else usual)
        if not pattern.fullmatch(value):
            raise BadValue(name, value, wanted=wanted)
        said[name] = value
    return msgspec.convert(said, Answers)


def written(said: Answers) -> str:
    """The file's text."""
    method, path = said.request.split(" ", 1)
    keyed = said.key != "none"
    return "".join([
        _HEAD.format(id=said.id, provider=said.id.partition(".")[0], url=said.url, method=method, path=path),
        _placed(said.key) if keyed else "",
        _SECRETS,
        (_KEYED.format(carrier=said.key, retention=_lasts(said.retention)) if keyed else _KEYLESS),
        _ANSWERS,
        _LOOK.format(path=said.look) if said.look != "none" else _NO_LOOK,
        _TAIL,
    ])  # fmt: skip


def _placed(key: str) -> str:
    kind, _, name = key.partition(":")
    if kind == "header":
        return f'  headers: {{{name.lower()}: "{{provider_key}}"}} # the ledger\'s own key, 35 characters\n'
    return f'  put: {{{name}: "{{provider_key}}"}} # the ledger\'s own key, 35 characters\n'


def _lasts(retention: str) -> str:
    return "never_expires" if retention == "never" else retention


_HEAD = """\
# What becomes of the payload: which fields it has, and which of them the caller must name.
# `unknown` may stand wherever the documentation is silent, and always means the cautious thing.
id: {id}
version: 1
provider: {provider}
group: other # payments | orders | cloud | storage | databases | email | chat | publishing | code | calendars | business
effect: a thing # what comes to be, for people
sources: # every clause below names one of these
  docs:
    url: {url}
    says: What that page says about keys, repeats, errors and answers, in your own words.
    confidence: unknown # documented once you have read it there; source_code, measured or inferred otherwise

request:
  method: {method}
  path: {path} # {{payload/FIELD}} puts a field into a segment
  body: json # or form, none, payload/FIELD
"""
_SECRETS = "secrets: [/headers/authorization]\n\n"
_KEYED = """\
protection:
  kind: idempotency_key # or natural_key, conditional_write, client_reference, dedup_window
  carrier: {carrier}
  format: unknown # opaque where any text may be a key, uuid
  length_max: unknown
  scope: unknown # what the key is unique within: account, endpoint, ...
  retention_seconds: {retention} # or while_it_stands
  retention_from: unknown # first_receipt or completion
  compared: unknown # everything, nothing, or pointers
  source: docs
repeat:
  same_payload: unknown # replays_answer | returns_current | refused | overwrites | second_effect
  other_payload: unknown # refused | replays_answer | overwrites | second_effect
  in_flight: unknown # refused | waits | second_effect
  errors_replayed: unknown # true; false: the key goes on protecting; run_again: an error frees it
  source: docs

"""
_KEYLESS = """\
protection:
  kind: none # the same request again is a second effect
  carrier: none
  source: docs
repeat:
  same_payload: second_effect
  other_payload: second_effect
  in_flight: second_effect
  source: docs

"""
_ANSWERS = """\
answers: # the first rule that holds judges; what no rule names is unknown
  - status: ["200", "201"]
    content: json
    # where: {/status: done}     # exact values that the body must hold
    # match: {/amount: /amount}  # payload field: body field; another value there is a discrepancy
    finding: succeeded # accepted, where it may still come to nothing
    external_id: /id
    source: docs
  # - status: ["422"]            # only what proves that nothing happened, with the code that says so
  #   where: {/error: invalid}
  #   finding: rejected
  #   source: docs

"""
_LOOK = """\
looks:
  - by: list # key or client_reference, where the query asks for it
    request:
      path: {path}
    items: /data
    complete: {{/has_more: [false]}} # how the answer says that it shows everything
    match:
      account: scope # or a pointer, where an item names its account
      reference: /reference # where an item shows the ledger's key
      material: {{/amount: /amount}} # payload field: item field; without one nothing is ever taken for ours
    controls: {{negative: inline}}
    consistency: unknown # strong, eventual
    external_id: /id
    source: docs

reconcile: allowed
read_budget: {{looks_max: 4, first_after_seconds: 2, spacing_seconds: 15}}
"""
_NO_LOOK = "reconcile: forbidden # nothing can be asked: a lost answer is a person's\n"
_TAIL = """\
send_deadline_seconds: 30
compensation: unknown # how a person undoes it
"""
