"""A disk that loses power: what it surely holds at each moment, and everything else it may hold.

Only what was synced is sure. Of each 512-byte sector written since, the disk may hold any version, whatever it holds of
its neighbours, or a tear between two of them; a file may have any size it had since, with zeros or noise where it grew
and nothing arrived; a name that was made or removed may or may not have been, until its folder was synced.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol, TypeAlias

SECTOR = 512
"""What SQLite takes a disk to write as one; it may tear all the same."""
TEARS = 0.25
"""Share of drawn images in which a sector may be torn; in the others each is whole."""
TORN = 0.1
"""Share of such an image's sectors that are torn."""
KEEPS = (0.1, 0.5, 0.9)
"""How much of what was not synced an image keeps, as one of these chances."""


class Create(NamedTuple):
    """A file is made, empty."""

    file: str


class Write(NamedTuple):
    """Bytes are written."""

    file: str
    offset: int
    data: bytes


class Truncate(NamedTuple):
    """A file is cut, or grows by zeros."""

    file: str
    size: int


class Sync(NamedTuple):
    """What was written to a file is made durable."""

    file: str
    folder: bool = False
    """The names in its folder too, as SQLite does with the first sync of a journal or log it may have made."""
    failed: bool = False
    """The system said no. What was written before may never arrive, whatever a later sync says."""


class Delete(NamedTuple):
    """A name is removed."""

    file: str
    folder: bool
    """And its folder synced."""


Operation: TypeAlias = Create | Write | Truncate | Sync | Delete


class Choice(Protocol):
    """Says which of several things a disk holds."""

    def pick(self, among: int) -> int:
        """Choose by number: 0 is the sure one, the last is the latest."""
        ...

    def tear(self) -> int:
        """Say after how many bytes a sector is torn; 0: it is whole."""
        ...


class Nothing:
    """Nothing arrived but what was synced."""

    def pick(self, among: int) -> int:
        """The sure one."""
        del among
        return 0

    def tear(self) -> int:
        """Whole."""
        return 0


class Everything:
    """All of it arrived."""

    def pick(self, among: int) -> int:
        """The latest."""
        return among - 1

    def tear(self) -> int:
        """Whole."""
        return 0


class Chance:
    """Chance decides, sector by sector.

    Args:
        draws: the run's own source of chance.
    """

    def __init__(self, draws: random.Random) -> None:
        self._draws = draws
        self._keeps = draws.choice(KEEPS)
        self._tears = TORN if draws.random() < TEARS else 0.0

    def pick(self, among: int) -> int:
        """The latest with this image's own chance, otherwise any."""
        return among - 1 if self._draws.random() < self._keeps else self._draws.randrange(among)

    def tear(self) -> int:
        """Seldom, anywhere within the sector."""
        return self._draws.randrange(1, SECTOR) if self._tears and self._draws.random() < self._tears else 0


class Image(NamedTuple):
    """What one power cut left."""

    files: Mapping[str, bytes]
    choices: tuple[int, ...]
    """By which two images of one moment are told apart."""


class _Possible(NamedTuple):
    """One file as it may be."""

    durable: bytes
    sizes: tuple[int, ...]
    sectors: tuple[tuple[int, tuple[bytes, ...]], ...]
    """Number of each that is not sure, with what was written there since."""

    def certain(self) -> bool:
        return len(self.sizes) == 1 and not self.sectors

    def lay(self, choice: Choice, chosen: list[int], noise: bytes) -> bytes:
        """Choose one of its forms, and note what was chosen."""
        if self.certain():
            return self.durable
        size = self._picked(choice, chosen, self.sizes)
        form = bytearray(self.durable[:size])
        while len(form) < size:
            form += noise[: size - len(form)]
        for number, versions in self.sectors:
            start = number * SECTOR
            picked = choice.pick(len(versions) + 1)
            chosen.append(picked)
            if picked and start < size:
                sector, torn = versions[picked - 1][: size - start], choice.tear()
                chosen.append(torn)
                form[start : start + len(sector)] = _torn(bytes(form[start : start + len(sector)]), sector, torn)
        return bytes(form)

    @staticmethod
    def _picked(choice: Choice, chosen: list[int], values: tuple[int, ...]) -> int:
        chosen.append(choice.pick(len(values)))
        return values[chosen[-1]]


