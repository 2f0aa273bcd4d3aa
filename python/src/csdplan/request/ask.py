"""A question as a person asks it, and the request to the optimizer that it becomes.

Quantities are text with units. Every fault of a question is found before any is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import expm1, log1p
from pathlib import Path
from typing import Any

from csdplan.errors import CsdplanError, ModelError, Problem, ProfileInvalid
from csdplan.model.overlap import Overlap
from csdplan.request.coding import protection
from csdplan.request.file import values_of
from csdplan.units import as_written, quantity

#: Relative spread of times that were not measured here (one standard deviation of the logarithm).
SPREAD = 0.05
#: CPU that a core is of, unless a workload says otherwise: the host of the shipped profiles.
UNIT_CPU = "epyc-7352"
#: Name of what clients read, among the workloads.
SERVED = "served to clients"
#: Beyond these a number is a slip of the pen, and powers of it leave the range of floats.
_GROWTH_MAX, _YEARS_MAX, _COMPRESSION_MAX, _HOSTS_MAX = 10.0, 100.0, 1000.0, 4096
#: Least and most that is asked for at all [bytes, bytes/s, USD, W, U].
_LEAST, _MOST = 1e-3, 1e24
#: Growth over all years, as a logarithm, that makes no difference.
_LEAST_RATE = 1e-9
_ROUNDING = 1e-9
_SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True)
class Work:
    """One workload: a kernel of a profile, or two numbers that a person can measure.

    Attributes
    ----------
    name : str
        Its name; without `core_Bps` that of a kernel.
    required_Bps : float
        Input per second.
    core_Bps : float or None
        Input that one core processes per second.
    returns : float
        Bytes that cross back to the host for each byte of input [1].
    spread : float
        Relative spread of its times [1].
    cpu : str
        Part of the catalogue whose core has `core_Bps`.
    """

    name: str
    required_Bps: float
    core_Bps: float | None = None
    returns: float = 0.0
    spread: float = SPREAD
    cpu: str = UNIT_CPU


@dataclass(frozen=True)
class Ask:
    """A question; fields as the options of ``csdplan plan``, in base units.

    Attributes
    ----------
    store_bytes : float
        Data to keep: usable bytes if `usable`, else bytes of flash.
    cold_bytes, cold_read_Bps : float
        Of these the data that are kept on hard drives, and what is read of them per second.
    usable : bool
        True if coding, file system and spare space come on top of `store_bytes`.
    protect : str
        ``none``, ``replica:N`` or ``rs:K+M``.
    works : tuple of Work
        The workloads.
    write_Bps : float
        Client data written per second at peak.
    daily_bytes : float or None
        Client data written in a day; None: the peak, all day.
    serve_Bps : float
        Data that clients read per second.
    network : bool or None
        Whether hosts get cards and ports of switches for clients; None: if clients write, read or
        get results.
    filesystem, spare, growth : float
        Shares [1]: of the file system, of flash kept free, of growth for each year.
    compression : float
        Ratio at which the data compress [1], for drives that do so.
    budget_usd, power_W, rack_units, kwh_usd : float or None
        Limits, and the price of energy.
    years : float
        Years in service.
    hosts_max : int
        Hosts at most.
    overlap : Overlap
        ``pipelined`` if hosts load and compute at once.
    """

    store_bytes: float = 0.0
    cold_bytes: float = 0.0
    cold_read_Bps: float = 0.0
    usable: bool = True
    protect: str = "none"
    works: tuple[Work, ...] = ()
    write_Bps: float = 0.0
    daily_bytes: float | None = None
    serve_Bps: float = 0.0
    network: bool | None = None
    filesystem: float = 0.02
    spare: float = 0.0
    growth: float = 0.0
    compression: float = 1.0
    budget_usd: float | None = None
    power_W: float | None = None
    rack_units: float | None = None
    kwh_usd: float | None = None
    years: float = 5.0
    hosts_max: int = 64
    overlap: Overlap = Overlap.PIPELINED

    @property
    def has_clients(self) -> bool:
        """Return whether hosts get cards and ports of switches for clients."""
        if self.network is not None:
            return self.network
        returned = any(work.returns for work in self.works)
        return bool(self.write_Bps or self.serve_Bps or self.cold_read_Bps) or returned

    @property
    def grown(self) -> float:
        """Growth over the years in service, as a factor [1]."""
        return float((1.0 + self.growth) ** self.years)

    @property
    def grown_on_average(self) -> float:
        """Growth averaged over the years in service, as a factor [1]."""
        rate = log1p(self.growth) * self.years
        return expm1(rate) / rate if rate > _LEAST_RATE else 1.0

    @property
    def written_Bps(self) -> float:
        """Client data written on average over the years, growth included [bytes/s]."""
        now = self.write_Bps if self.daily_bytes is None else self.daily_bytes / _SECONDS_PER_DAY
        return now * self.grown_on_average

    @property
    def raw_bytes(self) -> float:
        """Flash that must be bought, before compression [bytes]."""
        return (self.store_bytes - self.cold_bytes) * self._raw

    @property
    def raw_cold_bytes(self) -> float:
        """Capacity of hard drives that must be bought [bytes]."""
        return self.cold_bytes * self._raw

    @property
    def _raw(self) -> float:
        """Bytes to buy for each byte of data now [1]."""
        if not self.usable:
            return self.grown
        efficiency, _ = protection(self.protect)
        return self.grown / (efficiency * (1.0 - self.filesystem) * (1.0 - self.spare))


def read_work(text: str, folder: Path | None = None) -> Work:
    """Return the workload of ``count=120GB/s``, or of the file that ``@mine.toml`` names.

    Raises
    ------
    ModelError
        If the text is neither, or a number of the file is wrong.
    ProfileNotFound
        If the file cannot be read.
    """
    if not text.startswith("@"):
        name, equals, rate = text.partition("=")
        if not (name and equals):
            raise ModelError("workload", text, "NAME=RATE, such as count=120GB/s, or @FILE.toml")
        return Work(name, _rate(f"workload {name}", rate))
    path = Path(text[1:]) if folder is None else folder / text[1:]
    return work_of(values_of(path), str(path))


def work_of(body: Mapping[str, Any], where: str = "workload") -> Work:
    """Return the workload of a table with name, throughput, core, cpu, returns and spread.

    Raises
    ------
    ModelError
        If a key is unknown or missing, or a number is wrong.
    """
    keys = {"name", "throughput", "core", "returns", "spread", "cpu"}
    if unknown := sorted(set(body) - keys):
        raise ModelError(where, ", ".join(unknown), f"only {', '.join(sorted(keys))}")
    if missing := sorted({"name", "throughput", "core"} - set(body)):
        raise ModelError(where, f"without {', '.join(missing)}", "all of them")
    cpu = body.get("cpu", UNIT_CPU)
    for key, text in (("name", body["name"]), ("cpu", cpu)):
        if not isinstance(text, str) or not text:
            raise ModelError(f"{where}: {key}", text, "text")
    return Work(
        name=body["name"],
        required_Bps=_rate("throughput", body["throughput"]),
        core_Bps=_rate("core", body["core"]),
        returns=_share("returns", body.get("returns", 0)),
        spread=_share("spread", body.get("spread", SPREAD)),
        cpu=cpu,
    )


def read_ask(values: Mapping[str, Any], folder: Path | None = None) -> Ask:
    """Return the question of values as a person writes them, by the names of the options.

    Raises
    ------
    ProfileInvalid
        If values are wrong; all of them are listed.
    """
    reader = _Reader(values)
    works = reader.works(folder)
    write_Bps, daily_bytes = reader.writes()
    ask = Ask(
        store_bytes=reader.amount("store", "bytes") or 0.0,
        cold_bytes=reader.amount("cold", "bytes") or 0.0,
        cold_read_Bps=reader.amount("cold_read", "Bps") or 0.0,
        usable=reader.truth("usable", default=True),
        protect=reader.protect(),
        works=works,
        write_Bps=write_Bps,
        daily_bytes=daily_bytes,
        serve_Bps=reader.amount("serve", "Bps") or 0.0,
        network=reader.truth("network", default=False) if "network" in values else None,
        filesystem=reader.share("filesystem", 0.02),
        spare=reader.share("spare", 0.0),
        growth=reader.amount("growth", "share", most=_GROWTH_MAX) or 0.0,
        compression=reader.amount("compression", "share", least=1.0, most=_COMPRESSION_MAX) or 1.0,
        budget_usd=reader.amount("budget", "USD", positive=True),
        power_W=reader.amount("power", "W", positive=True),
        rack_units=reader.amount("rack", "U", positive=True),
        kwh_usd=reader.amount("kwh", "USD"),
        years=reader.amount("years", "years", positive=True, most=_YEARS_MAX) or 5.0,
        hosts_max=reader.whole("hosts_max", 64),
        overlap=reader.overlap(),
    )
    if not (reader.problems or ask.store_bytes or ask.works or ask.serve_Bps):
        stored = values.get("store", "absent")
        reader.wrong("store, workload", stored, "more than 0 data to store, or a workload")
    if ask.cold_bytes > ask.store_bytes:
        reader.wrong("cold", values["cold"], "at most what is to be stored (store)")
    if ask.cold_read_Bps and not ask.cold_bytes:
        reader.wrong("cold_read", values["cold_read"], "cold data, of which it is read (cold)")
    if any(work.name == SERVED for work in works):
        reader.wrong("workload", SERVED, "another name: serve is what clients read")
    if reader.problems:
        raise ProfileInvalid("question", reader.problems)
    return ask


class _Reader:
    """Reads a question's values and keeps what is wrong with them, so that all is said at once."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self.problems: list[Problem] = []

    def wrong(self, name: str, value: object, expected: str) -> None:
        self.problems.append(Problem(name, str(value), expected))

    def truth(self, name: str, *, default: bool) -> bool:
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            self.wrong(name, value, "true or false, without quotes")
            return default
        return value

    def amount(
        self,
        name: str,
        measures: str,
        *,
        least: float = 0.0,
        most: float = _MOST,
        positive: bool = False,
    ) -> float | None:
        value = self._values.get(name)
        if value is None:
            return None
        try:
            number = quantity(name, value, measures)
        except ModelError as error:
            self.wrong(error.argument, error.value, error.expected)
            return None
        if positive and number < _LEAST:
            self.wrong(name, value, "more than 0")
        elif number < least:
            self.wrong(name, value, f"at least {as_written(least, value, measures)}")
        elif number > most:
            self.wrong(name, value, f"at most {as_written(most, value, measures)}")
        return number if least <= number <= most else None

    def share(self, name: str, default: float) -> float:
        number = self.amount(name, "share")
        if number is not None and number >= 1:
            self.wrong(name, self._values[name], "a share below 1, or below 100%")
            return default
        return default if number is None else number

    def whole(self, name: str, default: int) -> int:
        value = self._values.get(name, default)
        if type(value) is not int or not 1 <= value <= _HOSTS_MAX:
            self.wrong(name, value, f"a whole number from 1 to {_HOSTS_MAX}")
            return default
        return value

    def writes(self) -> tuple[float, float | None]:
        peak, daily = self.amount("write", "Bps"), self.amount("write_daily", "bytes")
        if daily is None:
            return peak or 0.0, None
        mean_Bps = daily / _SECONDS_PER_DAY
        if peak is not None and mean_Bps > peak * (1 + _ROUNDING):
            most = f"at most what a day at the peak of {self._values['write']} makes"
            self.wrong("write_daily", self._values["write_daily"], most)
        return mean_Bps if peak is None else peak, daily

    def protect(self) -> str:
        text = str(self._values.get("protect", "none"))
        try:
            protection(text)
        except ModelError as error:
            self.wrong("protect", text, error.expected)
            return "none"
        return text

    def overlap(self) -> Overlap:
        text = self._values.get("overlap", "pipelined")
        if not isinstance(text, str) or text not in {"serial", "pipelined"}:
            self.wrong("overlap", text, "serial or pipelined")
            return Overlap.PIPELINED
        return Overlap(text)

    def works(self, folder: Path | None) -> tuple[Work, ...]:
        given = self._values.get("workload") or ()
        found: list[Work] = []
        if not isinstance(given, str | Mapping | list | tuple):
            self.wrong("workload", given, 'a list, such as ["count=120GB/s"]')
            return ()
        for one in [given] if isinstance(given, str | Mapping) else list(given):
            try:
                if isinstance(one, Mapping):
                    found.append(work_of(one))
                else:
                    found.append(read_work(str(one), folder))
            except ModelError as error:
                self.wrong(error.argument, error.value, error.expected)
            except CsdplanError as error:
                self.wrong("workload", one, str(error))
        names = [work.name for work in found]
        if len(set(names)) < len(names):
            self.wrong("workload", ", ".join(names), "names that differ")
        return tuple(found)


def _rate(name: str, value: object) -> float:
    """Return bytes per second that something takes in; less than a byte is nothing."""
    rate = quantity(name, value, "Bps")
    if not 1 <= rate <= _MOST:
        most = f"at most {as_written(_MOST, value, 'Bps')}"
        raise ModelError(name, value, "more than 0" if rate < 1 else most)
    return rate


def _share(name: str, value: object) -> float:
    share = quantity(name, value, "share")
    if share > 1:
        raise ModelError(name, value, "a share of at most 1, or 100%")
    return share
