"""The journal: whole lines, durable lines, one writer."""

from __future__ import annotations

import pytest

from counterfoil.lab.journal import Journal, JournalTaken, read


@pytest.fixture
def path(tmp_path):
    """Where a journal may stand, in a folder that does not exist yet."""
    return tmp_path / "new" / "journal.jsonl"


def test_lines_come_back_in_order(path):
    """What was appended is read again, by this journal, by anybody and after a restart."""
    journal = Journal(path)
    lines = [{"n": number, "text": "a\nb\u2028\u00fc"} for number in range(3)]
    for line in lines:
        journal.append(line)
    assert journal.entries() == read(path) == lines
    journal.close()
    again = Journal(path)
    assert again.entries() == lines
    again.close()


@pytest.mark.parametrize("torn", [b'{"n": 2', b"\x00\x00", b"{"])
def test_a_torn_last_line_is_dropped_and_written_over(path, torn):
    """A line without its end was acknowledged to nobody; the next line does not grow onto it."""
    journal = Journal(path)
    journal.append({"n": 1})
    journal.close()
    with path.open("ab") as file:
        file.write(torn)
    assert read(path) == [{"n": 1}]
    again = Journal(path)
    again.append({"n": 3})
    assert read(path) == [{"n": 1}, {"n": 3}]
    again.close()


def test_a_journal_has_one_writer(path):
    """A second writer is refused until the first has let go."""
    first = Journal(path)
    with pytest.raises(JournalTaken, match="being written by another process"):
        Journal(path)
    first.close()
    Journal(path).close()


def test_a_journal_that_is_not_there_has_no_lines(path):
    """Reading asks for nothing to exist and makes nothing."""
    assert read(path) == []
    assert not path.exists()


def test_a_journal_is_private(path):
    """The truth holds whole payloads and belongs to its owner."""
    Journal(path).close()
    assert path.stat().st_mode & 0o777 == 0o600
