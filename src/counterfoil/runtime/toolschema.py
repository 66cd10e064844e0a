"""A function's signature as the JSON schema that models are shown."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec


def schema_of(signature: inspect.Signature) -> dict[str, Any]:
    """Describe a function's arguments; what has no annotation may be anything."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    definitions: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
        (schema,), defs = msgspec.json.schema_components([annotation], ref_template="#/$defs/{name}")
        definitions.update(defs)
        properties[name] = dict(schema)
        if parameter.default is parameter.empty:
            required.append(name)
    made: dict[str, Any] = {
        "type": "object", "properties": properties, "required": required, "additionalProperties": False,
    }  # fmt: skip
    if definitions:
        made["$defs"] = definitions
    return made
