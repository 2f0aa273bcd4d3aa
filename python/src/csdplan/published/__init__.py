"""What publications print: claims about systems, and the numbers that checks of them start from.

- ``claims.toml``: claims in checkable form, with the paper and place of each.
- ``more.toml``: further claims of the same papers, in the same form.
- ``numbers.toml``: printed numbers (tables, figures' captions, ratios in the text), with places.
- ``tco.toml``, ``overload.toml``: scenarios that the commands of those names use by default.

Data only: nothing here computes.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def read(name: str) -> dict[str, Any]:
    """Return a file of this package, parsed."""
    text = (resources.files("csdplan.published") / name).read_text(encoding="utf-8")
    return tomllib.loads(text)
