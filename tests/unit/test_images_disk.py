"""The disk that loses power: what is sure, what may be, and what never is."""

from __future__ import annotations

import itertools
import random

import pytest

from counterfoil.lab.images.disk import (
    SECTOR,
    Create,
    Delete,
    Disk,
    Everything,
    Nothing,
    Sync,
    Truncate,
    Write,
    replay,
)

OLD, NEW, NEWER = (bytes([letter]) * SECTOR for letter in b"onN")
NAME, OTHER = "a", "a-wal"
DRAWS = 400
"""Enough for chance to show each of the few images these disks can leave."""


def after(*done, files=None):
    """The moment after these operations."""
    *_, moment = replay({NAME: OLD * 3} if files is None else files, done)
    return moment


def drawn(moment, draws=DRAWS):
    """What chance leaves of the first file, again and again."""
    chance = random.Random(1)
    return [moment.draw(chance).files.get(NAME) for _ in range(draws)]


def whole(content):
    """Its sectors, where each is one of those that were written."""
    return [content[at : at + SECTOR] for at in range(0, len(content), SECTOR)]


def untorn(moment):
    """Images none of whose sectors are torn."""
    return [c for c in drawn(moment) if all(s in (OLD, NEW, NEWER) for s in whole(c))]


def test_a_sync_makes_durable():
    """After it there is one image, whatever was written before."""
    moment = after(Write(NAME, 0, NEW), Write(NAME, SECTOR, NEWER), Sync(NAME))
    assert set(drawn(moment)) == {NEW + NEWER + OLD}


def test_what_is_not_synced_may_be_there_or_not():
    """Both are seen; the extremes are all of it and nothing of it."""
    moment = after(Write(NAME, SECTOR, NEW))
    assert {OLD * 3, OLD + NEW + OLD} <= set(drawn(moment))
    assert moment.image(Nothing()).files == {NAME: OLD * 3}
    assert moment.image(Everything()).files == {NAME: OLD + NEW + OLD}


def test_sectors_arrive_in_any_order():
    """Of one write each part alone, and of two writes the later one alone."""
    seen = set(untorn(after(Write(NAME, 0, NEW + NEW), Write(NAME, 2 * SECTOR, NEWER))))
    assert seen == {a + b + c for a, b, c in itertools.product((OLD, NEW), (OLD, NEW), (OLD, NEWER))}


def test_a_sector_is_one_of_its_versions():
    """It holds what stood there at some time: never the second write without the first one beside it."""
    moment = after(Write(NAME, 0, NEW[:100]), Write(NAME, 200, NEWER[:100]))
    first, second = NEW[:100] + OLD[100:], NEW[:100] + OLD[:100] + NEWER[:100] + OLD[: SECTOR - 300]
    seen = {content[:SECTOR] for content in drawn(moment)}
    assert {OLD, first, second} <= seen
    torn = seen - {OLD, first, second}
    assert torn
    assert all(any(t == after_[:n] + OLD[n:] for after_ in (first, second) for n in range(SECTOR)) for t in torn)


def test_a_sector_is_torn_once():
    """New bytes up to some place and old ones from there on."""
    torn = [c[:SECTOR] for c in drawn(after(Write(NAME, 0, NEW))) if c[:SECTOR] not in (OLD, NEW)]
    assert torn
    assert all(sector.lstrip(b"n").strip(b"o") == b"" for sector in torn)


