"""The closed form in the paper's ratio parameters.

Equations 11 to 13 are equation 8 divided through, under one assumption more: that the SSD side
uses the very drive that computes, so that R_tx is both its bandwidth ratio and T_SSD-tx over
T_CSD-tx. They know no k_limit. `bep.break_even` is the general answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from csdplan.model.ratios import crossing_by_ratios


def break_even_by_ratios(
    r_tx: ArrayLike,
    r_comp: ArrayLike,
    r_ssd: ArrayLike,
    *,
    sd_tx: ArrayLike = 1.0,
    sd_comp: ArrayLike = 1.0,
) -> NDArray[np.float64]:
    """Return the break-even point from ratios (equations 11 to 13), as floats.

    Parameters
    ----------
    r_tx : array_like
        R_tx = T_SSD-tx / T_CSD-tx [1]; greater than 0.
    r_comp : array_like
        R_(n)comp = T_SSD(n)-comp / T_CSD-comp [1]; greater than 0.
    r_ssd : array_like
        R_(n)SSD = T_SSD-tx / T_SSD(n)-comp [1]; greater than 0.
    sd_tx, sd_comp : array_like
        Slow-down factors of an overloaded host [1]; at least 1, and 1 gives equation 12.

    Returns
    -------
    ndarray
        max(ceil(((1 / R_tx - sd_tx) R_SSD + 1 / R_comp) / sd_comp), 1) [devices]. Floating point
        decides the ceiling, so a crossing within rounding of a whole number may fall either way.

    References
    ----------
    https://doi.org/10.1145/3623677, equations 11 and 12 (section 3.2.2), 13 (section 4.4).
    """
    crossing = crossing_by_ratios(r_tx, r_comp, r_ssd, sd_tx=sd_tx, sd_comp=sd_comp)
    return np.asarray(np.maximum(np.ceil(crossing), 1.0))
