"""What the figures of a run must be: nought where a rule forbids them, and enough of what the rules are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def measured(figures: Mapping[str, Any], must: Mapping[str, int], least: Mapping[str, float]) -> dict[str, Any]:
    """Return whether the figures are `ok` and `why` not; `error` where no rule is broken, but too little was met.

    Args:
        figures: by name.
        must: what some of them are, to the last one.
        least: what others are at least, or the figures say nothing.
    """
    broken = [f"{name} is {figures[name]}, not {wanted}" for name, wanted in must.items() if figures[name] != wanted]
    few = [f"{name} is {figures[name]}, below {wanted:g}" for name, wanted in least.items() if figures[name] < wanted]
    said: dict[str, Any] = {"why": [*broken, *few], "ok": not broken and not few}
    return said if broken or not few else said | {"error": f"too little was met: {'; '.join(few)}"}
