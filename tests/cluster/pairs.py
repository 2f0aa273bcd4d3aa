"""Compares pairs of words that Pairs.java has counted with Python's counts.

pairs.py FOLDER: reads `WORD WORD<tab>COUNT` from standard input; FOLDER has the text.
"""

import collections
import itertools
import pathlib
import sys


def main() -> None:
    expected: collections.Counter[str] = collections.Counter()
    for path in pathlib.Path(sys.argv[1]).iterdir():
        for line in path.read_text().splitlines():
            expected.update(map(" ".join, itertools.pairwise(line.split())))
    found: collections.Counter[str] = collections.Counter()
    lines = 0
    for line in sys.stdin:
        pair, count = line.rstrip("\n").split("\t")
        found[pair] += int(count)
        lines += 1
    if found != expected or lines != len(expected):
        sys.exit(f"{lines} pairs instead of {len(expected)}, or other counts")
    print(f"{lines} pairs, {found.total()} occurrences: every count is Python's")


if __name__ == "__main__":
    main()
