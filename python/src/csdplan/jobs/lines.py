"""Least squares of measured times, by relative errors, with ranges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from csdplan.model.inputs import FloatArray

#: Share of cases in which a range holds the true number.
CONFIDENCE = 0.9


@dataclass(frozen=True)
class Line:
    """A sum of terms, each with a coefficient that is at least 0.

    Attributes
    ----------
    coefficients : ndarray
        One for each term.
    covariance : ndarray
        Of the coefficients; zeros if there are no more runs than terms.
    spread : float or None
        Standard deviation of relative errors; None if there are no more runs than terms.
    free : int
        Runs that were more than terms.
    """

    coefficients: FloatArray
    covariance: FloatArray
    spread: float | None
    free: int

    def range_of(self, index: int) -> tuple[float, float] | tuple[None, None]:
        """Return the range of a coefficient."""
        if self.spread is None:
            return None, None
        reach = self._times * float(np.sqrt(self.covariance[index, index]))
        value = float(self.coefficients[index])
        return max(0.0, value - reach), value + reach

    def range_at(self, terms: FloatArray) -> tuple[float, float] | tuple[None, None]:
        """Return the range of one more measurement at these terms."""
        if self.spread is None:
            return None, None
        value = float(terms @ self.coefficients)
        variance = float(terms @ self.covariance @ terms) + (self.spread * value) ** 2
        reach = self._times * float(np.sqrt(variance))
        return max(0.0, value - reach), value + reach

    @property
    def _times(self) -> float:
        return float(stats.t.ppf((1 + CONFIDENCE) / 2, self.free))


def line(terms: FloatArray, measured: FloatArray) -> Line:
    """Fit measurements, all above 0; a term whose coefficient would be negative is left out.

    Parameters
    ----------
    terms : ndarray, (runs, terms)
        Terms of each run; at least as many runs as terms.
    measured : ndarray, (runs,)
        What was measured; errors count relative to it.
    """
    count = terms.shape[1]
    scale = np.abs(terms).max(axis=0)
    scaled = terms / np.where(scale > 0, scale, 1.0)
    used = list(range(count))
    while True:
        weighted = scaled[:, used] / measured[:, None]
        found, *_ = np.linalg.lstsq(weighted, np.ones(len(measured)), rcond=None)
        if len(used) == 1 or found.min() >= 0:
            break
        del used[int(np.argmin(found))]
    free = len(measured) - len(used)
    coefficients, covariance = np.zeros(count), np.zeros((count, count))
    coefficients[used] = np.maximum(found, 0.0)
    spread = None
    if free:
        errors = weighted @ found - 1.0
        spread = float(np.sqrt(errors @ errors / free))
        inside = np.linalg.pinv(weighted.T @ weighted) * spread**2
        covariance[np.ix_(used, used)] = inside
    unit = np.where(scale > 0, scale, 1.0)
    return Line(coefficients / unit, covariance / np.outer(unit, unit), spread, free)
