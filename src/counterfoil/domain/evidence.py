"""Evidence: one observation, kept for ever, and which attempts it speaks for."""

from __future__ import annotations

from typing import Any

import msgspec

from counterfoil.domain.steady import Steady
from counterfoil.domain.words import Coverage, Finding, Source


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was observed, what it says, and the rule by which it says so."""

    source: Source
    finding: Finding
    attempt: int
    """The attempt whose send or look produced it (1-based)."""
    coverage: Coverage = Coverage.ATTEMPT
    quiesced: bool = False
    """The attempt's worker reported back or is proven dead: it cannot write any more."""
    rule: str = ""
    """The contract clause or house rule that judged it, e.g. `answers[2]` or `looks[0].found`."""
    reason: str = ""
    """A fixed word for silence or inconclusiveness; never free text from outside."""
    effect: str = ""
    """The name of the effect it proves, as the action declares it."""
    contradicts: bool = False
    """It cannot stand beside the intent whatever the attempts say: two objects with one reference."""
    by: str = ""
    """Who found it or handed it in, where somebody did; with how they were authenticated and why they say so, it
    outlives the body."""
    how: str = ""
    why: str = ""
    fed: str = ""
    """Salted digest of the document it came in, where somebody handed it in: the same one again is no news."""
    settles: bool = False
    """An operator's finding that ends a discrepancy: what evidence says happened stays, and nobody waits any more."""
    external_id: str = ""
    """The provider's own name for what came to be."""
    result: Any = None
    """What a replay returns: JSON, at most RESULT_BYTES_MAX. Stored in the body, never in the hashed record."""
    facts: dict[str, Any] = {}
    """Fields that were compared or observed, by name: the material of a reconstruction. Stored in the body too."""
    retry_after_seconds: float = 0.0
    """For how long the provider asked, in answer to a look, that its account is left alone. It stands in the record and
    not among the facts: it binds other operations, which read no body, and erasure lifts nothing."""
    steady: Steady | None = None
    """When its worker was known to be quiet, where what is still on its way may have to be counted from then."""
    body_digest: str = ""
    """The salted digest of the body that holds result and facts; filled in when it is recorded."""
