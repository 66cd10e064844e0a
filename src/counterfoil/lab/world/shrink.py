"""Make a failing world smaller: fewer operations, fewer troubles, and still the same law broken."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from counterfoil.lab.world.batch import played
from counterfoil.lab.world.options import Options
from counterfoil.lab.world.score import law_of


def laws(violations: list[str]) -> set[str]:
    """Which laws a world broke."""
    return set(map(law_of, violations))


def shrunk(options: Options, law: str, seconds: float) -> tuple[Options, list[str]]:
    """Return the smallest world found within so many seconds that still breaks the law, and how it does."""
    until = time.monotonic() + seconds
    best, said = options, played(options)[0].violations
    smaller: Options | None = options
    while smaller is not None:
        smaller = None
        for candidate in _smaller(best):
            if time.monotonic() > until:
                return best, said
            world, _ = played(candidate)
            if law in laws(world.violations):
                best, said, smaller = candidate, world.violations, candidate
                break
    return best, said


def _smaller(options: Options) -> Iterator[Options]:
    """Every world that is one step smaller, the boldest first."""
    for operations in (options.operations // 4, options.operations // 2, options.operations - 1):
        if 0 < operations < options.operations:
            yield msgspec.structs.replace(options, operations=operations)
    for kind in options.kinds:
        if len(options.kinds) > 1:
            yield msgspec.structs.replace(options, kinds=tuple(k for k in options.kinds if k != kind))
    for field in ("rates", "looks", "sends"):
        named = getattr(options, field)
        for name in list(named)[0 if field == "rates" else 1 :]:
            yield msgspec.structs.replace(options, **{field: {n: v for n, v in named.items() if n != name}})
    if options.callers > 1:
        yield msgspec.structs.replace(options, callers=1)
    if options.workers > 1:
        yield msgspec.structs.replace(options, workers=1)