class Moment(NamedTuple):
    """Everything a disk may hold at one boundary."""

    names: tuple[tuple[str, _Possible], ...]
    """Sure names."""
    changes: tuple[tuple[str, _Possible | None], ...]
    """Names made (with their file) and removed since, in order."""

    def image(self, choice: Choice, noise: bytes = bytes(SECTOR)) -> Image:
        """Let the power go.

        Args:
            choice: says what is kept.
            noise: a sector's worth of what stands where a file grew and nothing arrived.
        """
        chosen: list[int] = []
        names: dict[str, _Possible] = dict(self.names)
        for name, file in self.changes:
            chosen.append(choice.pick(2))
            if chosen[-1] and file is not None:
                names[name] = file
            elif chosen[-1]:
                names.pop(name, None)
        return Image({name: file.lay(choice, chosen, noise) for name, file in sorted(names.items())}, tuple(chosen))

    def draw(self, draws: random.Random) -> Image:
        """Let the power go by chance."""
        noise = draws.randbytes(SECTOR) if draws.random() < TEARS else bytes(SECTOR)
        return self.image(Chance(draws), noise)


class Disk:
    """One folder, as it stands in the system's cache and as the disk may hold it.

    Args:
        files: what it surely holds at first.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._now = {name: _File(content) for name, content in files.items()}
        self._sure = dict(self._now)
        self._changes: list[tuple[str, _File | None]] = []

    def apply(self, done: Operation) -> None:
        """Take one operation in; a boundary lies after each."""
        match done:
            case Create(name):
                self._now[name] = _File(b"")
                self._changes.append((name, self._now[name]))
            case Write(name, offset, data):
                self._now[name].write(offset, data)
            case Truncate(name, size):
                self._now[name].truncate(size)
            case Sync(name, folder, failed):
                self._now[name].sync(failed=failed)
                if folder and not failed:
                    self._keep_names()
            case Delete(name, folder):
                del self._now[name]
                self._changes.append((name, None))
                if folder:
                    self._keep_names()

    def _keep_names(self) -> None:
        self._sure, self._changes = dict(self._now), []

    def moment(self) -> Moment:
        """Everything it may hold now."""
        return Moment(
            tuple((name, file.possible()) for name, file in self._sure.items()),
            tuple((name, None if file is None else file.possible()) for name, file in self._changes),
        )


class _File:
    """One file: its bytes as programs read them, and what of them is sure."""

    def __init__(self, content: bytes) -> None:
        self._content = bytearray(content)
        self._durable = bytes(content)
        self._sizes = [len(content)]
        self._versions: dict[int, list[bytes]] = {}
        self._fresh: set[int] = set()
        """Sectors that the next sync makes sure; those before a failed one are not among them."""

    def write(self, offset: int, data: bytes) -> None:
        self._content.extend(bytes(max(0, offset - len(self._content))))
        self._content[offset : offset + len(data)] = data
        self._changed(offset, offset + len(data))

    def truncate(self, size: int) -> None:
        before = len(self._content)
        self._content[:] = self._content[:size].ljust(size, b"\0")
        self._changed(min(size, before), max(size, before))

    def _changed(self, start: int, end: int) -> None:
        for number in range(start // SECTOR, -(-end // SECTOR)):
            version = bytes(self._content[number * SECTOR : (number + 1) * SECTOR])
            self._versions.setdefault(number, []).append(version.ljust(SECTOR, b"\0"))
            self._fresh.add(number)
        if len(self._content) != self._sizes[-1]:
            self._sizes.append(len(self._content))

    def sync(self, *, failed: bool) -> None:
        if not failed:
            size = len(self._content)
            sure = bytearray(self._durable[:size].ljust(size, b"\0"))
            for number in self._fresh:
                place = slice(number * SECTOR, (number + 1) * SECTOR)
                sure[place] = self._content[place]
            self._durable, self._sizes = bytes(sure), [size]
            self._versions = {n: v for n, v in self._versions.items() if n not in self._fresh and n * SECTOR < size}
        self._fresh = set()

    def possible(self) -> _Possible:
        sectors = tuple((number, tuple(versions)) for number, versions in sorted(self._versions.items()))
        return _Possible(self._durable, tuple(self._sizes), sectors)


def _torn(before: bytes, after: bytes, at: int) -> bytes:
    """A sector of which only the first bytes are new; whole where it is not torn."""
    return after[:at] + before[at:] if at else after


def replay(files: Mapping[str, bytes], done: tuple[Operation, ...]) -> Iterator[Moment]:
    """Every moment of a recording: before its first operation, and after each."""
    disk = Disk(files)
    yield disk.moment()
    for operation in done:
        disk.apply(operation)
        yield disk.moment()
