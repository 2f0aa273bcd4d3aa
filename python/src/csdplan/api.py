"""Profiles in, tables out: what ``import csdplan as cp`` offers at a prompt.

There is a function for every command, with the command's options under the same names; where a
flag takes a quantity with a unit, the name here ends with the unit (``--nic`` is ``nic_Bps``).
Lists are sequences of numbers, and pairs such as ``count=3`` are mappings. Functions return pandas
tables, `grid` returns an xarray data set. The table's ``attrs`` hold its title, its note and the
warnings. Nothing is computed here: these are the commands' results.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ParamSpec

import numpy as np

from csdplan import commands
from csdplan.commands import Tables, import_profile, report, ui
from csdplan.commands.choose import choose
from csdplan.errors import ModelError, ProfileIncomplete
from csdplan.model.inputs import FloatArray, positive
from csdplan.options import ProfileLike
from csdplan.profile import Profile
from csdplan.profile import load as load_profile
from csdplan.result.break_even import core_warnings
from csdplan.result.sheet import Sheet
from csdplan.result.sheets import host_sheet
from csdplan.solve import break_even

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

P = ParamSpec("P")

__all__ = [
    "Picture",
    "bep",
    "catalogue",
    "cloud",
    "day",
    "durability",
    "duties",
    "ec",
    "energy",
    "figure",
    "frame",
    "grid",
    "import_profile",
    "load",
    "mix",
    "network",
    "optimize",
    "overload",
    "plan",
    "profiles",
    "report",
    "reproduce",
    "simulate",
    "steps",
    "surface",
    "sweep",
    "tco",
    "ui",
    "uncertainty",
    "upgrade",
    "validate",
]


def load(source: str | Path) -> Profile:
    """Load and check a profile: a shipped one's name, or a file. See `csdplan.profile.load`."""
    return load_profile(source)


def frame(sheet: Sheet, warnings: Sequence[str] = ()) -> pd.DataFrame:
    """Return a sheet as a pandas table; unknown values are missing, not zero."""
    import pandas as pd  # noqa: PLC0415 - imported late: it costs half a second

    table = pd.DataFrame(sheet.rows, columns=list(sheet.columns))
    table.attrs = {"title": sheet.title, "note": sheet.note, "warnings": tuple(warnings)}
    return table


@dataclass(frozen=True)
class Picture:
    """A figure that notebooks show.

    Attributes
    ----------
    svg : str
        The figure as SVG.
    """

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        found = re.search("<title>(.*?)</title>", self.svg)
        return f"figure: {html.unescape(found.group(1)) if found else 'without a title'}"


