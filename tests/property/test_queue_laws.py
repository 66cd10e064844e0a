"""Nothing is filtered, cut or abandoned out of sight: what is shown and what is counted is everything that waits."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from counterfoil.domain.operation import Operation
from counterfoil.domain.schedule import APPROVE, CALL, DISPATCH, LOOK, REST, REVIEW
from counterfoil.domain.words import Outcome
from counterfoil.runtime.queue import Asks, Waiting, arranged

NOW = 1_000_000.0
STEPS = (LOOK, REVIEW, REST, APPROVE, DISPATCH, CALL)
OWNERS = ("", "mara", "payments")


@st.composite
def waiting(draw, n):
    """One operation that waits, in one of the ways there are."""
    step = draw(st.sampled_from(STEPS))
    unresolved = int(step in (LOOK, REVIEW, REST))
    operation = Operation(
        n=n, id=f"op_{n}", tenant="t", actor="a", action="x", key=f"k{n}", account="c", fingerprint="f", effect=f"e{n}",
        owner=draw(st.sampled_from(OWNERS)), value=draw(st.sampled_from([0.0, 1.0, 10.0, 1e9])),
        created_at=draw(st.sampled_from([0.0, NOW - 1, NOW, NOW + 5])), step=step, unresolved=unresolved,
        exposure=draw(st.integers(0, 3)) if unresolved else 0,
    )  # fmt: skip
    at = draw(st.sampled_from([None, NOW - 1, NOW, NOW + 1])) if step != REST else None
    return Waiting(operation=operation, outcome=Outcome.UNKNOWN, now=NOW, escalates_at=at)


queues = st.integers(0, 8).flatmap(lambda size: st.tuples(*(waiting(n) for n in range(size))))
wishes = st.builds(
    Asks,
    owner=st.sampled_from([None, *OWNERS, "nobody-of-that-name"]),
    abandoned=st.booleans(),
    limit=st.one_of(st.none(), st.integers(1, 10)),
)


@given(queues, wishes)
def test_what_is_shown_and_what_is_counted_is_everything(every, asks):
    """Shown, cut, other people's and abandoned add up; nothing stands there twice, and nothing that does not wait."""
    found = arranged(every, asks)
    assert len(found.shown) + found.cut + found.others + found.resting == len(every)
    assert {w.operation.id for w in found.shown} <= {w.operation.id for w in every}
    assert len({w.operation.id for w in found.shown}) == len(found.shown)


@given(queues, wishes)
def test_no_wish_changes_a_count(every, asks):
    """Whose queue it is and how much of it is shown changes nothing of what is said below it."""
    mine, whole = arranged(every, asks), arranged(every, Asks())
    for count in ("waiting", "unowned", "overdue", "abandoned", "exposed"):
        assert getattr(mine, count) == getattr(whole, count)
    assert whole.abandoned[0] == sum(w.abandoned for w in every) == len(every) - whole.waiting
    assert whole.unowned == sum(not w.operation.owner for w in every)


@given(queues, wishes)
def test_what_nobody_owns_is_shown_to_everybody(every, asks):
    """Only a limit, or resting abandoned, keeps it away; and then it is counted as that."""
    found = arranged(every, asks)
    unowned = [w for w in every if w.unowned and (asks.abandoned or not w.abandoned)]
    shown = [w for w in found.shown if w.unowned]
    assert len(shown) == len(unowned) or found.cut >= len(unowned) - len(shown) > 0


@given(queues, wishes)
def test_the_most_exposed_for_the_longest_stands_first(every, asks):
    """Exposure x age falls from one to the next, then value at risk x age, then age; what is cut would stand behind."""
    found = arranged(every, asks)
    ranks = [(w.exposed * w.age, w.at_stake * w.age, w.age, -w.operation.n) for w in found.shown]
    assert all(first > second for first, second in itertools.pairwise(ranks))
    assert arranged(tuple(reversed(every)), asks) == found
