"""Run everything, or the parts that are named, and write `bench/records/rtl.jsonl`.

A part replaces its own lines of the record and leaves the others: `make rtl-long`, or `python
rtl/record.py cycles synthesis`.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from functools import partial

import cycles
import mutate
import prove
import simulate
import synthesize
from tools import ROOT, Tally, has_verilator

RECORD = ROOT / "bench" / "records" / "rtl.jsonl"
SEEDS = range(1, 11)
Rows = Iterator[dict[str, object]]


def simulation() -> Rows:
    """Simulate the long matrix; compares with the kernel; tries wrong parameters."""
    for parameters in simulate.LONG:
        results, steps, _ = simulate.simulate(parameters, SEEDS)
        yield {"record": "simulation", "parameters": str(parameters), "results": results,
               "cycles": steps, "seeds": len(SEEDS)}  # fmt: skip
    yield {"record": "parameters", "refused": simulate.wrong_parameters()}
    yield {"record": "kernel", "said": simulate.against_kernel(simulate.MATRIX[3], 1)}


def proofs() -> Rows:
    """Run all proofs."""
    for proof in prove.LONG:
        took = prove.prove(proof)
        yield {"record": "proof", "top": proof.top, **proof.values, "depth": proof.depth,
               "seconds": round(took)}  # fmt: skip


def synthesis() -> Rows:
    """Synthesize all combinations."""
    for parameters in synthesize.LONG:
        yield synthesize.synthesize(parameters)


PARTS = {
    "simulation": simulation,
    "mutations": lambda: map(mutate.seen, mutate.MUTATIONS),
    "proofs": proofs,
    "cycles": lambda: iter(cycles.records(every=True)),
    "synthesis": synthesis,
}


def write(part: str, rows: list[dict[str, object]]) -> None:
    """Replace the lines of one part in the record."""
    old = RECORD.read_text().splitlines() if RECORD.exists() else []
    lines = [line for line in old if json.loads(line)["part"] != part]
    lines += [json.dumps({"part": part, **row}, sort_keys=True) for row in rows]
    order = list(PARTS)
    lines.sort(key=lambda line: order.index(json.loads(line)["part"]))
    RECORD.write_text("".join(line + "\n" for line in lines))


def redo(part: str) -> str:
    """Run a part and replace its lines of the record; return what was written."""
    rows: list[dict[str, object]] = []
    for row in PARTS[part]():
        rows.append(row)
        print(json.dumps(row), flush=True)
    write(part, rows)
    return f"{part}: {len(rows)} lines written"


def main() -> int:
    """Write the record of every part; exit with 1 if one failed, and leave its old lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    chosen = parser.parse_args().parts or list(PARTS)
    if not has_verilator():
        return 0
    tally = Tally()
    for part in chosen:
        tally.attempt(part, partial(redo, part))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
