"""The one JSON object that every command prints under ``--json``.

Its keys are ``schema``, ``command``, ``result`` and ``warnings``. It holds finite numbers, text,
lists, objects and null only, so that any JSON reader takes it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

#: Version of the envelope and of every result inside it.
SCHEMA = 1


def as_json(command: str, result: dict[str, Any], warnings: Sequence[str] = ()) -> str:
    """Return the envelope as indented JSON text.

    Raises
    ------
    ValueError
        If `result` holds NaN or infinity, which JSON cannot say: a bug of the caller.
    """
    body = {"schema": SCHEMA, "command": command, "result": result, "warnings": list(warnings)}
    return json.dumps(body, indent=2, ensure_ascii=False, allow_nan=False)
