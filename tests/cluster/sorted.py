"""Compares records before and after a sort, keys and values: sorted.py BEFORE AFTER PARTS.

Both files have lines `KEY<tab>VALUE`, as `fs -text` prints them. AFTER has the PARTS of the output
one after the other, so the order of keys falls in at most PARTS - 1 places.
"""

import collections
import itertools
import pathlib
import sys


def main() -> None:
    before, after = (pathlib.Path(path).read_bytes().splitlines() for path in sys.argv[1:3])
    if not before or collections.Counter(before) != collections.Counter(after):
        sys.exit(f"{len(before)} records before, {len(after)} after, or others")
    keys = [line.split(b"\t")[0] for line in after]
    falls = sum(one > other for one, other in itertools.pairwise(keys))
    if falls >= int(sys.argv[3]):
        sys.exit(f"the order of keys falls in {falls} places")
    print(f"{len(after)} records: keys and values are those of the input, in order")


if __name__ == "__main__":
    main()
