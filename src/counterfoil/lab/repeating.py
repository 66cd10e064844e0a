"""The command line that shows one thing of a run again: printed beside whatever was broken."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any


def command(name: str, *words: object, sabotage: str | None = None) -> str:
    """Spell a command of the laboratory as it can be pasted.

    Args:
        name: the command.
        words: its own arguments.
        sabotage: the rule that was off.
    """
    rule = () if sabotage is None else ("--sabotage", sabotage)
    return shlex.join(["counterfoil-lab", name, *map(str, words), *rule])


def world(options: Mapping[str, Any], sabotage: str | None = None) -> str:
    """The command that tells one world which is named by its options."""
    return command("simulate", "--options", json.dumps(options), sabotage=sabotage)
