"""The catalogue: hardware that can be bought today, each number with its source.

- ``read``: reads the data files and the prices, checks them, and looks parts up.

Numbers live in ``data/*.toml``. A number without a published source is absent, not guessed; one
that we chose says ``assumed``. Prices are in ``data/prices.toml`` alone, all assumed, and users
override them with a file of their own.
"""

from csdplan.hardware.read import KINDS, Catalogue, Number, Part, Source, load_catalogue

__all__ = ["KINDS", "Catalogue", "Number", "Part", "Source", "load_catalogue"]
