"""Numbers and claims that publications print, as data; nothing here computes.

- ``claims.toml``: claims in checkable form, with the paper and place of each.
- ``more.toml``: further claims of the same papers, in the same form.
- ``numbers.toml``: printed numbers (tables, figures' captions, ratios in the text), with places.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def read(name: str) -> dict[str, Any]:
    """Return a file of this package, parsed."""
    text = (resources.files("csdplan_reproduce.printed") / name).read_text(encoding="utf-8")
    return tomllib.loads(text)
