"""The papers' equations as pure, vectorized functions.

- ``device``: one device (equations 1 to 4).
- ``array``: an array of m devices (equations 5 to 7).
- ``ratios``: the ratio parameters and the closed form's crossing (equations 8 to 13), CTR.
- ``erasure``: erasure coding in drives (equations 5 to 8 of the second paper).
- ``scaling``: gain by units inside a drive, and by drives that help a host.
- ``cost``: prices, energy, amortisation (Table 4 and beyond).
- ``overlap``: transfer and compute one after the other, or side by side.
- ``failure``, ``rebuild``: loss and unavailability of coded data, and rebuilds of drives.
- ``wire``, ``queues``, ``duties``: NVMe/TCP on a link and a core, and requests that wait.
- ``rent``: machines and traffic that are paid by use.
- ``inputs``: the checks that every argument passes.

Those of the three lines before the last take plain numbers. Every other function broadcasts its
arguments as NumPy does and returns a float64 array (0-d for scalars). None reads a file, a clock or
a random source. Times are in seconds, always positive: a time of zero is a failed measurement, not
a fast drive, and raises ``ModelError``.
"""

from csdplan.model.array import csd_array_time_s, ssd_array_time_s, ssd_devices_effective
from csdplan.model.device import csd_time_s, ssd_compute_time_s, ssd_time_s
from csdplan.model.overlap import Overlap, combined_s

__all__ = [
    "Overlap",
    "combined_s",
    "csd_array_time_s",
    "csd_time_s",
    "ssd_array_time_s",
    "ssd_compute_time_s",
    "ssd_devices_effective",
    "ssd_time_s",
]
