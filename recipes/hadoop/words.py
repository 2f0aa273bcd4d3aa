"""Text for WordCount: makes it, and compares the counts of a job with those of Python.

words.py make FOLDER SEED FILES LINES    FILES files of LINES lines of 12 words
words.py check FOLDER                    reads the job's `WORD<tab>COUNT` from standard input
"""

import collections
import pathlib
import random
import sys


def make(folder: pathlib.Path, seed: int, files: int, lines: int) -> None:
    """Make files of text."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 11))) for _ in range(2000)]
    for number in range(files):
        text = "".join(" ".join(rng.choices(words, k=12)) + "\n" for _ in range(lines))
        (folder / f"part-{number}").write_text(text)


def check(folder: pathlib.Path) -> None:
    """Compare counts on standard input with those of the text."""
    expected: collections.Counter[str] = collections.Counter()
    for path in folder.iterdir():
        expected.update(path.read_text().split())
    found: dict[str, int] = {}
    for line in sys.stdin:
        word, count = line.rstrip("\n").split("\t")
        if word in found:
            sys.exit(f"{word} is there twice")
        found[word] = int(count)
    if found != expected:
        words = expected.keys() | found.keys()
        differ = [word for word in words if found.get(word) != expected.get(word)]
        sys.exit(f"{len(differ)} counts differ, such as that of {min(differ)}")
    print(f"{len(found)} words, {sum(found.values())} occurrences: every count is Python's")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", folder, seed, files, lines]:
            make(pathlib.Path(folder), int(seed), int(files), int(lines))
        case ["check", folder]:
            check(pathlib.Path(folder))
        case _:
            sys.exit(__doc__)
