"""Comparison of a command's output with the sample on its page.

Lines of the page must be lines of the output, in the same order. Whole numbers must be the same:
4,000 is 4,000. Measured numbers may differ: those with a fraction or a unit, and those within a
word, such as an address; and a time in ms may be one in s. ``...`` matches anything, within a line
or as one.
"""

import re
from itertools import pairwise

UNIT = re.compile(r"\(?(ns|us|ms|s|min|[KMGT]?i?B(/s)?)\b|%")
# Units that stand for each other, after a number.
ALIKE = {
    " time": re.compile(r"(?<=0) (ns|us|ms|s|min)\b"),
    " size": re.compile(r"(?<=0) [KMGT]?i?B\b(?!/)"),
    " rate": re.compile(r"(?<=0) [KMGT]?i?B/s\b"),
}
# What tables are drawn with.
DRAWN = re.compile(r"[\u2500-\u257f]+")


def missing(shown: list[str], printed: str) -> str | None:
    """Find the first shown line that was not printed where it should be."""
    lines = iter([shape(line) for line in printed.splitlines()])
    for line in shown:
        wanted = shape(line)
        pattern = re.compile(".*".join(map(re.escape, wanted.split("..."))))
        if wanted not in ("", "...") and not any(pattern.fullmatch(one) for one in lines):
            return line
    return None


def shape(line: str) -> str:
    """Replace those parts of lines that may differ."""
    words = DRAWN.sub(" ", line).split()
    alike = " ".join(shape_of_word(*pair) for pair in pairwise([*words, ""]))
    for name, unit in ALIKE.items():
        alike = unit.sub(name, alike)
    return alike


def shape_of_word(word: str, following: str) -> str:
    """Do the same for one word, given the next."""
    if "..." in word and re.search(r"\d", word):
        return "..."
    counts = re.fullmatch(r"[\d,]+", word) and not UNIT.match(following)
    if counts or re.fullmatch(r"[a-z]+\d+", word):
        return word
    word = re.sub(r"\b(?=[a-f]*\d)[0-9a-f]{8,}\b", "0", word)
    return re.sub(r"\d[\d.,]*", "0", word)
