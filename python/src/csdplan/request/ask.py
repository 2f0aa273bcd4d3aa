"""A question as a person asks it, and the request to the optimizer that it becomes.

Quantities are text with units. Every fault of a question is found before any is reported.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from csdplan.errors import CsdplanError, ModelError, Problem, ProfileInvalid
from csdplan.model.overlap import Overlap
from csdplan.profile.read import read_file
from csdplan.units import quantity

#: Relative spread of times that were not measured here (one standard deviation of the logarithm).
SPREAD = 0.05


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
    """

    name: str
    required_Bps: float
    core_Bps: float | None = None
    returns: float = 0.0
    spread: float = SPREAD


@dataclass(frozen=True)
class Ask:
    """A question; fields as the options of ``csdplan plan``, in base units.

    Attributes
    ----------
    store_bytes : float
        Data to keep: usable bytes if `usable`, else bytes of flash.
    usable : bool
        True if coding, file system and spare space come on top of `store_bytes`.
    protect : str
        ``none``, ``replica:N`` or ``rs:K+M``.
    works : tuple of Work
        The workloads.
    write_Bps : float
        Client data written per second.
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
    usable: bool = True
    protect: str = "none"
    works: tuple[Work, ...] = ()
    write_Bps: float = 0.0
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
    def grown(self) -> float:
        """Growth over the years in service, as a factor [1]."""
        return float((1.0 + self.growth) ** self.years)

    @property
    def raw_bytes(self) -> float:
        """Flash that must be bought, before compression [bytes]."""
        if not self.usable:
            return self.store_bytes * self.grown
        efficiency, _ = protection(self.protect)
        kept = efficiency * (1.0 - self.filesystem) * (1.0 - self.spare)
        return self.store_bytes * self.grown / kept


def protection(text: str) -> tuple[float, int]:
    """Return the share of flash that holds data, and the drives needed, of ``rs:8+2`` and so on.

    Raises
    ------
    ModelError
        If the text names no protection.
    """
    expected = "none, replica:N (2 or more copies) or rs:K+M (K data, M code blocks)"
    kind, _, numbers = text.partition(":")
    try:
        if text == "none":
            return 1.0, 1
        counts = [int(one) for one in numbers.split("+")]
        if kind == "replica" and len(counts) == 1 and counts[0] > 1:
            return 1.0 / counts[0], counts[0]
        if kind == "rs" and len(counts) == 2 and min(counts) > 0:  # noqa: PLR2004 - data and code
            return counts[0] / sum(counts), sum(counts)
    except ValueError as error:
        raise ModelError("protect", text, expected) from error
    raise ModelError("protect", text, expected)


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
        return Work(name, _more_than_0(f"workload {name}", quantity(name, rate, "Bps")))
    path = Path(text[1:]) if folder is None else folder / text[1:]
    return work_of(_read(path), str(path))


def work_of(body: Mapping[str, Any], where: str = "workload") -> Work:
    """Return the workload of a table with name, throughput, core, returns and spread.

    Raises
    ------
    ModelError
        If a key is unknown or missing, or a number is wrong.
    """
    keys = {"name", "throughput", "core", "returns", "spread"}
    if unknown := sorted(set(body) - keys):
        raise ModelError(where, ", ".join(unknown), f"only {', '.join(sorted(keys))}")
    if missing := sorted({"name", "throughput", "core"} - set(body)):
        raise ModelError(where, f"without {', '.join(missing)}", "all of them")
    return Work(
        name=str(body["name"]),
        required_Bps=_more_than_0("throughput", quantity("throughput", body["throughput"], "Bps")),
        core_Bps=_more_than_0("core", quantity("core", body["core"], "Bps")),
        returns=quantity("returns", body.get("returns", 0), "share"),
        spread=quantity("spread", body.get("spread", SPREAD), "share"),
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
    ask = Ask(
        store_bytes=reader.amount("store", "bytes") or 0.0,
        usable=bool(values.get("usable", True)),
        protect=reader.protect(),
        works=works,
        write_Bps=reader.amount("write", "Bps") or 0.0,
        filesystem=reader.share("filesystem", 0.02),
        spare=reader.share("spare", 0.0),
        growth=reader.amount("growth", "share") or 0.0,
        compression=reader.amount("compression", "share", least=1.0) or 1.0,
        budget_usd=reader.amount("budget", "USD", positive=True),
        power_W=reader.amount("power", "W", positive=True),
        rack_units=reader.amount("rack", "U", positive=True),
        kwh_usd=reader.amount("kwh", "USD"),
        years=reader.amount("years", "years", positive=True) or 5.0,
        hosts_max=reader.whole("hosts_max", 64),
        overlap=reader.overlap(),
    )
    if not (values.get("store") or values.get("workload")):
        reader.wrong("store, workload", "absent", "data to store, or a workload")
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

    def amount(
        self, name: str, measures: str, *, least: float = 0.0, positive: bool = False
    ) -> float | None:
        value = self._values.get(name)
        if value is None:
            return None
        try:
            number = quantity(name, value, measures)
        except ModelError as error:
            self.wrong(error.argument, error.value, error.expected)
            return None
        if number < least or (positive and number == 0):
            self.wrong(name, value, "more than 0" if positive else f"at least {least:g}")
        return number

    def share(self, name: str, default: float) -> float:
        number = self.amount(name, "share")
        if number is not None and number >= 1:
            self.wrong(name, self._values[name], "a share below 1, or below 100%")
            return default
        return default if number is None else number

    def whole(self, name: str, default: int) -> int:
        value = self._values.get(name, default)
        if type(value) is not int or value < 1:
            self.wrong(name, value, "a whole number of at least 1")
            return default
        return value

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
        if text not in {"serial", "pipelined"}:
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


def _more_than_0(name: str, number: float) -> float:
    if number <= 0:
        raise ModelError(name, number, "more than 0")
    return number


def _read(path: Path) -> dict[str, Any]:
    data = read_file(path)
    form = "JSON" if path.suffix == ".json" else "TOML"
    try:
        text = data.decode("utf-8")
        body = json.loads(text) if form == "JSON" else tomllib.loads(text)
    except ValueError as error:
        raise ModelError(str(path), str(error), f"a {form} file") from error
    if not isinstance(body, dict):
        raise ModelError(str(path), body, "a JSON object")
    return body


#: Keys of a question's file. ``page`` holds fields of the local page that are no question.
KEYS = frozenset({
    "store", "usable", "protect", "workload", "write", "filesystem", "spare", "growth",
    "compression", "budget", "power", "rack", "kwh", "years", "hosts_max", "overlap", "profile",
    "page",
})  # fmt: skip


def read_file_of_question(path: Path) -> dict[str, Any]:
    """Return the values of a question's file, TOML or JSON, by the names of the options.

    Raises
    ------
    ModelError
        If it is no such file, or has a key that no option has.
    """
    return only_known(_read(path), str(path))


def only_known(body: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a question's values, without those of the page.

    Raises
    ------
    ModelError
        If there is a key that no option has.
    """
    if unknown := sorted(set(body) - KEYS):
        raise ModelError(where, ", ".join(unknown), f"only {', '.join(sorted(KEYS))}")
    return {key: value for key, value in body.items() if key != "page"}
