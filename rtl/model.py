"""Cycles of the verifier by a model of beats, and of the memory that feeds it.

The model follows every beat through the two registers before the units, and every group through
its unit; `cycles.py` checks it against the simulated circuit, cycle for cycle. The memory delivers
a beat of BUS_BITS after `latency` cycles and then one every `period` / 1024 cycles, or later if the
verifier does not take it.
"""

import math
from dataclasses import dataclass

from tools import Parameters

PAGE = 4096
ROUNDS = 12  # after which whole rounds repeat; more of small ones
FINE = 1024  # fractions of a cycle in a memory's period


@dataclass(frozen=True)
class Memory:
    """A memory as the verifier sees it, in clock cycles of the verifier."""

    bytes_per_cycle: float = 64.0
    latency: int = 100
    start_up: int = 3000  # per unit, before the stream begins

    def period(self, parameters: Parameters) -> int:
        """Return the time from beat to beat in 1024ths of a cycle, at least one cycle."""
        return max(FINE, round(FINE * parameters.bus_bits / 8 / self.bytes_per_cycle))


@dataclass
class _Unit:
    """One unit: when it began to read a group, ended it, and gave its last checksum."""

    begin: int = -1
    end: int = -1
    drained: int = -1


class Model:
    """One verifier; `run` returns the cycle in which its last result leaves."""

    def __init__(self, parameters: Parameters) -> None:
        """Derive the shape of words and beats as `verifier.sv` does."""
        share = 1 << math.ceil(math.log2(max(1, -(-parameters.bus_bits // parameters.pages))))
        word = max(parameters.lane_bits, share)
        assert word <= parameters.bus_bits, "the model has no gathering of beats"
        self.parameters = parameters
        self.beats = 8 * PAGE // parameters.bus_bits
        self.words = parameters.bus_bits // word
        self.word_steps = word // parameters.lane_bits
        self.steps = 8 * PAGE // parameters.lane_bits

    def run(self, pages: int, memory: Memory) -> int:
        """Return cycles from the first cycle of the stream to the last result, without start-up."""
        return self.ends(pages, memory)[-1]

    def ends(self, pages: int, memory: Memory) -> list[int]:
        """Return the cycle in which the last result of every group leaves."""
        period = memory.period(self.parameters)
        due = memory.latency * FINE
        units = [_Unit() for _ in range(self.parameters.units)]
        written, before, taken = -1, -1, -1  # last write, the one before, last beat taken
        ends: list[int] = []
        held: tuple[_Unit, int] | None = None  # group that waits for the next page to be whole
        left = -1
        for page in range(pages):
            group, index = divmod(page, self.parameters.pages)
            unit = units[group % len(units)]
            for beat in range(self.beats):
                take = max(-(-due // FINE), taken + 1, before)
                due = max(due, take * FINE - FINE + 1) + period
                free = -1
                if index == 0 and unit.begin >= 0:
                    rows = (beat + 1) * self.words - 1
                    free = unit.begin + rows * self.word_steps + 1
                before, taken = written, take
                written = max(take + 2, written + 1, free)
            if held and index == 0:
                left = self._drain(*held, known=written + 1, left=left)
                ends.append(left)
                held = None
            if index == self.parameters.pages - 1 or page == pages - 1:
                unit.begin = max(written + 1, unit.end)
                unit.end = max(unit.begin + self.steps, unit.drained)
                if page == pages - 1:
                    ends.append(self._drain(unit, index + 1, written + 2, left))
                else:
                    held = (unit, index + 1)
        return ends

    @staticmethod
    def _drain(unit: _Unit, count: int, known: int, left: int) -> int:
        """Return the cycle in which a group's last result leaves; one leaves in a cycle."""
        first = max(unit.end + 1, known, left)
        unit.drained = first + count - 1
        return unit.drained + 1

    def extrapolated(self, pages: int, memory: Memory) -> int:
        """Return `run` of many pages: whole rounds of all units repeat once they are steady."""
        round_pages = self.parameters.pages * self.parameters.units
        # Rounds until the last few are alike.
        rounds = max(ROUNDS, 240 // round_pages)
        if pages <= (rounds + 1) * round_pages:
            return self.run(pages, memory)
        few = pages % round_pages + (rounds - 4) * round_pages
        steady = self.run(few + 4 * round_pages, memory) - self.run(few, memory)
        return self.run(few, memory) + round(steady / 4 * ((pages - few) // round_pages))
