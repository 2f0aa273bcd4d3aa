"""Overloaded hosts: slow-down factors from measured times, and what they do to break-even points.

The paper limits the memory that a kernel may use on the host and measures its transfer and compute
time again; the ratio to the times with enough memory are the slow-down factors of equation 4. The
drives are not affected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from csdplan.errors import ModelError
from csdplan.model.inputs import positive, slow_down


@dataclass(frozen=True)
class LimitedPoint:
    """A host's times with limited memory.

    Attributes
    ----------
    memory_bytes : float
        Memory that the kernel may use [bytes].
    load_s, comp_s : float
        Transfer and compute time measured there [s].
    """

    memory_bytes: float
    load_s: float
    comp_s: float


@dataclass(frozen=True)
class SlowDown:
    """Slow-down factors at one amount of memory.

    Attributes
    ----------
    memory_bytes : float
        Memory that the kernel may use [bytes].
    sd_tx, sd_comp : float
        Slow-down factors of transfer and compute [1]; at least 1.
    clipped : bool
        True if a measured time was below the unlimited one, so that a factor was raised to 1.
    """

    memory_bytes: float
    sd_tx: float
    sd_comp: float
    clipped: bool = False


def slow_downs(
    points: Sequence[LimitedPoint], *, load_s: float, comp_s: float
) -> tuple[SlowDown, ...]:
    """Return the factors of each point against the times with enough memory, by memory ascending.

    Parameters
    ----------
    points : sequence of LimitedPoint
        At least one; each amount of memory once.
    load_s, comp_s : float
        Transfer and compute time with enough memory [s]; greater than 0.

    Notes
    -----
    A factor below 1 is noise of the measurement and is raised to 1, where equation 4 begins; the
    result says so.

    References
    ----------
    https://doi.org/10.1145/3623677, sections 3.2.1 (equation 4) and 4.4.
    """
    positive("load_s", load_s), positive("comp_s", comp_s)
    amounts = [point.memory_bytes for point in points]
    if not points or len(set(amounts)) != len(amounts):
        raise ModelError("points", amounts, "at least one point, each amount of memory once")
    factors = []
    for point in sorted(points, key=lambda point: point.memory_bytes):
        positive("memory_bytes", point.memory_bytes)
        tx = float(positive("load_s", point.load_s)) / load_s
        comp = float(positive("comp_s", point.comp_s)) / comp_s
        clipped = tx < 1 or comp < 1
        factors.append(SlowDown(point.memory_bytes, max(tx, 1.0), max(comp, 1.0), clipped))
    return tuple(factors)


def step_slow_downs(
    memory_bytes: Sequence[float], working_set_bytes: float, *, sd_tx: float, sd_comp: float
) -> tuple[SlowDown, ...]:
    """Return factors that hold below a working set's size and are 1 from there on.

    Parameters
    ----------
    memory_bytes : sequence of float
        Amounts of memory to plan for [bytes].
    working_set_bytes : float
        Size from which on the host keeps everything in memory [bytes]; greater than 0.
    sd_tx, sd_comp : float
        Factors below that size [1]; at least 1.

    Notes
    -----
    The step is what the paper's figures show in outline: hardly an effect with enough memory, and
    a large one without (section 4.4). Between those it is an approximation.
    """
    positive("working_set_bytes", working_set_bytes)
    slow_down("sd_tx", sd_tx), slow_down("sd_comp", sd_comp)
    amounts = [float(positive("memory_bytes", amount)) for amount in memory_bytes]
    return tuple(
        SlowDown(amount, sd_tx, sd_comp)
        if amount < working_set_bytes
        else SlowDown(amount, 1.0, 1.0)
        for amount in amounts
    )
