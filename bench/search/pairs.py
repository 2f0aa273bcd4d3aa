#!/usr/bin/env python3
"""Search in a drive compared in pairs with ripgrep over the same files.

Each file is an object of one drive with one core and media in memory. A round is, for each pattern,
``csd grep`` over all objects next to ``rg -j1 -a --no-unicode`` over the files in the page cache;
both print to a file. The sides take turns, and every second round begins with the other side. A
figure is the median of the rounds' ratios, rate of csd over that of ripgrep, with quartiles.

Before anything is measured, the lines of each file that both print are compared byte for byte, and
those of ``grep -E`` in the C locale, too. With ``--compare`` nothing else is done.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compared import MIB, ROOT, record, run, say, show, summary, turns

# Pattern, and options that csd, ripgrep and grep share.
CASES = [
    ("Sherlock Holmes", []),
    ("unwrap_or_else", []),
    ("unwrap_or_else", ["-i"]),
    ("return|unsigned|static", []),
    ("[A-Z][a-z]+Error", []),
    (r"[0-9]+\.[0-9]+\.[0-9]+", []),
    ("[A-Za-z]+ing the ", []),
    ("self", ["-v"]),
    ("^$", []),
    ("", []),
]
# Least rate of csd over that of ripgrep.
AIM = 0.8


def main() -> int:
    """Compare, measure, print, and append the record."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--csd", type=Path, default=ROOT / "target/release/csd")
    parser.add_argument("--ripgrep", type=Path, default=Path("rg"))
    parser.add_argument("--folder", type=Path, default=ROOT / "build", help="of the array file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--compare", action="store_true", help="compare the lines, and measure not")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    options.files = [file.resolve() for file in options.files]
    options.bytes = sum(file.stat().st_size for file in options.files)
    options.folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="csd-search-", dir=options.folder) as folder:
        search = Search(options, Path(folder))
        try:
            lines = search.compare()
            say(f"{lines} lines of {len(CASES)} searches are equal to ripgrep's and grep's")
            results = {} if options.compare else search.measure()
        finally:
            run(search.folder, options.csd, "array", "down", "--delete", "--yes")
    show(results, dict.fromkeys(results, AIM))
    record("search", options, ("rounds", "bytes"), results)
    return 0


class Search:
    """Files, and objects with the same bytes."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        size = f"{options.bytes // MIB * 5 // 4 + 512}M"
        up = ["--drives", "1", "--size", size, "--media", "memory"]
        run(folder, options.csd, "array", "up", *up)
        self.names = [f"file{number}" for number in range(len(options.files))]
        for file, name in zip(options.files, self.names, strict=True):
            run(folder, options.csd, "put", file, name)

    def lines(self, *words: str | Path) -> bytes:
        """Return what a search prints; it may find nothing."""
        done = subprocess.run(
            words,
            cwd=self.folder,
            check=False,
            capture_output=True,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        )
        if done.returncode > 1:
            raise RuntimeError(f"{words}: {done.stderr.decode()}")
        return done.stdout

    def compare(self) -> int:
        """Return the number of lines that csd, ripgrep and grep print alike."""
        count = 0
        for pattern, words in CASES:
            for file, name in zip(self.options.files, self.names, strict=True):
                ours = self.lines(self.options.csd, "grep", *words, pattern, name)
                others = {
                    "ripgrep": self.lines(*self.ripgrep(words, pattern), file),
                    "grep": self.lines("grep", "-a", "-E", *words, "-e", pattern, file),
                }
                for program, theirs in others.items():
                    if ours != theirs:
                        raise RuntimeError(f"{pattern!r} in {file}: not as {program}")
                count += ours.count(b"\n")
        return count

    def ripgrep(self, words: list[str], pattern: str) -> list[str | Path]:
        """Return the command that searches bytes of one encoding, in one thread."""
        options = ["-j1", "-a", "--no-unicode", "--no-mmap", "-N", "--color=never"]
        return [self.options.ripgrep, *options, *words, "-e", pattern]

    def rate(self, *words: str | Path) -> float:
        """Return the rate of a search in GB/s."""
        with (self.folder / "found").open("wb") as found:
            begun = time.perf_counter()
            done = subprocess.run(words, cwd=self.folder, check=False, stdout=found)
            took = time.perf_counter() - begun
        if done.returncode > 1:
            raise RuntimeError(f"{words}: exit code {done.returncode}")
        return self.options.bytes / took / 1e9

    def measure(self) -> dict[str, object]:
        """Return the rates of each case."""
        results: dict[str, object] = {}
        for pattern, words in CASES:
            name = " ".join([*words, repr(pattern)])
            say(name)
            ours = [self.options.csd, "grep", *words, pattern, *self.names]
            theirs = [*self.ripgrep(words, pattern), *self.options.files]
            pairs = turns(
                self.options.rounds,
                lambda theirs=theirs: self.rate(*theirs),
                lambda ours=ours: self.rate(*ours),
                unit="GB/s",
            )
            results[name] = summary(pairs, ("ripgrep", "csd"), (2, 2))
        return results


if __name__ == "__main__":
    sys.exit(main())
