"""The error tree: who must act, stable codes, and what a message may say."""

from __future__ import annotations

import inspect
import re

import pytest

from counterfoil.domain import errors
from counterfoil.domain.errors import CallerError, CounterfoilError, NotSettled, OperatorError, Unavailable

ALL = [e for _, e in inspect.getmembers(errors, inspect.isclass) if issubclass(e, CounterfoilError)]
LEAVES = [e for e in ALL if e not in (CounterfoilError, CallerError, OperatorError, Unavailable, NotSettled)]

MADE = [
    errors.NotDeclared("pay", missing="key", why="a repeat cannot be told from a second one"),
    errors.KeyConflict("k", operation="op_1", stored="cf1:" + "a" * 60, offered="cf1:" + "b" * 60),
    errors.PayloadRefused("/amount", "is NaN"),
    errors.UnknownAction("pay", known=("refund",)),
    errors.CheckRefused("pay", "the order was cancelled"),
    errors.SecretMisplaced("pay", pointer="/to", why="is not declared"),
    errors.NoSuchOperation("op_1"),
    errors.NoBasis("op_1", ("an attempt may have left",)),
    errors.BadValue("key", 1.5, wanted="a key is text or an integer"),
    errors.NotPermitted("pay", rule="no refunds", why="the season is over"),
    errors.NotDecided("op_1", "approve", ("permission is denied",)),
    errors.StoreUnsafe("receipts.db", "is truncated"),
    errors.StoreTooNew("receipts.db", found=9, known=1),
    errors.ContractInvalid("x.yaml", 7, "is no contract"),
    errors.SecretMissing("pay", name="TOKEN", problem="is empty"),
    errors.ActionsInvalid("actions.py", "holds no ledger"),
    errors.PolicyInvalid("policy.yaml", 7, "is unreachable"),
    errors.InvariantBroken("cannot be"),
    errors.ReceiptBroken("op_1", 2),
    errors.StoreBusy("busy"),
    errors.StoreFull("full"),
    errors.StoreAway("away"),
    errors.BreakerOpen("psp", exposure=5200.0, limit=5000.0),
    errors.NotRecorded("op_1", spooled=True),
    errors.OutcomeUnknown("unknown"),
    errors.Rejected("no"),
    errors.NotSent("nothing left"),
    errors.Held("held"),
    errors.ResultGone("erased"),
    errors.NotAuthorized("pending"),
]


def test_every_error_is_made_here():
    """A new error is added to this page, and so to every law below."""
    assert {type(error) for error in MADE} == set(LEAVES)


def test_codes_are_unique_and_said_in_the_tree():
    """Each leaf has a code, its own or that of what it is a kind of; the drawing at the top of the module names it."""
    codes = [error.code for error in LEAVES if "code" in vars(error)]
    assert len(set(codes)) == len(codes)
    drawn = dict(re.findall(r"[├└]── (\w+) +(CF-\d{3})", errors.__doc__))
    assert drawn == {error.__name__: error.code for error in LEAVES}


@pytest.mark.parametrize(
    ("branch", "digit", "exit_code"),
    [(CallerError, "1", 2), (OperatorError, "2", 4), (Unavailable, "3", 5), (NotSettled, "4", 1)],
)
def test_a_branch_says_who_must_act(branch, digit, exit_code):
    """The first digit and the exit code are the branch's, for every error below it."""
    below = [error for error in LEAVES if issubclass(error, branch)]
    assert below
    assert {error.code[3] for error in below} == {digit}
    assert {error.exit_code for error in below} == {exit_code}


@pytest.mark.parametrize("error", MADE, ids=lambda e: type(e).__name__)
def test_every_message_is_a_sentence_of_ours(error):
    """A message says something and a docstring says what the reader may conclude."""
    assert str(error)
    assert type(error).__doc__
    assert "\n" not in str(error)


def test_messages_name_the_thing_and_cut_digests():
    """The operation, the pointer and the next step are named; of a fingerprint only its beginning."""
    conflict = str(MADE[1])
    assert "op_1" in conflict
    assert "a" * 20 not in conflict
    assert "'/'" in str(errors.PayloadRefused("", "is NaN"))
    assert "registered: none" in str(errors.UnknownAction("pay", known=()))
    assert str(errors.PolicyInvalid("policy.yaml", 0, "cannot be read")) == "policy.yaml: cannot be read"
    assert "could not be spooled" in str(errors.NotRecorded("op_1", spooled=False))


def test_what_a_function_may_raise_needs_no_receipt():
    """`Rejected` and `NotSent` are also a guarded function's own words, with or without a reason."""
    assert (errors.Rejected().reason, errors.Rejected("declined").reason) == ("", "declined")
    assert errors.NotSent("x", receipt=None).receipt is None


class Unspeakable:
    """Cannot say what it is."""

    def __repr__(self):
        raise ValueError


@pytest.mark.parametrize(
    ("value", "shown"),
    [(10**5000, "a int"), (Unspeakable(), "a Unspeakable"), ("x" * 999, "…")],
    ids=["digits", "broken", "long"],
)
def test_a_wrong_value_never_breaks_its_error(value, shown):
    """Not one without a `repr`, nor one that is a page long."""
    said = str(errors.BadValue("n", value, wanted="less"))
    assert shown in said
    assert len(said) < 300
