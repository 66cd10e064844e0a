"""Who decides what goes wrong: dice that fall the same way again, and a search that leaves nothing out."""

from __future__ import annotations

from itertools import product

import pytest

from counterfoil.lab.world.chance import Dice, Search

RATES = {"crash": 0.5}
FATES = {"send": {"answered": 1.0, "lost": 1.0}}


def thrown(seed, times=200):
    """What dice of one seed say."""
    dice = Dice(seed, RATES, FATES)
    return [
        (
            dice.strikes("crash"),
            dice.fate("send", ("answered", "lost")),
            dice.among("x", "abc"),
            dice.between("y", 1, 2),
        )
        for _ in range(times)
    ]


def test_the_same_seed_is_the_same_chance():
    """Every choice again, in the same order; another seed is another world."""
    assert thrown("1") == thrown("1")
    assert thrown("1") != thrown("2")


def test_dice_fall_on_everything_that_is_on_and_on_nothing_else():
    """A fault that a world has not drawn never strikes in it; in calm none does, and every send is answered."""
    dice = Dice("1", RATES, FATES)
    said = thrown("1")
    assert {strike for strike, *_ in said} == {True, False}
    assert {fate for _, fate, *_ in said} == {"answered", "lost"}
    assert {letter for *_, letter, _ in said} == set("abc")
    assert all(1 <= number <= 2 for *_, number in said)
    assert not any(dice.strikes("stop") for _ in range(200))
    dice.calm = True
    assert not any(dice.strikes("crash") for _ in range(200))
    assert {dice.fate("send", ("answered", "lost")) for _ in range(200)} == {"answered"}


def test_a_fate_that_this_world_cannot_have_is_the_ordinary_one():
    """What breaks an assumption happens only where the world says so."""
    dice = Dice("1", {}, {"send": {"beyond": 1.0}})
    assert dice.fate("send", ("answered", "lost")) == "answered"


def searched(search, run, most=10_000):
    """What each run of a search came to."""
    found = []
    while not search.done and len(found) < most:
        search.begin()
        found.append(run(search))
        search.end()
    return found


def test_a_search_tries_every_placement_of_so_many_faults():
    """Three places and one fault: none, and each of the three; with two faults every pair as well."""

    def run(search):
        return tuple(search.strikes("crash") for _ in range(3))

    for faults in (0, 1, 2, 3):
        wanted = {p for p in product((False, True), repeat=3) if sum(p) <= faults}
        found = searched(Search(faults, 0), run)
        assert (len(found), set(found)) == (len(wanted), wanted)


def test_a_search_tries_every_fate_and_counts_it_as_a_fault():
    """Each answer there is at one of two sends; both go wrong only where two faults may strike."""

    def run(search):
        return search.fate("send", ("ok", "lost", "late")), search.fate("send", ("ok", "lost", "late"))

    assert set(searched(Search(1, 0), run)) == {
        ("ok", "ok"), ("lost", "ok"), ("late", "ok"), ("ok", "lost"), ("ok", "late")
    }  # fmt: skip
    assert len(searched(Search(2, 0), run)) == 9


def test_a_search_counts_the_switches():
    """Whoever went last goes on, unless a switch is left; everything else that is chosen is tried in full."""

    def run(search):
        return search.among("who goes", "ab"), search.among("who goes", "ab"), search.among("applied", (True, False))

    assert len(searched(Search(0, 0), run)) == 2
    assert {found[:2] for found in searched(Search(0, 1), run)} == {("a", "a"), ("b", "a"), ("a", "b")}


def test_a_path_names_a_run_and_leads_there_again():
    """The choices of a run are its name; in calm nothing is chosen any more."""
    search = Search(1, 0)
    paths = searched(search, lambda s: (s.strikes("crash"), s.strikes("stop"), s.path())[2])
    assert paths == ["", "01", "1"]
    search.begin()
    search.calm = True
    assert (search.strikes("crash"), search.fate("send", ("ok", "lost")), search.path()) == (False, "ok", "")


@pytest.mark.parametrize("fault", ["clock_step", "redelivery"])
def test_what_is_part_of_the_scenario_is_not_searched(fault):
    """Only so many faults are tried at every place; the others would multiply the search and find nothing."""
    assert searched(Search(3, 0), lambda s: s.strikes(fault)) == [False]