def figure(function: Callable[..., object], *args: object, **options: object) -> Picture:
    """Return the figure that a function draws with ``plot``, for a notebook to show.

    Parameters
    ----------
    function : callable
        A function with the option ``plot``, such as `bep`.
    args, options
        Its arguments.

    Examples
    --------
    >>> figure(bep, "newport", "count", host_cores=[1, 4])
    figure: count: throughput of newport drives that compute, and of smartssd drives as SSDs
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "figure.svg"
        function(*args, **options, plot=file)
        return Picture(file.read_text(encoding="utf-8"))


def _one(command: Callable[P, Tables]) -> Callable[P, pd.DataFrame]:
    """Return a command as a function that returns its first sheet as a table."""

    @wraps(command)
    def function(*args: P.args, **kwargs: P.kwargs) -> pd.DataFrame:
        found = command(*args, **kwargs)
        sheet, *_ = found.sheets.values()
        return frame(sheet, found.warnings)

    return function


def _several(command: Callable[P, Tables]) -> Callable[P, dict[str, pd.DataFrame]]:
    """Return a command as a function that returns its sheets as tables by name."""

    @wraps(command)
    def function(*args: P.args, **kwargs: P.kwargs) -> dict[str, pd.DataFrame]:
        found = command(*args, **kwargs)
        return {name: frame(sheet, found.warnings) for name, sheet in found.sheets.items()}

    return function


def _points(command: Callable[P, commands.BepTables]) -> Callable[P, pd.DataFrame]:
    """Return `bep` as a function whose table has the fields of `csdplan.result.HostResult`."""

    @wraps(command)
    def function(*args: P.args, **kwargs: P.kwargs) -> pd.DataFrame:
        found = command(*args, **kwargs)
        table = frame(host_sheet(found.result), found.warnings)
        # Missing where there is no break-even point, and whole numbers still.
        for column in ("devices", "closed_form_devices"):
            table[column] = table[column].astype("Int64")
        return table

    return function


bep = _points(commands.bep)
sweep = _several(commands.sweep)
surface = _several(commands.surface)
ec = _one(commands.ec)
tco = _several(commands.tco)
overload = _one(commands.overload)
mix = _several(commands.mix)
optimize = _several(commands.optimize)
plan = _several(commands.plan)
catalogue = _several(commands.catalogue)
durability = _several(commands.durability)
network = _several(commands.network)
energy = _several(commands.energy)
cloud = _several(commands.cloud)
duties = _one(commands.duties)
simulate = _one(commands.simulate)
uncertainty = _several(commands.uncertainty)
day = _several(commands.day)
steps = _several(commands.steps)
upgrade = _several(commands.upgrade)
validate = _several(commands.validate)
profiles = _one(commands.profiles)
reproduce = _one(commands.reproduce)


def grid(
    profile: ProfileLike,
    kernel: str,
    *,
    host_cores: Sequence[int] = (1,),
    k_limit: Sequence[int] | None = None,
    bandwidth: Sequence[float] | FloatArray = (1.0,),
    compute: Sequence[float] | FloatArray = (1.0,),
    sd_tx: Sequence[float] | FloatArray = (1.0,),
    sd_comp: Sequence[float] | FloatArray = (1.0,),
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
) -> xr.Dataset:
    """Return the break-even points over every combination of what is given.

    Parameters
    ----------
    profile, kernel, device, ssd, bytes
        As in `bep`.
    host_cores, k_limit : sequence of int
        Host cores at work; SSDs that use up the host's bandwidth, by default the profile's.
    bandwidth, compute : sequence of float
        Multipliers of the drive's internal bandwidth and computational power [1].
    sd_tx, sd_comp : sequence of float
        Slow-down factors of an overloaded host [1]; at least 1.

    Returns
    -------
    xarray.Dataset
        ``devices`` (0 where there is no break-even point) and ``closed_form``, with a dimension
        for each quantity.
    """
    import xarray as xr  # noqa: PLC0415 - as in frame()

    workload = choose(profile, kernel, device=device, ssd=ssd, bytes=bytes)
    limits = list(k_limit) if k_limit is not None else [workload.k_limit]
    if None in limits:
        raise ProfileIncomplete(f"{workload.profile}: k_limit is unknown; give k_limit")
    axes: dict[str, Sequence[float | None] | FloatArray] = {
        "host_cores": host_cores,
        "k_limit": limits,
        "bandwidth": bandwidth,
        "compute": compute,
        "sd_tx": sd_tx,
        "sd_comp": sd_comp,
    }
    for name, values in axes.items():
        if not len(values):
            raise ModelError(name, "none", "at least one value")
    shaped = {
        name: np.asarray(values, dtype=np.float64).reshape(
            [-1 if other == name else 1 for other in axes]
        )
        for name, values in axes.items()
    }
    hosts = [workload.host(cores) for cores in host_cores]
    by_host = {
        name: np.array([getattr(host, name) for host in hosts]).reshape(-1, 1, 1, 1, 1, 1)
        for name in ("tx_s", "comp_s", "divisor")
    }
    found = break_even(
        by_host["tx_s"],
        by_host["comp_s"],
        workload.csd_tx_s / positive("bandwidth", shaped["bandwidth"]),
        workload.csd_comp_s / positive("compute", shaped["compute"]),
        k_limit=shaped["k_limit"],
        host_cores=by_host["divisor"],
        sd_tx=shaped["sd_tx"],
        sd_comp=shaped["sd_comp"],
    )
    dims = tuple(axes)
    return xr.Dataset(
        {"devices": (dims, found.devices), "closed_form": (dims, found.closed_form)},
        coords={name: list(values) for name, values in axes.items()},
        attrs={
            "kernel": kernel,
            "device": workload.device,
            "ssd": workload.ssd,
            "warnings": tuple(core_warnings(workload, host_cores)),
        },
    )
