"""How a guarded action gets the laboratory provider's credential: by a variable of its process, as any deployment's."""

from __future__ import annotations

from collections.abc import Mapping

from counterfoil.lab.provider import TOKEN

VARIABLE = "COUNTERFOIL_LAB_AUTHORIZATION"
ENVIRONMENT: Mapping[str, str] = {VARIABLE: f"Bearer {TOKEN}"}
"""What a process that sends is started with."""
SECRETS: Mapping[str, str] = {"/headers/authorization": f"env:{VARIABLE}"}
"""The reference to it that an action declares."""
