"""Breaks copies of the verifier on purpose, and checks that the simulation sees every break.

Each mutation changes one place of the circuit. It must build, and the same runs that pass for the
verifier must fail for it.
"""

import shutil
import sys
from dataclasses import dataclass
from functools import partial

from tools import BUILD, ROOT, Failed, Parameters, Tally, bench, build, has_verilator

SMALL = Parameters(3, 2, 64, 512)
SLOW = Parameters(4, 2, 32, 32)  # loading takes longer than computing
ONE = Parameters(1, 1, 512, 512)  # rows are written over while they are read


@dataclass(frozen=True)
class Mutation:
    """One wrong circuit: `before` becomes `after`, once, in a file of `rtl/src`."""

    name: str
    file: str
    before: str
    after: str
    parameters: Parameters = SMALL


MUTATIONS = [
    Mutation("wrong polynomial (CRC-32)", "crc32c_step", "32'h82F6_3B78", "32'hEDB8_8320"),
    Mutation("one wrong bit in the polynomial", "crc32c_step", "82F6_3B78", "82F6_3B7A"),
    Mutation("no final inversion", "verifier_unit", "<= ~next[LANE]", "<= next[LANE]"),
    Mutation("state begins with 0", "verifier_unit", "state[j] <= '1;", "state[j] <= '0;"),
    Mutation(
        "dropped stall: the output does not wait",
        "verifier_collect",
        "unit_valid[unit] && (!m_tvalid || m_tready)",
        "unit_valid[unit]",
    ),
    Mutation(
        "dropped stall: the input does not wait for the unit",
        "verifier",
        "assign ready = may_write[unit];",
        "assign ready = 1'b1 | |(may_write & UNITS'(unit));",
    ),
    Mutation(
        "dropped stall: the bus does not wait",
        "verifier_gather",
        "!rst && (!out_valid || out_ready)",
        "!rst && (1'b1 || out_ready)",
    ),
    Mutation(
        "dropped stall: a group overwrites checksums that wait",
        "verifier_unit",
        "held && !(group_end && result_valid && !(result_next && result_last))",
        "held",
    ),
    Mutation(
        "rows are written one row too early",
        "verifier_unit",
        "beat < BEAT_W'(32'(row) / WORDS)",
        "beat <= BEAT_W'(32'(row) / WORDS)",
        ONE,
    ),
    Mutation("the ring turns the wrong way", "verifier_unit", "(j + PAGES - 1)", "(j + 1)"),
    Mutation(
        "runs of banks do not wrap round",
        "verifier_spread",
        "(in_run || wraps) && !broken",
        "(in_run || (wraps && broken)) && !broken",
        Parameters(5, 3, 8, 64),
    ),
    Mutation(
        "s_tlast within a page goes unnoticed",
        "verifier_gather",
        "assign broken = s_tlast && !page_end;",
        "assign broken = s_tlast && !page_end && 1'b0;",
    ),
    Mutation("error falls again", "verifier_gather", "error <= error || broken", "error <= broken"),
    Mutation(
        "a stream that breaks off keeps its last group open",
        "verifier_groups",
        "first && (whole || over)",
        "first && whole",
    ),
    Mutation(
        "numbers go on into the next stream",
        "verifier_collect",
        "number <= unit_last && group_last ? '0 : number + 1'b1;",
        "number <= number + 1'b1;",
    ),
    Mutation(
        "m_tlast with every group",
        "verifier_collect",
        "m_tlast <= unit_last && group_last;",
        "m_tlast <= unit_last;",
    ),
    Mutation(
        "reset forgets the place in the page",
        "verifier_gather",
        "      beat <= '0;\n      error",
        "      error",
        SLOW,
    ),
    Mutation(
        "reset leaves a unit reading",
        "verifier_unit",
        "      reading <= 1'b0;\n      row <= '0;\n      held <= 1'b0;",
        "      row <= '0;",
        SLOW,
    ),
]


def survives(mutation: Mutation) -> str | None:
    """Run the simulation on a mutation; return None if it passes, else the reason it fails."""
    tree = BUILD / "mutation"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT / "rtl" / "src", tree / "rtl" / "src")
    file = tree / "rtl" / "src" / f"{mutation.file}.sv"
    text = file.read_text()
    if text.count(mutation.before) != 1:
        raise Failed(f"{mutation.name}: {mutation.file} does not have its place once")
    file.write_text(text.replace(mutation.before, mutation.after))
    program = build(mutation.parameters, tree, tree)
    for seed in range(1, 9):
        for words in (("random", seed, 60), ("bad", seed)):
            try:
                bench(program, *words)
            except Failed as why:
                return str(why)
    return None


def seen(mutation: Mutation) -> dict[str, object]:
    """Return the record of a mutation; fail if the simulation does not see it."""
    why = survives(mutation)
    if why is None:
        raise Failed(f"{mutation.name}: not seen")
    return {"record": "mutation", "name": mutation.name, "seen": True, "why": why,
            "parameters": str(mutation.parameters)}  # fmt: skip


def told(mutation: Mutation) -> str:
    """Simulate a mutation; return how the simulation saw it."""
    return f"{mutation.name}: {seen(mutation)['why']}"


def main() -> int:
    """Exit with 1 if a mutation is not seen."""
    if not has_verilator():
        return 0
    tally = Tally()
    for mutation in MUTATIONS:
        tally.attempt(mutation.name, partial(told, mutation))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
