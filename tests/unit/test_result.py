"""What a replay returns: the declared part of what proved the effect."""

from __future__ import annotations

import msgspec
import pytest
from tests.crash.stepping import claimed, erased, observed

from counterfoil.domain.evidence import Evidence
from counterfoil.domain.result import ERASED, declared, kept, kept_result, narrowed, result_gone
from counterfoil.domain.words import Finding, Source


@pytest.mark.parametrize(
    ("pointers", "left"),
    [
        (("/id",), {"id": "re_1"}),
        (("/id", "/card/last4"), {"id": "re_1", "last4": "4242"}),
        (("/missing", "/id"), {"id": "re_1"}),
        (("/lines/1",), {"1": 20}),
        (("",), {"": {"id": "re_1", "card": {"last4": "4242"}, "lines": [10, 20]}}),
    ],
)
def test_only_the_declared_parts_are_kept(pointers, left):
    """Each under its pointer's last name; what is missing stays missing and is not made up."""
    assert narrowed({"id": "re_1", "card": {"last4": "4242"}, "lines": [10, 20]}, pointers) == left


def test_evidence_keeps_what_the_action_declares():
    """Without pointers, or without a result, the evidence is what it was."""
    evidence = Evidence(source=Source.ANSWER, finding=Finding.SUCCEEDED, attempt=1, result={"id": 1, "secret": 2})
    assert declared(evidence, ()) is evidence
    assert declared(evidence, ("/id",)).result == {"id": 1}
    empty = Evidence(source=Source.ANSWER, finding=Finding.SUCCEEDED, attempt=1)
    assert declared(empty, ("/id",)) is empty


def test_the_result_is_that_of_the_proof():
    """The first proof that kept one answers; a look that found nothing out, and a proof without one, do not."""
    history = observed(claimed(), Finding.UNKNOWN, facts={"status": 500})
    assert kept_result(history) is None
    history = observed(history, Finding.ACCEPTED)
    history = observed(history, Finding.SUCCEEDED, effect="pay", result={"id": "re_1"})
    history = observed(history, Finding.SUCCEEDED, effect="pay", result={"id": "re_2"}, source=Source.LOOK)
    assert kept_result(history) == {"id": "re_1"}
    assert kept_result(erased(history)) is None


@pytest.mark.parametrize(("why", "said"), [("not_kept", "canonical form"), ("too_large", "64 KiB"), ("", "")])
def test_a_result_that_could_not_be_kept_is_gone_with_its_reason(why, said):
    """The proof says why there is none, whatever was observed before it; where it says nothing there never was one."""
    history = observed(claimed(), Finding.UNKNOWN, facts={"status": 500})
    history = observed(history, Finding.SUCCEEDED, effect="pay", facts={"result": why})
    assert (kept_result(history), bool(result_gone(history))) == (None, bool(why))
    assert said in result_gone(history)
    assert result_gone(erased(history)) == ERASED


@pytest.mark.parametrize("result", [0, "", False, [], {}, None, "text", 1.5, [1, {"a": None}]])
def test_every_result_comes_back_as_it_was(result):
    """Falsy results are results: of the same type and value, and only None is none."""
    history = observed(claimed(), Finding.SUCCEEDED, effect="pay", result=result)
    assert kept_result(history) == result
    assert type(kept_result(history)) is type(result)


@pytest.mark.parametrize("body", [None, b"s" * 16 + b"[1]"])
def test_a_body_that_is_none_of_ours_keeps_nothing(body):
    """An erased body, or one that holds no object, has no result."""
    event = msgspec.structs.replace(
        observed(claimed(), Finding.SUCCEEDED, effect="pay", result=1).events[-1], body=body
    )
    assert kept(event) == {}
