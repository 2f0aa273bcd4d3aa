"""Numbers that the page asks for: their units, ranges, and the round values of their sliders.

A field takes any number within a quantity's range, also with a unit; the slider next to it holds
round values from the lowest to the greatest that are common.
"""

from __future__ import annotations

from dataclasses import dataclass

from csdplan.errors import ModelError
from csdplan.page.prices import listed
from csdplan.units import quantity

#: A number finer than this is none that anyone means.
_DECIMALS = 9


def _rounds(low: int, high: int) -> tuple[float, ...]:
    """Return 0, and 1, 1.5, 2, 3, 5, 7 times the powers of ten from `low` to `high`."""
    found = [one * 10.0**power for power in range(low, high) for one in (1, 1.5, 2, 3, 5, 7)]
    return (0.0, *(float(f"{value:.6g}") for value in (*found, 10.0**high)))


def _even(low: float, high: float, step: float) -> tuple[float, ...]:
    count = round((high - low) / step)
    return tuple(float(f"{low + at * step:.6g}") for at in range(count + 1))


@dataclass(frozen=True)
class Quantity:
    """One number that can be set.

    Attributes
    ----------
    name, label : str
        Field of `State`; what the page calls it.
    unit : str
        Unit, or empty.
    low, high : float
        Range of the field.
    stops : tuple of float
        Values of the slider, ascending.
    group : str
        Heading under which it stands.
    about : str
        Sentence that explains it.
    whole : bool
        True if only whole numbers are meant.
    zero : str
        Meaning of 0 where it stands for no number, such as ``no limit``; else empty.
    measures, factor : str, float
        Key of `csdplan.units.UNITS` and one `unit` in its base unit, if text with units is taken.
    """

    name: str
    label: str
    unit: str
    low: float
    high: float
    stops: tuple[float, ...]
    group: str
    about: str = ""
    whole: bool = False
    zero: str = ""
    measures: str = ""
    factor: float = 1.0

    def checked(self, value: object) -> float:
        """Return a field's text, or a number, as a number in this quantity's unit.

        Raises
        ------
        ModelError
            If it is none, or out of range.
        """
        expected = f"a number from {self.low:g} to {self.high:,g} {self.unit}".rstrip()
        text = str(value).strip()
        if self.zero and not text:
            return 0.0
        try:
            number = float(text)
        except ValueError as error:
            if not self.measures:
                raise ModelError(self.name, value, expected) from error
            number = quantity(self.name, text, self.measures) / self.factor
        # So many digits survive the way through text and units, there and back.
        number = round(float(f"{number:.12g}"), _DECIMALS)
        if not (self.low <= number <= self.high or (self.zero and number == 0)):
            raise ModelError(self.name, value, expected)
        if self.whole and number != int(number):
            raise ModelError(self.name, value, "a whole number")
        return number

    def text(self, value: float) -> str:
        """Return the field's text for a number; empty where 0 stands for no number."""
        return "" if self.zero and value == 0 else plain(value)

    def stop(self, value: float) -> int:
        """Return the slider's place nearest to a number."""
        return min(range(len(self.stops)), key=lambda at: abs(self.stops[at] - value))


def plain(value: float) -> str:
    """Return a number as text that gives the same number back, without an exponent."""
    text = f"{value:.12g}"
    return text if "e" not in text else f"{value:.{_DECIMALS}f}".rstrip("0").rstrip(".")


def _usd(name: str, label: str, group: str, stops: tuple[float, ...], zero: str = "") -> Quantity:
    low = 1 if zero else 0
    _, about = listed().get(name, (0.0, ""))
    return Quantity(
        name, label, "USD", low, 1e10, stops, group, about=about, zero=zero, measures="USD"
    )


_HOST, _DRIVE = "Host and its SSDs", "Drive that computes"
_PRICES, _STORE, _LIMITS = "Prices to compare", "What to store", "Limits of the purchase"
_CORES = (*_even(1, 64, 1), *_even(72, 256, 8))
_TIMES = (*_even(0.25, 2, 0.05), *_even(2.1, 4, 0.1), *_even(4.25, 8, 0.25), 10, 12, 16, 24, 32)
_SLOWER = (*_even(1, 4, 0.1), *_even(4.5, 10, 0.5))
_SHARES = _even(0, 50, 1)

