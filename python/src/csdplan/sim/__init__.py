"""Simulated systems: effects that the closed forms leave out, and the accuracy of these forms.

- ``system``: the simulated system: nodes with drives behind a switch, a network, a job of tasks.
- ``links``: bandwidth shared fairly among the transfers that cross a link.
- ``events``: discrete-event simulation; tasks are pulled one by one by cores and drives.
- ``fleet``, ``fluid``: the limit of many small tasks, for fleets of thousands of hosts at once.
- ``outcome``: throughput, utilization and energy of a run, however it was obtained.
- ``bound``: a throughput that no run exceeds, which knows where the data lies.
- ``phased``, ``phases``: a job of maps, shuffle and reduces on one host, by events.
- ``expected``: the time that the closed forms give for the same system.

Equal inputs give equal outcomes: the only randomness comes from the job's seed. Nothing here
reads a profile, a clock or a file.
"""

from csdplan.sim.bound import bound_Bps
from csdplan.sim.events import simulate
from csdplan.sim.expected import expected_time_s
from csdplan.sim.fleet import Fleet, fleet_of
from csdplan.sim.fluid import FleetOutcome, run_fluid
from csdplan.sim.outcome import Outcome
from csdplan.sim.phased import Cluster, Cost, Phased, Phases, closed_form_s
from csdplan.sim.phases import simulate_phases
from csdplan.sim.system import Job, Layout, Node, System

__all__ = [
    "Cluster",
    "Cost",
    "Fleet",
    "FleetOutcome",
    "Job",
    "Layout",
    "Node",
    "Outcome",
    "Phased",
    "Phases",
    "System",
    "bound_Bps",
    "closed_form_s",
    "expected_time_s",
    "fleet_of",
    "run_fluid",
    "simulate",
    "simulate_phases",
]
