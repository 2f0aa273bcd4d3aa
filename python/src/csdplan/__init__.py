"""csdplan: how many computational storage drives beat ordinary SSDs.

The package is a pipeline of folders, read in this order::

    model    the paper's equations, pure functions over NumPy arrays
    profile  what machines and drives were measured to do (TOML, schema 1)
    solve    break-even points from the equations
    result   plain records that tables, JSON and plots all read
    plot     figures drawn from results, never from the model directly
    cli      the ``csdplan`` command

It never measures anything, opens no network connection, and reads no file other than the
profiles it is given. Importing it does not import matplotlib.

The equations are those of Byun et al., "An Analytical Model-based Capacity Planning Approach for
Building CSD-based Storage Systems", ACM TECS 23(6), https://doi.org/10.1145/3623677.
"""

from csdplan.errors import (
    CsdplanError,
    ModelError,
    PlotError,
    ProfileError,
    ProfileIncomplete,
    ProfileInvalid,
    ProfileNotFound,
)

__version__ = "0.1.0"

__all__ = [
    "CsdplanError",
    "ModelError",
    "PlotError",
    "ProfileError",
    "ProfileIncomplete",
    "ProfileInvalid",
    "ProfileNotFound",
    "__version__",
]
