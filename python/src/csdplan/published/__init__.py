"""Published examples and numbers that commands use by default, as data; nothing here computes.

- ``tco.toml``: systems of ``csdplan tco``.
- ``overload.toml``: slow-down factors of ``csdplan overload``.
- ``encode.toml``: times of encoding that ``csdplan ec`` fits.
- ``failures.toml``, ``network.toml``, ``cloud.toml``: failures of parts, NVMe/TCP on a core, and
  instances of a cloud, each number with its source.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def read(name: str) -> dict[str, Any]:
    """Return a file of this package, parsed."""
    text = (resources.files("csdplan.published") / name).read_text(encoding="utf-8")
    return tomllib.loads(text)
