"""Cycles of the paper's combinations, of the sequential baseline and of small files.

The model of `model.py` is first compared with the simulated circuit, cycle for cycle. Memory by
default: a beat of 64 bytes a cycle (DDR4-2400, 19.2 GB/s, at 300 MHz), 100 cycles to the first
beat, 3,000 cycles (10 us) to start each unit. All three are assumptions, and so is the clock; the
tables say how much hangs on them.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace

from model import PAGE, Memory, Model
from synthesize import PAPER, SEQUENTIAL
from tools import Failed, Parameters, bench, build, has_verilator

CLOCK_MHZ = 300
GIB = 1 << 30
MEMORY = Memory()
WIDE = Parameters(1, 15)
SHAPES = [Parameters(3, 2, 64, 512), Parameters(1, 1), Parameters(13, 5, 32, 256)]
Record = dict[str, object]


def total(parameters: Parameters, size: int, memory: Memory = MEMORY) -> int:
    """Return cycles of a file of `size` bytes, units started one after another before."""
    run = Model(parameters).extrapolated(size // PAGE, memory)
    return memory.start_up * parameters.units + run


def own_memories(parameters: Parameters, size: int, steps: int) -> int:
    """Return cycles if every unit copied from a memory of its own, then computed: no sharing."""
    rounds = -(-size // (PAGE * parameters.pages * parameters.units))
    return rounds * (parameters.pages * PAGE * 8 // parameters.bus_bits + steps)


def spread(cycles: list[int]) -> float:
    """Return by how many percent the least is below the most."""
    return 100 * (1 - min(cycles) / max(cycles))


def check(every: bool) -> Iterator[Record]:
    """Compare the model with the simulated circuit; yield what was compared."""
    for parameters in SHAPES + (PAPER if every else [PAPER[0], PAPER[-1]]):
        program, model = build(parameters), Model(parameters)
        together = parameters.pages * parameters.units
        for pages in (1, together + 1, 3 * together):
            for rate, latency in ((64, 100), (20, 7)):
                memory = Memory(rate, latency)
                words = (pages, memory.period(parameters), latency)
                simulated = int(str(bench(program, "cycles", *words)["last_result"]))
                modelled = model.run(pages, memory)
                if simulated != modelled:
                    raise Failed(f"{parameters}, {pages} pages: {simulated}, model {modelled}")
        yield {"record": "cycles-checked", "parameters": str(parameters), "simulated": simulated,
               "model": modelled, "pages": pages}  # fmt: skip


def by_combination() -> Iterator[Record]:
    """Yield the paper's combinations on 1 GiB next to the sequential baseline (figures 8, 10)."""
    for lane in (1, 2, 4, 8):
        sequential = total(replace(SEQUENTIAL, lane_bits=lane), GIB)
        for parameters in PAPER:
            cycles = total(replace(parameters, lane_bits=lane), GIB)
            own = own_memories(parameters, GIB, 8 * PAGE // lane)
            yield {"record": "cycles", "bytes": GIB, "pages": parameters.pages,
                   "units": parameters.units, "lane_bits": lane, "cycles": cycles,
                   "ms_at_300_mhz": round(cycles / CLOCK_MHZ / 1000, 1),
                   "sequential": sequential, "speed_up": round(sequential / cycles, 2),
                   "own_memories": own}  # fmt: skip


def by_size() -> Iterator[Record]:
    """Yield small files on one unit, on a unit that copies first, and on 15 units (figure 7)."""
    for size in (PAGE, 15 * PAGE):
        for start_up in (0, 3000, 30000):
            memory = replace(MEMORY, start_up=start_up)
            pages = size // PAGE
            # A unit that copies a page and then computes does not load the next one meanwhile.
            one = Model(SEQUENTIAL)
            copying = start_up + pages * one.run(1, memory)
            yield {"record": "size", "bytes": size, "start_up": start_up,
                   "sequential": total(SEQUENTIAL, size, memory), "copy_first": copying,
                   "pages_15": total(Parameters(15, 1), size, memory),
                   "units_15": total(WIDE, size, memory)}  # fmt: skip


def by_assumption() -> Iterator[Record]:
    """Yield how speed-up and spread change with bandwidth, latency, start-up and unrolling."""

    def row(name: str, value: float, memory: Memory, lane: int = 8) -> Record:
        cycles = [total(replace(p, lane_bits=lane), GIB, memory) for p in PAPER]
        sequential = total(replace(SEQUENTIAL, lane_bits=lane), GIB, memory)
        return {"record": "sensitivity", "of": name, "value": value, "lane_bits": lane,
                "speed_up": round(sequential / min(cycles), 1),
                "spread_percent": round(spread(cycles), 1)}  # fmt: skip

    for rate in (64, 40, 20, 10.67):
        yield row("bytes per cycle", rate, replace(MEMORY, bytes_per_cycle=rate))
    for latency in (0, 1000):
        yield row("latency", latency, replace(MEMORY, latency=latency))
    for start_up in (0, 30000, 300000):
        yield row("start-up", start_up, replace(MEMORY, start_up=start_up))
    for lane in (1, 2, 4, 16):
        yield row("LANE_BITS", lane, MEMORY, lane)


def print_tables(rows: list[Record]) -> None:
    """Print the records as tables."""
    last = ""
    for row in rows:
        keys = [key for key in row if key != "record"]
        if row["record"] != last:
            last = str(row["record"])
            print(f"\n{last}\n" + "".join(f"{key:>22}" for key in keys))
        print("".join(f"{row[key]!s:>22}" for key in keys), flush=True)


def records(every: bool) -> list[Record]:
    """Return all records: comparison with the circuit, if it can be simulated, and tables."""
    rows: list[Record] = []
    if has_verilator():
        rows += check(every)
    return [*rows, *by_combination(), *by_size(), *by_assumption()]


def main() -> int:
    """Print the tables; exit with 1 if the model is not the circuit's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--all", action="store_true", help="compare all of the paper's combinations"
    )
    try:
        rows = records(parser.parse_args().all)
    except Failed as why:
        print(f"FAILED: {why}")
        return 1
    print_tables(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
