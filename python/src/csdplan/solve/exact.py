"""The break-even point of one configuration in rational arithmetic.

A float stands for the shortest decimal that reads back as it, which is the number a user typed
or a profile holds: 0.1 here is one tenth. So ties are ties, and "strictly faster" means that.
This is the definition, and what tests hold ``bep``, the fast way to the same answers, against.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isinf


@dataclass(frozen=True)
class Terms:
    """The inequality S / min(m, K) + C > D / m + H, in seconds; its left side may be a maximum.

    Attributes
    ----------
    ssd_tx : Fraction
        S = sd_tx (T_SSD-tx + T_SSD-store), greater than 0.
    ssd_comp : Fraction
        C = sd_comp T_SSD-comp / n, greater than 0.
    csd : Fraction
        D, the time of one drive for all the data, greater than 0.
    host_part : Fraction
        H, at least 0.
    k_limit : Fraction or None
        K, at least 1; None for no limit.
    pipelined : bool
        True if the host overlaps, so that the left side is max(S / min(m, K), C).
    """

    ssd_tx: Fraction
    ssd_comp: Fraction
    csd: Fraction
    host_part: Fraction
    k_limit: Fraction | None
    pipelined: bool = False


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
    ssd_store_s: float = 0.0,
    csd_store_s: float = 0.0,
    *,
    ssd_pipelined: bool = False,
    csd_pipelined: bool = False,
) -> Terms:
    """Return the exact terms of one configuration; the arguments are already checked."""
    csd_tx, csd_comp = decimal(csd_tx_s) + decimal(csd_store_s), decimal(csd_comp_s)
    return Terms(
        ssd_tx=decimal(sd_tx) * (decimal(ssd_tx_s) + decimal(ssd_store_s)),
        ssd_comp=decimal(sd_comp) * decimal(ssd_comp_s) / int(host_cores),
        csd=max(csd_tx, csd_comp) if csd_pipelined else csd_tx + csd_comp,
        host_part=decimal(host_part_s),
        k_limit=None if isinf(k_limit) else decimal(k_limit),
        pipelined=ssd_pipelined,
    )


def decimal(value: float) -> Fraction:
    """Return the shortest decimal that reads back as `value`, exactly."""
    return Fraction(repr(float(value)))


def beats(t: Terms, devices: int) -> bool:
    """Return whether `devices` drives are strictly faster than as many SSDs."""
    return _beats(t, Fraction(devices))


def _beats(t: Terms, devices: Fraction) -> bool:
    """Return `beats` for a number of devices that need not be whole."""
    lanes = devices if t.k_limit is None else min(devices, t.k_limit)
    transfer = t.ssd_tx / lanes
    ssd = max(transfer, t.ssd_comp) if t.pipelined else transfer + t.ssd_comp
    return ssd > t.csd / devices + t.host_part


def smallest(t: Terms) -> int | None:
    """Return the smallest m from which on the drives stay strictly faster; None if there is none.

    Proof for hosts that do not overlap. Let g = C - H. For m <= K the inequality reads
    S - D + g m > 0, for m >= K it reads S / K + g > D / m, and at m = K the two are the same
    statement.

    - m >= K: the right side falls with m, so once true it stays true, and the first such m is
      floor(D / (S / K + g)) + 1. If S / K + g <= 0 it is never true, D being positive.
    - m <= K and g > 0: the left side rises with m, so once true it stays true up to K, hence at K,
      hence for ever. The first such m is floor((D - S) / g) + 1, or 1.
    - m <= K and g <= 0: the left side does not rise, so if true at K it is true for every m <= K
      and the answer is 1. If false at K, a lead at small m is lost again and does not count.

    K need not be whole. Both regions then meet between two whole numbers, at which the statements
    above still hold, with one exception: if g <= 0 and the inequality is false at K, it may be
    true at floor(K), hence at every m below, and true again from floor(K) + 1 on. Then it is true
    for every whole m, and the answer is 1.

    Without a limit only the region m <= K exists. With g = 0 the inequality does not depend on m;
    with g < 0 it fails from some m on.
    """
    return _smallest_pipelined(t) if t.pipelined else _smallest_serial(t)


def _smallest_serial(t: Terms) -> int | None:
    """Return `smallest` for a host that does not overlap; the proof stands there."""
    gain = t.ssd_comp - t.host_part
    if t.k_limit is None:
        if gain > 0:
            return max(1, floor((t.csd - t.ssd_tx) / gain) + 1)
        return 1 if gain == 0 and t.ssd_tx > t.csd else None
    if gain > 0:
        first = max(1, floor((t.csd - t.ssd_tx) / gain) + 1)
        if first <= t.k_limit:
            return first
    elif _beats(t, t.k_limit):
        return 1
    gain_beyond = t.ssd_tx / t.k_limit + gain
    if gain_beyond <= 0:
        return None
    first = floor(t.csd / gain_beyond) + 1
    return 1 if gain <= 0 and _leads_below(t, first) else first


def _leads_below(t: Terms, first: int) -> bool:
    """Return whether drives, behind at K itself, lead at every whole number below `first` too.

    Only if `first` is the whole number after K, and what holds at floor(K) holds below it.
    """
    assert t.k_limit is not None, "only a limit can lie between two whole numbers"
    below = floor(t.k_limit)
    return first == below + 1 and beats(t, below)


def _smallest_pipelined(t: Terms) -> int | None:
    """Return `smallest` for a host that overlaps: max(S / min(m, K), C) > D / m + H.

    Proof. For m <= K the inequality holds if S - H m > D, which is true up to some m and false
    beyond (for H = 0: always or never), or if (C - H) m > D, which is false up to some m and true
    beyond if C > H, and never true otherwise.

    - False at K: for m >= K it reads max(S / K, C) - H > D / m, which once true stays true. If
      that is so from floor(K) + 1 on, K not being whole, and at floor(K) too, then it is true
      there by S - H m > D, and so for every m.
    - True at K (or for ever, without a limit): the last m at which it is false, if there is one,
      is the last with (C - H) m <= D, provided that S - H m <= D there too. If S - H m > D there,
      it is so for every smaller m as well, and nothing is false.
    """
    gain = t.ssd_comp - t.host_part
    if t.k_limit is not None and not _beats(t, t.k_limit):
        gain_beyond = max(t.ssd_tx / t.k_limit, t.ssd_comp) - t.host_part
        if gain_beyond <= 0:
            return None
        first = floor(t.csd / gain_beyond) + 1
        return 1 if _leads_below(t, first) else first
    if gain <= 0:
        # Only S - H m > D can be what holds; up to K it holds throughout, without a limit it
        # lasts for ever only if H is 0.
        lasts = t.k_limit is not None or (t.host_part == 0 and t.ssd_tx > t.csd)
        return 1 if lasts else None
    last_false = floor(t.csd / gain)
    if last_false < 1 or t.ssd_tx - t.host_part * last_false > t.csd:
        return 1
    if t.k_limit is not None and last_false >= t.k_limit:
        # True at K by S - H m alone, hence true for every m below it.
        return 1
    return last_false + 1


def closed_form(t: Terms) -> int:
    """Return equation 8 with equation 12's floor of 1: max(ceil((D - S) / C), 1).

    It is the paper's only if `t` has no store time and overlaps nothing; ``bep`` passes it such
    terms.
    """
    return max(1, ceil((t.csd - t.ssd_tx) / t.ssd_comp))
