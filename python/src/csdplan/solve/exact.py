"""The break-even point of one configuration in rational arithmetic.

A float stands for the shortest decimal that reads back as it, which is the number a user typed
or a profile holds: 0.1 here is one tenth. So ties are ties, and "strictly faster" means that.
This is the definition; ``bep`` is the fast way to the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isinf


@dataclass(frozen=True)
class Terms:
    """The inequality S / min(m, K) + C > D / m + H, in seconds.

    Attributes
    ----------
    ssd_tx : Fraction
        S = sd_tx T_SSD-tx, greater than 0.
    ssd_comp : Fraction
        C = sd_comp T_SSD-comp / n, greater than 0.
    csd : Fraction
        D = T_CSD-tx + T_CSD-comp, greater than 0.
    host_part : Fraction
        H, at least 0.
    k_limit : int or None
        K, at least 1; None for no limit.
    """

    ssd_tx: Fraction
    ssd_comp: Fraction
    csd: Fraction
    host_part: Fraction
    k_limit: int | None


def terms(
    ssd_tx_s: float,
    ssd_comp_s: float,
    csd_tx_s: float,
    csd_comp_s: float,
    host_cores: float,
    k_limit: float,
    sd_tx: float,
    sd_comp: float,
    host_part_s: float,
) -> Terms:
    """Return the exact terms of one configuration; the arguments are already checked."""
    return Terms(
        ssd_tx=decimal(sd_tx) * decimal(ssd_tx_s),
        ssd_comp=decimal(sd_comp) * decimal(ssd_comp_s) / int(host_cores),
        csd=decimal(csd_tx_s) + decimal(csd_comp_s),
        host_part=decimal(host_part_s),
        k_limit=None if isinf(k_limit) else int(k_limit),
    )


def decimal(value: float) -> Fraction:
    """Return the shortest decimal that reads back as `value`, exactly."""
    return Fraction(repr(float(value)))


def beats(t: Terms, devices: int) -> bool:
    """Return whether `devices` drives are strictly faster than as many SSDs."""
    lanes = devices if t.k_limit is None else min(devices, t.k_limit)
    return t.ssd_tx / lanes + t.ssd_comp > t.csd / devices + t.host_part


def smallest(t: Terms) -> int | None:
    """Return the smallest m from which on the drives stay strictly faster; None if there is none.

    Proof. Let g = C - H. For m <= K the inequality reads S - D + g m > 0, for m >= K it reads
    S / K + g > D / m, and at m = K the two are the same statement.

    - m >= K: the right side falls with m, so once true it stays true, and the first such m is
      floor(D / (S / K + g)) + 1. If S / K + g <= 0 it is never true, D being positive.
    - m <= K and g > 0: the left side rises with m, so once true it stays true up to K, hence at K,
      hence for ever. The first such m is floor((D - S) / g) + 1, or 1.
    - m <= K and g <= 0: the left side does not rise, so if true at K it is true for every m <= K
      and the answer is 1. If false at K, a lead at small m is lost again and does not count.

    Without a limit only the region m <= K exists. With g = 0 the inequality does not depend on m;
    with g < 0 it fails from some m on.
    """
    gain = t.ssd_comp - t.host_part
    if t.k_limit is None:
        if gain > 0:
            return max(1, floor((t.csd - t.ssd_tx) / gain) + 1)
        return 1 if gain == 0 and t.ssd_tx > t.csd else None
    if gain > 0:
        first = max(1, floor((t.csd - t.ssd_tx) / gain) + 1)
        if first <= t.k_limit:
            return first
    elif beats(t, t.k_limit):
        return 1
    gain_beyond = t.ssd_tx / t.k_limit + gain
    if gain_beyond <= 0:
        return None
    return floor(t.csd / gain_beyond) + 1


def closed_form(t: Terms) -> int:
    """Return equation 8 with equation 12's floor of 1: max(ceil((D - S) / C), 1)."""
    return max(1, ceil((t.csd - t.ssd_tx) / t.ssd_comp))
