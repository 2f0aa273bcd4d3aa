"""csdplan: the number of computational storage drives that beat ordinary SSDs.

The package is a pipeline of folders, read in this order::

    model    the paper's equations, pure functions over NumPy arrays
    profile  measured performance of machines and drives (TOML, schema 1)
    solve    break-even points from the equations; splits, purchases, uncertainty
    sim      simulated systems, for effects that the equations leave out
    hardware products that can be bought, each number with its source (TOML)
    trial    runs on this machine, by the csd program
    request  products and requirements of a purchase (TOML)
    result   plain records that tables, JSON and plots all read
    plot     figures of results
    commands one function for each command, from profiles to sheets
    cli      the ``csdplan`` command, which prints them
    api      the same functions, returning pandas and xarray tables

``import csdplan as cp`` offers the last: ``cp.bep("newport", "count", [1, 4, 16])``.

``validate`` measures, by the ``csd`` program. The rest of the package measures nothing, opens no
network connection, and reads only the files that it is given. matplotlib, pandas and SciPy are
imported when they are first needed.

The equations are those of Byun et al., "An Analytical Model-based Capacity Planning Approach for
Building CSD-based Storage Systems", ACM TECS 23(6), https://doi.org/10.1145/3623677.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from csdplan.errors import (
    CsdplanError,
    ModelError,
    PlotError,
    ProfileError,
    ProfileIncomplete,
    ProfileInvalid,
    ProfileNotFound,
)
from csdplan.late import getter

if TYPE_CHECKING:
    from csdplan.api import (
        Picture,
        bep,
        catalogue,
        cloud,
        day,
        durability,
        duties,
        ec,
        energy,
        figure,
        frame,
        grid,
        import_profile,
        load,
        mix,
        network,
        optimize,
        overload,
        plan,
        profiles,
        report,
        reproduce,
        simulate,
        steps,
        surface,
        sweep,
        tco,
        ui,
        uncertainty,
        upgrade,
        validate,
    )

__version__ = "0.1.0"

__all__ = [
    "CsdplanError",
    "ModelError",
    "Picture",
    "PlotError",
    "ProfileError",
    "ProfileIncomplete",
    "ProfileInvalid",
    "ProfileNotFound",
    "__version__",
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


# The commands' imports, which a user of one module does not need.
__getattr__ = getter(__name__, dict.fromkeys(__all__, "api"))


def __dir__() -> list[str]:
    """List the functions too, before they are imported."""
    return sorted({*globals(), *__all__})
