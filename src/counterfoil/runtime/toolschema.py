"""A function's signature as the JSON schema that models are shown."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec

from counterfoil.domain.errors import BadValue


def schema_of(signature: inspect.Signature) -> dict[str, Any]:
    """Describe a function's arguments; what has no annotation, or one without a schema, may be anything.

    Raises:
        BadValue: an argument can be given by position only, and a model gives every one by name.
    """
    properties: dict[str, Any] = {}
    required: list[str] = []
    definitions: dict[str, Any] = {}
    others = False
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise BadValue("parameter", name, wanted="a tool's arguments have names; this one has only a position")
        if parameter.kind is parameter.VAR_KEYWORD:
            others = True
            continue
        schema, defs = _described(parameter.annotation)
        definitions.update(defs)
        properties[name] = schema
        if parameter.default is parameter.empty:
            required.append(name)
    made: dict[str, Any] = {
        "type": "object", "properties": properties, "required": required, "additionalProperties": others,
    }  # fmt: skip
    if definitions:
        made["$defs"] = definitions
    return made


def _described(annotation: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if annotation is inspect.Parameter.empty:
        return {}, {}
    try:
        (schema,), definitions = msgspec.json.schema_components([annotation], ref_template="#/$defs/{name}")
    except TypeError:
        return {}, {}
    return dict(schema), definitions
