"""Every way in which a provider could be what the facts say: what they leave unknown is each thing it may be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec

from counterfoil.lab.behaviour.model import Behaviour

OPTIONS: dict[str, tuple[object, ...]] = {
    "retention": ("never_ends", 0.0),
    "same": ("replay", "refuse", "second"),
    "other": ("refuse", "replay", "second"),
    "in_flight": ("refuse", "second"),
    "after_error": ("keep", "replay", "forget"),
    "consistency": ("strong", "eventual"),
    "pages": ("whole", "short"),
    "ends": ("never", "gone"),
}
"""What each unknown is played as, the kindest first."""


def natures(behaviour: Behaviour, *varied: str) -> Iterator[Behaviour]:
    """Every nature, of those that differ in what is varied; of the rest of the unknowns the kindest.

    Args:
        behaviour: with unknowns.
        varied: names of `OPTIONS` that matter for what is played.
    """
    unknown = [name for name in varied if unknown_in(behaviour, name)]
    for chosen in itertools.product(*(OPTIONS[name] for name in unknown)):
        yield _with(behaviour, dict(zip(unknown, chosen, strict=True)))


def unknown_in(behaviour: Behaviour, name: str) -> bool:
    """Whether the facts leave it open."""
    if name == "ends":
        return behaviour.ends == "unknown"
    if name in ("consistency", "pages"):
        return any(getattr(look, name) == "unknown" for look in behaviour.looks)
    return behaviour.key.at != "none" and getattr(behaviour.key, name) == "unknown"


def _with(behaviour: Behaviour, chosen: dict[str, object]) -> Behaviour:
    """One nature: as chosen, and kind where nothing is."""
    values = {name: chosen.get(name, options[0]) for name, options in OPTIONS.items()}
    key = {name: value for name, value in values.items() if getattr(behaviour.key, name, None) == "unknown"}
    looks = tuple(
        msgspec.structs.replace(
            look,
            **{name: values[name] for name in ("consistency", "pages") if getattr(look, name) == "unknown"},
        )
        for look in behaviour.looks
    )
    ends = values["ends"] if behaviour.ends == "unknown" else behaviour.ends
    return msgspec.structs.replace(behaviour, key=msgspec.structs.replace(behaviour.key, **key), looks=looks, ends=ends)
