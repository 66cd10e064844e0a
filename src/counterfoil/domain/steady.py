"""Readings of a clock that nobody can set: no step of the wall clock changes how far two of them are apart."""

from __future__ import annotations

import msgspec


class Steady(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One reading: seconds that are comparable within one boot, and with nothing else."""

    boot: str
    """Opaque: what names the run of a machine's clock. Readings of two boots say nothing of each other."""
    seconds: float

    def since(self, earlier: Steady | None) -> float | None:
        """Seconds that passed between an earlier reading and this one; None where nothing says how many."""
        if earlier is None or earlier.boot != self.boot:
            return None
        return self.seconds - earlier.seconds


def stamped(record: bytes, steady: Steady) -> bytes:
    """A claim's record with the moment it was claimed as its last field: what encoding it whole would make of it.

    Args:
        record: an encoded struct whose last field, `steady`, is left out.
        steady: read under the write lock, so that nothing that follows the claim is earlier.
    """
    return record[:-1] + f',"steady":["{steady.boot}",{steady.seconds!r}]}}'.encode()
