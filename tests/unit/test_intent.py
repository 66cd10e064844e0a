"""Intents and effect identities: what must not happen twice, whoever asks and by whatever route."""

from __future__ import annotations

import itertools

from counterfoil.domain.intent import effect_namer


def test_the_same_effect_has_the_same_name():
    """Actor, action and key do not enter: two routes to one effect are one effect."""
    assert effect_namer("t", "a", "pay")(["10"]) == effect_namer("t", "a", "pay")(["10"])


def test_no_two_effects_share_a_name():
    """Tenant, account, effect and parts stay apart however their texts run into each other."""
    texts = ("a", "b", "a,b", 'a","b', "")
    names = [
        effect_namer(tenant, account, effect)(parts)
        for tenant, account, effect in itertools.product(texts, repeat=3)
        for parts in ([], ["a"], ["a", "b"], ["a,b"], ['a","b'], [""])
    ]
    assert len(set(names)) == len(names)
    assert all(name.startswith("ef1:") and len(name) == 44 for name in names)
