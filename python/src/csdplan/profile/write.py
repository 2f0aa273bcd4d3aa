"""From a `Profile` to TOML text that reads back as the same profile.

Writes schema 1 and nothing else. Keys stand in the schema's order, so equal profiles give equal
text; comments of a file that was read are not kept.
"""

from __future__ import annotations

import json
from typing import Any

from csdplan.profile.schema import Profile


def as_toml(profile: Profile) -> str:
    """Return a profile as TOML."""
    return tables(profile.as_dict())


def tables(body: dict[str, Any]) -> str:
    """Return the tables of a profile, checked or not, as TOML."""
    parts = [f"schema = {body['schema']}"]
    parts.append(_table("[meta]", body["meta"]))
    parts.append(_table("[host]", body["host"]))
    parts.extend(_table(f"[device.{name}]", table) for name, table in body["device"].items())
    parts.extend(_table("[[point]]", point) for point in body["point"])
    return "\n\n".join(parts) + "\n"


def _table(heading: str, table: dict[str, Any]) -> str:
    return "\n".join([heading, *(f"{key} = {_value(value)}" for key, value in table.items())])


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, float):
        return repr(value)  # nan and inf too, which TOML has and the schema refuses by name
    # JSON's text and numbers are TOML's: strings with the same escapes (DEL aside), floats with a
    # fraction or an exponent.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
