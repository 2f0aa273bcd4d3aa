"""Runs on this machine, for comparison with a plan: drives paced to a profile, and a host.

- ``program``: the ``csd`` program, which measures and runs.
- ``pace``: the profile that drives imitate, and the link that they share.
- ``drives``: paced drives as processes, stopped whatever happens.
- ``objects``: the kernels' inputs, and the words of a run.
- ``schedule``: the order of measurements, and their samples.

`pace.toml` is the profile that drives imitate unless another is given. This package plans nothing:
`csdplan.commands.validate` plans, and compares.
"""

from csdplan.trial.objects import KERNELS, PARTS_AT_ONCE
from csdplan.trial.pace import Pace, load_pace
from csdplan.trial.program import Csd
from csdplan.trial.schedule import Measured, Progress, Sample, Setting, measure

__all__ = [
    "KERNELS",
    "PARTS_AT_ONCE",
    "Csd",
    "Measured",
    "Pace",
    "Progress",
    "Sample",
    "Setting",
    "load_pace",
    "measure",
]
