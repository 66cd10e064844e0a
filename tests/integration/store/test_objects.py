"""Whose object something is: found on both stores without an index that every answered call would pay for."""

from __future__ import annotations

import pytest
from tests.crash.stepping import action
from tests.integration.store.commands import claim, evidence, settle

from counterfoil.domain.matching import Named
from counterfoil.domain.words import Finding
from counterfoil.runtime.registered import Registered
from counterfoil.runtime.shelf import Shelf, alone


@pytest.mark.parametrize("name", ["ef_1", 'a "b" \\ %_', "über"])
def test_an_object_is_found_beside_a_key_of_our_own(make_store, name):
    """Whatever it is called: the operation whose key is named stands before the one whose object it is."""
    store = make_store()
    first, second = claim(), claim()
    store.write(settle(first, store.write(first), evidence(Finding.SUCCEEDED, external_id=name)))
    store.write(second)
    one = Registered(action(name=first.intent.action), None)
    fits = Shelf(store, [one]).fits(Named(account=first.intent.account, reference=second.id, external_id=name))
    assert ([fit.operation for fit in fits], alone(fits)) == ([second.id, first.id], None)
    fits = Shelf(store, [one]).fits(Named(account=first.intent.account, reference=second.id, external_id=name[1:]))
    assert alone(fits).operation == second.id