QUANTITIES = (
    Quantity(
        "cores", "Host cores at work", "cores", 1, 4096, _CORES, _HOST, whole=True,
        about="Cores that compute on the data of the SSDs.",
    ),
    Quantity(
        "k_limit", "SSDs that fill the host's link", "SSDs", 1, 4096,
        (0.0, *_even(1, 64, 1)), _HOST, zero="of profile",
        about="k_limit: more SSDs than this bring no more data to the host.",
    ),
    Quantity(
        "sd_tx", "Host's loading takes longer", "times", 1, 1000, _SLOWER, _HOST,
        about="For a host that is busy with other transfers.",
    ),
    Quantity(
        "sd_comp", "Host's computing takes longer", "times", 1, 1000, _SLOWER, _HOST,
        about="For a host that is busy with other work.",
    ),
    Quantity(
        "bandwidth", "Reads its own flash faster", "times", 0.01, 1000, _TIMES, _DRIVE,
        about="1 is the drive as it was measured.",
    ),
    Quantity(
        "compute", "Computes faster", "times", 0.01, 1000, _TIMES, _DRIVE,
        about="1 is the drive as it was measured.",
    ),
    Quantity(
        "iso", "Break-even point wished for", "drives", 1, 10_000, _even(1, 64, 1), _DRIVE,
        whole=True, about="The map draws the line that a better drive must cross for it.",
    ),
    Quantity(
        "ssds", "SSDs to compare with", "SSDs", 1, 100_000, (*_even(1, 64, 1), 96, 128, 192, 256),
        _PRICES, whole=True,
    ),
    _usd("host_usd", "Host of the SSDs", _PRICES, _rounds(2, 5)),
    _usd("csd_host_usd", "Host of the drives that compute", _PRICES, _rounds(2, 5)),
    _usd("ssd_usd", "SSD", _PRICES, _rounds(1, 5)),
    _usd("csd_usd", "Drive that computes", _PRICES, _rounds(1, 5)),
    Quantity(
        "store", "Data to keep", "TB", 0, 1e7, _rounds(0, 4), _STORE, measures="bytes", factor=1e12
    ),
    Quantity(
        "cold", "Of these, on hard drives", "TB", 0, 1e7, _rounds(0, 4), _STORE, zero="none",
        measures="bytes", factor=1e12,
    ),
    Quantity(
        "cold_read", "Read of cold data, all day", "GB/s", 0, 1e6, _rounds(-1, 3), _STORE,
        zero="none", measures="Bps", factor=1e9,
    ),
    Quantity(
        "serve", "Read by clients", "GB/s", 0, 1e6, _rounds(-1, 3), _STORE, zero="none",
        measures="Bps", factor=1e9,
    ),
    Quantity(
        "write", "Written by clients at peak", "GB/s", 0, 1e6, _rounds(-1, 3), _STORE,
        zero="mean of the day", measures="Bps", factor=1e9,
    ),
    Quantity(
        "write_daily", "Written by clients in a day", "TB", 1e-6, 1e8, _rounds(0, 4), _STORE,
        zero="the peak, all day", measures="bytes", factor=1e12,
        about="Counted against the endurance of the drives.",
    ),
    Quantity(
        "growth", "Growth a year", "%", 0, 1000, _SHARES, _STORE, measures="share", factor=0.01
    ),
    Quantity(
        "compression", "Data compress by", "times", 1, 1000, (*_even(1, 5, 0.1), 6, 8, 10), _STORE,
        about="Counts for drives that compress.",
    ),
    Quantity(
        "filesystem", "Taken by the file system", "%", 0, 99, _SHARES, _STORE, measures="share",
        factor=0.01,
    ),
    Quantity(
        "spare", "Flash kept free", "%", 0, 99, _SHARES, _STORE, measures="share", factor=0.01
    ),
    _usd("budget", "Budget of the purchase", _LIMITS, _rounds(3, 7), "no limit"),
    Quantity(
        "power", "Power at work", "kW", 0.001, 1e6, _rounds(-1, 3), _LIMITS, zero="no limit",
        measures="W", factor=1e3,
    ),
    Quantity(
        "rack", "Rack units", "U", 1, 1e6, _even(0, 84, 2), _LIMITS, zero="no limit", measures="U"
    ),
    Quantity(
        "hosts_max", "Hosts at most", "hosts", 1, 4096, (*_even(1, 64, 1), 96, 128), _LIMITS,
        whole=True,
    ),
    Quantity(
        "years", "Years in service", "years", 0.1, 100, _even(1, 10, 0.5), _LIMITS,
        measures="years",
    ),
    Quantity(
        "kwh", "Price of energy", "USD/kWh", 0, 100, _even(0, 1, 0.01), _LIMITS,
        zero="not counted", measures="USD",
        about="With a price, energy over the years counts as a cost.",
    ),
)  # fmt: skip
BY_NAME = {one.name: one for one in QUANTITIES}
#: Numbers of a workload; those of its own stand for what a profile has not measured.
RATE = Quantity(
    "rate", "needs", "GB/s", 1e-6, 1e6, _rounds(-1, 4)[1:], "Workloads", measures="Bps", factor=1e9
)
CORE = Quantity(
    "core", "one core does", "GB/s", 1e-6, 1e6, _rounds(-2, 2)[1:], "Workloads", zero="as measured",
    measures="Bps", factor=1e9,
)  # fmt: skip
RETURNS = Quantity(
    "returns", "crosses back", "%", 0, 100, _even(0, 100, 1), "Workloads", measures="share",
    factor=0.01,
)  # fmt: skip
SPREAD = Quantity(
    "spread", "known to within", "%", 0, 100, _even(0, 50, 1), "Workloads", measures="share",
    factor=0.01,
)  # fmt: skip
