"""The catalogue: hardware that can be bought today, each number with its source.

- ``part``, ``source``, ``prices``: products, documents, and prices with their dates.
- ``own``: catalogues of one's own, over the shipped one.
- ``read``: reads the data files and the prices, checks them, and looks parts up.

Numbers live in ``data/*.toml``. A number without a published source is absent, not guessed; one
that we chose says ``assumed``. Prices are in ``data/prices.toml`` alone; users override them, and
add parts, with files of their own.
"""

from csdplan.hardware.part import KINDS, Number, Part
from csdplan.hardware.prices import Price
from csdplan.hardware.read import Catalogue, load_catalogue
from csdplan.hardware.source import Source

__all__ = ["KINDS", "Catalogue", "Number", "Part", "Price", "Source", "load_catalogue"]
