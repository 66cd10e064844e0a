"""Whether a clause about answers holds of what is kept of one: yes, no, or nobody can say any more."""

from __future__ import annotations

from counterfoil.domain import body, pointer, reply
from counterfoil.domain.action import Action
from counterfoil.domain.contract import AnswerRule


class _Unknown:
    """What was not kept."""


UNKNOWN = _Unknown()


def holds(rule: AnswerRule, status: int, result: object, action: Action) -> bool | None:
    """Say whether a clause judges a whole answer; None where that depends on what was not kept.

    Args:
        rule: the clause.
        status: the answer's.
        result: as much of its body as a replay returns; None where nothing was kept.
        action: what it declares of the result says where each kept value stood.
    """
    if not reply.matches(status, rule.status):
        return False
    values = {where: kept_at(where, result, action) for where in rule.where}
    if any(found is not UNKNOWN and not body.same(found, rule.where[where]) for where, found in values.items()):
        return False
    # Headers are not kept.
    readable = not rule.headers and (result is not None or (rule.content == "any" and not rule.where))
    return True if readable and UNKNOWN not in values.values() else None


def kept_at(where: str, result: object, action: Action) -> object:
    """The value that stood at a pointer of the answer's body, MISSING where none did, UNKNOWN where nobody knows."""
    if result is None:
        return UNKNOWN
    names = action.contract.result
    if names:
        name = next((name for name, at in names.items() if at == where), None)
        if name is None:
            return UNKNOWN
        where = pointer.write([name])
    found = _narrowed(where, result, action.result) if action.result else body.at(result, where)
    # A contract's own names stand there with null where the answer had nothing.
    return UNKNOWN if names and found is None else found


def _narrowed(where: str, result: object, declared: tuple[str, ...]) -> object:
    """The same where only declared parts are kept, each under its pointer's last name."""
    name = "".join(pointer.parse(where)[-1:])
    under = [one for one in declared if "".join(pointer.parse(one)[-1:]) == name]
    return body.at(result, pointer.write([name])) if under == [where] else UNKNOWN
