"""The receipt as it is drawn in a terminal: stub and leaf, one band per question."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import Box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from counterfoil.cli import marks
from counterfoil.cli.list import KEY_COLUMNS, next_step, read, why
from counterfoil.cli.marks import AMBER, QUIET, STRONG, Mark, duration, figure, marked, moment, word
from counterfoil.cli.steps import Negative, Step, contract_at_hand, negative, steps
from counterfoil.cli.story import heard, story
from counterfoil.cli.terminal import clipped, safe
from counterfoil.cli.timeline import draw
from counterfoil.domain.attempt import Attempt
from counterfoil.domain.audit import audit
from counterfoil.domain.event import (
    Begun,
    Decided,
    Event,
    EventKind,
    History,
    Noted,
    attempts_of,
    begun_of,
    evidence_of,
    first_begun,
)
from counterfoil.domain.evidence import Evidence
from counterfoil.domain.payload import frozen_payload
from counterfoil.domain.result import kept
from counterfoil.domain.words import Coverage, Discrepancy, Dispatch, Finding, Outcome

if TYPE_CHECKING:
    from counterfoil.runtime.ledger import Ledger

WIDTH_MAX, STUB_COLUMNS = 120, 18
BANDS_COLUMNS = 90
"""From here on the stub stands beside the leaf; below, above it."""
TEXT_COLUMNS = 400
"""Of one text from outside; the JSON has all of it."""
EVENTS_SHOWN = 12
PAYLOAD_LINES_MAX = 200
PERFORATED = Box("    \n  ┊ \n    \n  ┊ \n    \n    \n  ┊ \n    \n")
"""The line along which a receipt is torn off."""