def test_a_file_that_grew_may_have_any_size_since():
    """Where nothing arrived stand zeros or noise, and what was there before is untouched."""
    seen = drawn(after(Write(NAME, 3 * SECTOR, NEW), Write(NAME, 4 * SECTOR, NEW)))
    assert {len(content) // SECTOR for content in seen} == {3, 4, 5}
    assert {content[: 3 * SECTOR] for content in seen} == {OLD * 3}
    assert any(content[3 * SECTOR :] == bytes(SECTOR) + NEW for content in seen)
    noise = [c for c in seen if len(c) > 3 * SECTOR and c[3 * SECTOR :].strip(b"n\0")]
    assert noise


def test_a_truncation_may_be_lost_until_it_is_synced():
    """Cut, or as long as before with all that stood there."""
    cut = after(Truncate(NAME, SECTOR))
    assert {len(content) for content in drawn(cut)} == {SECTOR, 3 * SECTOR}
    assert cut.image(Nothing()).files == {NAME: OLD * 3}
    assert cut.image(Everything()).files == {NAME: OLD}
    assert set(drawn(after(Truncate(NAME, SECTOR), Sync(NAME)))) == {OLD}


def test_what_grows_again_after_a_cut_is_zeros_to_whoever_reads_it():
    """The latest image is what programs see: the old bytes are not among it."""
    moment = after(Truncate(NAME, 0), Write(NAME, 2 * SECTOR, NEW))
    assert moment.image(Everything()).files == {NAME: bytes(2 * SECTOR) + NEW}


def test_a_name_is_sure_when_its_folder_is():
    """A file that was made may be missing, and one that was removed may be there, until their folder is synced."""
    made = after(Create(OTHER), Write(OTHER, 0, NEW), Sync(OTHER))
    assert {OTHER in made.draw(random.Random(n)).files for n in range(20)} == {True, False}
    kept = after(Create(OTHER), Write(OTHER, 0, NEW), Sync(OTHER, folder=True))
    assert kept.image(Nothing()).files[OTHER] == NEW
    removed = after(Delete(NAME, folder=False))
    assert {NAME in removed.draw(random.Random(n)).files for n in range(20)} == {True, False}
    assert after(Delete(NAME, folder=True)).image(Nothing()).files == {}


def test_another_files_sync_of_the_folder_keeps_every_name():
    """The folder is one: a log's first sync makes a removal beside it sure."""
    moment = after(Delete(NAME, folder=False), Create(OTHER), Sync(OTHER, folder=True))
    assert set(moment.image(Nothing()).files) == {OTHER}


def test_a_file_made_anew_under_a_name_is_another_file():
    """Either the old one or the new one, never bytes of both."""
    moment = after(Delete(NAME, folder=False), Create(NAME), Write(NAME, 0, NEW))
    assert moment.image(Nothing()).files == {NAME: OLD * 3}
    assert {len(content) for content in drawn(moment) if content} <= {SECTOR, 3 * SECTOR}
    assert all(content[SECTOR:] in (b"", OLD * 2) for content in drawn(moment) if content)


def test_a_failed_sync_is_never_made_good():
    """What was written before it may be lost although a later sync succeeds; what is written again is sure."""
    failed = (Write(NAME, 0, NEW), Sync(NAME, failed=True))
    later = after(*failed, Write(NAME, SECTOR, NEW), Sync(NAME))
    assert later.image(Nothing()).files == {NAME: OLD + NEW + OLD}
    assert later.image(Everything()).files == {NAME: NEW + NEW + OLD}
    again = after(*failed, Write(NAME, 0, NEWER), Sync(NAME))
    assert set(drawn(again)) == {NEWER + OLD * 2}


def test_two_images_of_a_moment_differ_by_what_was_chosen():
    """The same choices are the same image."""
    moment, chance = after(Write(NAME, 0, NEW + NEW)), random.Random(7)
    by_choice = {}
    for _ in range(DRAWS):
        image = moment.draw(chance)
        assert by_choice.setdefault(image.choices, image.files) == image.files
    assert len(by_choice) > 4


@pytest.mark.parametrize("seed", range(20))
def test_everything_is_what_programs_read(seed):
    """Over a random life of one file: with all of it arrived, the image is the file."""
    draws, content, disk = random.Random(seed), bytearray(OLD * 3), Disk({NAME: OLD * 3})
    for _ in range(60):
        match draws.randrange(4):
            case 0:
                disk.apply(Sync(NAME, failed=draws.random() < 0.3))
            case 1:
                size = draws.randrange(5 * SECTOR)
                content[:] = content[:size].ljust(size, b"\0")
                disk.apply(Truncate(NAME, size))
            case _:
                offset, data = draws.randrange(4 * SECTOR), draws.randbytes(draws.randrange(1, 2 * SECTOR))
                content.extend(bytes(max(0, offset - len(content))))
                content[offset : offset + len(data)] = data
                disk.apply(Write(NAME, offset, data))
        assert disk.moment().image(Everything()).files == {NAME: bytes(content)}
