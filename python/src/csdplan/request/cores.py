"""Times of one core of a part: measured on it, or in proportion to public figures.

A profile's host points are times of the machine that it was measured on. Another CPU takes them in
proportion to `core_speed` of the catalogue, unless it was measured itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from csdplan.errors import ModelError
from csdplan.hardware import Catalogue, Part
from csdplan.profile import Profile
from csdplan.request.ask import UNIT_CPU, Work
from csdplan.request.load import core_s_per_byte

#: What makers write around the name of a CPU, and does not tell it from another.
_AROUND = re.compile(r"\((?:R|TM|[0-9]{4})\)|[0-9]+-Core Processor|[™®]| +$", re.IGNORECASE)


@dataclass(frozen=True)
class Cores:
    """Times of one core.

    Attributes
    ----------
    catalogue : Catalogue
        Parts with their `core_speed`.
    profile : Profile
        Its host points are the times of a core of `reference`.
    measured : mapping of str to Profile
        Profiles that were measured on parts, by part.
    """

    catalogue: Catalogue
    profile: Profile
    measured: Mapping[str, Profile]

    @property
    def reference(self) -> str | None:
        """CPU of the catalogue that the profile was measured on; None if it is none of them."""
        machine = _plain(self.profile.meta.machine)
        named = [p for p in self.catalogue.of_kind("cpu") if _plain(p.title) in machine]
        return max(named, key=lambda part: len(part.title)).name if named else None

    def is_measured(self, part: Part) -> bool:
        """Return whether somebody has measured cores like these."""
        speed = part.numbers().get("core_speed")
        known = speed is not None and speed.prov != "assumed"
        return known or part.name in self.measured or part.name == self.reference

    def s_per_byte(self, work: Work, part: Part) -> float:
        """Return the compute time of one core of a part [s/byte].

        Raises
        ------
        ModelError
            If no profile has points of the kernel.
        """
        own = self.measured.get(part.name)
        known = None if own is None or work.core_Bps else core_s_per_byte(own, work.name)
        if known is not None:
            return known
        there, on = self._given(work)
        return there * self._speed(on) / self._speed(part.name)

    def prov(self, work: Work, part: Part) -> str:
        """Return how the time of a core of a part is known, once the workload's own time is."""
        own = self.measured.get(part.name)
        if own is not None and not work.core_Bps and core_s_per_byte(own, work.name) is not None:
            return "measured"
        if part.name == self._given(work)[1]:
            return "measured"
        speed = part.numbers().get("core_speed")
        return "assumed" if speed is None else speed.prov

    def _given(self, work: Work) -> tuple[float, str]:
        """Return the time of a core as stated, and the CPU that it is of."""
        if work.core_Bps:
            return 1.0 / work.core_Bps, work.cpu
        found = core_s_per_byte(self.profile, work.name)
        if found is None:
            listed = ", ".join(self.profile.kernels())
            expected = f"one of {listed}, or @FILE.toml with core"
            raise ModelError(f"workload {work.name}", "no such kernel", expected)
        return found, self.reference or UNIT_CPU

    def _speed(self, name: str) -> float:
        part = self.catalogue.parts.get(name)
        if part is None:
            raise ModelError("cpu", name, "a CPU that csdplan catalogue lists")
        return part.value("core_speed") or 1.0


def _plain(text: str) -> str:
    """Return the name of a CPU without marks, years and counts of cores."""
    return " ".join(_AROUND.sub("", text).lower().split())
