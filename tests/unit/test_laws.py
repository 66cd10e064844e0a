"""Laws over a whole store: each is counted as often as it was asked, was broken, or could not be asked."""

from __future__ import annotations

import msgspec
from tests.unit.test_audit import CLAIMED, HONEST, OPERATION

from counterfoil.domain.audit import audit
from counterfoil.domain.event import History
from counterfoil.domain.laws import Asked, Laws
from counterfoil.domain.rejudge import ERASED, NO_ACTION, OTHER_CONTRACT, Judgement
from counterfoil.domain.violation import Law, Violation

ABSENT, HELD = HONEST["absent"], HONEST["held"]


def counted(laws):
    """Asked, broken and not asked, of the laws of which any is not nought."""
    rows = {row.law: (row.asked, row.broken, row.not_asked) for row in laws.rows()}
    return {law.value: row for law, row in rows.items() if any(row)}


def test_every_law_has_a_row():
    """Also where nothing was asked."""
    rows = Laws().rows()
    assert [row.law for row in rows] == list(Law)
    assert rows[0] == Asked(law=Law.IDENTITY, asked=0, broken=0, not_asked=0)


def test_an_honest_operation_is_asked_everything():
    """A claim, silence, a paid look and its evidence."""
    laws = Laws()
    laws.operation(ABSENT, audit(ABSENT))
    assert counted(laws) == {
        "identity": (1, 0, 0), "sequence": (5, 0, 0), "chain": (4, 0, 0), "record": (4, 0, 0), "body": (1, 0, 0),
        "authority": (1, 0, 0), "basis": (1, 0, 0), "evidence": (2, 0, 0), "projection": (1, 0, 0),
    }  # fmt: skip


def test_a_body_that_was_erased_is_not_asked_about():
    """One that was never there is no gap."""
    bare = [msgspec.structs.replace(event, body=None) for event in HELD.events]
    laws = Laws()
    laws.operation(History(operation=HELD.operation, events=tuple(bare)), ())
    assert counted(laws)["body"] == (0, 0, 1)
    assert counted(laws)["authority"] == (1, 0, 0)


def test_a_law_is_broken_once_in_one_place():
    """Two wrong columns are one wrong row."""
    edited = msgspec.structs.replace(CLAIMED.operation, exposure=7, attempts=9)
    wrong = audit(History(operation=edited, events=CLAIMED.events))
    assert len(wrong) == 2
    laws = Laws()
    laws.operation(CLAIMED, wrong)
    assert counted(laws)["projection"] == (1, 1, 0)


def test_what_cannot_be_read_leaves_laws_unasked():
    """Nothing after it can be judged; of an operation without a history only what was found was asked."""
    events = (*ABSENT.events[:-1], msgspec.structs.replace(ABSENT.events[-1], record=b"{"))
    broken = History(operation=ABSENT.operation, events=events)
    laws = Laws()
    laws.operation(broken, audit(broken))
    assert counted(laws)["evidence"] == (0, 0, 2)
    assert counted(laws)["record"] == (4, 1, 0)
    alone = Laws()
    alone.unreadable((Violation(operation="op_x", seq=0, law=Law.IDENTITY, problem="p"),))
    assert counted(alone)["identity"] == (1, 1, 0)
    assert counted(alone)["chain"] == counted(alone)["judgement"] == (0, 0, 1)
    assert "file" not in counted(alone)


def test_judgements_are_counted_and_what_does_not_hold_is_a_violation():
    """Held, broken, and not asked with its reason."""
    laws = Laws()
    wrong = laws.judged(OPERATION, (Judgement(seq=2), Judgement(seq=3, broken="no"), Judgement(seq=4, unasked=ERASED)))
    assert wrong == (Violation(operation=OPERATION.id, seq=3, law=Law.JUDGEMENT, problem="no"),)
    assert counted(laws) == {"judgement": (2, 1, 1)}
    assert laws.not_rejudged == {ERASED: 1}


def test_what_could_have_been_judged_is_counted_apart():
    """Without the contract nothing is called whole; what nobody can judge any more holds nothing up."""
    laws = Laws()
    laws.judged(OPERATION, tuple(Judgement(seq=2, unasked=why) for why in (ERASED, NO_ACTION, OTHER_CONTRACT)))
    assert laws.unjudged == 2


def test_the_file_and_the_policies_are_counted_beside_the_operations():
    """What was found of another law was asked by being found."""
    laws = Laws()
    laws.elsewhere(Law.FILE, 1, [Violation(operation="", seq=0, law=Law.FILE, problem="p")] * 2)
    unread = Violation(operation="policy 2", seq=0, law=Law.RECORD, problem="p")
    laws.elsewhere(Law.CHAIN, 3, iter([unread]))
    assert counted(laws) == {"chain": (3, 0, 0), "record": (1, 1, 0), "file": (1, 1, 0)}
