"""Commands of a Markdown page, in order, each with what the page shows of its output.

Commands to run are those of fenced blocks marked ``console`` (after ``$``; other lines are output)
or ``sh`` (every line), and those in the first column of tables headed ``command``. Comments in the
page's source, each on its own line, steer the next block or table:

``<!-- not run: REASON -->``        skips it
``<!-- needs: COMMAND -->``         skips it where this command fails, such as for want of a tool
``<!-- first: COMMAND -->``         runs a command that the page does not show, such as for data
``<!-- answers: TEXT -->``          its commands run on a terminal on which this is typed
``<!-- exits with N -->``           its last command ends with this exit code instead of 0

Anything else that looks like a command is an error, so that no command is left out unnoticed:
indented code, and fenced blocks of other languages with lines that begin with one of our programs.
"""

import re
from dataclasses import dataclass, field

FENCE = re.compile(r"^```(\w*)\s*$")
COMMENT = re.compile(r"^<!-- (.*) -->$")
STEER = re.compile(r"^(not run|needs|first|answers): (.+)$|^(exits with) (\d+)$")
OURS = re.compile(r"^(\$ )?(csd|csdplan|make|cargo|nvme)( |$)")
ROW = re.compile(r"^\| `((?:[^`|]|\\\|)+)` \|")
RUN = ("console", "sh")


class PageError(Exception):
    """A page that cannot be read as commands."""


@dataclass
class Command:
    """A command as it is written, and its output as far as the page shows it."""

    text: str
    line: int
    shown: list[str] = field(default_factory=list)
    # Not on the page, but needed by its commands.
    hidden: bool = False
    skipped: str = ""
    needs: str = ""
    answers: str = ""
    code: int = 0

    @property
    def in_background(self) -> bool:
        """True if the shell does not wait for it."""
        return bool(re.search(r"(?<!&)&\s*(#.*)?$", self.text))


class Steering:
    """Requests of comments about the next block or table."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}

    def take(self, key: str, value: str) -> None:
        """Remember one comment."""
        if key in self.words:
            raise PageError(f"`{key}` twice for one block")
        self.words[key] = value

    def apply(self, commands: list[Command]) -> None:
        """Steer a block's commands, and forget."""
        for command in commands:
            command.skipped = self.words.get("not run", "")
            command.needs = self.words.get("needs", "")
            command.answers = self.words.get("answers", "")
        if commands:
            commands[-1].code = int(self.words.get("exits with", "0"))
        self.words = {}


def commands(text: str) -> list[Command]:
    """List the commands of a page."""
    found: list[Command] = []
    steering = Steering()
    lines = text.splitlines()
    at = 0
    before = ""
    while at < len(lines):
        line = lines[at]
        begin = at
        try:
            if fence := FENCE.match(line):
                at = end_of_fence(lines, at)
                block = fenced(fence[1], lines[begin + 1 : at], begin + 2)
                steering.apply(block)
                found += block
            elif re.match(r"^\| command(s)? \|", line):
                at = end_of_table(lines, at)
                rows = table(lines[begin:at], begin + 1)
                steering.apply(rows)
                found += rows
                at -= 1
            elif comment := COMMENT.match(line):
                found += steered(steering, comment[1], begin + 1)
            elif line.startswith("    ") and not before.strip():
                raise PageError("code by indentation: fence it")
            elif line.strip() and steering.words:
                raise PageError("the comment before it steers no block or table")
        except PageError as error:
            raise PageError(f"line {begin + 1}: {error}") from None
        before = line
        at += 1
    if steering.words:
        raise PageError("the last comment steers no block or table")
    return found


def steered(steering: Steering, comment: str, line: int) -> list[Command]:
    """Take a comment; return the command in it, if any."""
    match = STEER.match(comment)
    if match is None:
        raise PageError(f"a comment that means nothing: {comment}")
    if match[1] == "first":
        return [Command(match[2], line, hidden=True)]
    steering.take(match[1] or match[3], match[2] or match[4])
    return []


def end_of_fence(lines: list[str], at: int) -> int:
    """Find the line that closes a block."""
    for end in range(at + 1, len(lines)):
        if lines[end] == "```":
            return end
    raise PageError("a block that is not closed")


def end_of_table(lines: list[str], at: int) -> int:
    """Find the first line after a table."""
    while at < len(lines) and lines[at].startswith("|"):
        at += 1
    return at


def fenced(language: str, lines: list[str], first: int) -> list[Command]:
    """List the commands of a block; ``first`` is the number of its first line."""
    found: list[Command] = []
    if language not in RUN:
        for line in lines:
            if OURS.match(line):
                raise PageError(f"commands in a block that is not `console` or `sh`: {line}")
        return found
    unfinished = False
    for number, line in enumerate(lines, first):
        if unfinished:
            found[-1].text += "\n" + line.removeprefix("> ")
        elif language == "sh":
            if line.strip() and not line.startswith("#"):
                found.append(Command(line, number))
        elif line.startswith("$ "):
            found.append(Command(line[2:], number))
        elif found:
            found[-1].shown.append(line)
        else:
            raise PageError("output before the first command")
        started = language == "sh" or line.startswith("$ ") or unfinished
        unfinished = started and line.endswith("\\")
    return found


def table(lines: list[str], first: int) -> list[Command]:
    """List the commands of a table; ``first`` is the number of its header."""
    found = []
    for number, line in enumerate(lines[2:], first + 2):
        row = ROW.match(line)
        if row is None:
            raise PageError(f"a row without a command: {line}")
        found.append(Command(row[1].replace("\\|", "|"), number))
    return found


def mentions(text: str) -> list[tuple[int, str]]:
    """List the commands of ours that a page's prose and tables mention, with their lines."""
    found = []
    fence = skipped = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fence = not fence
        # Rows that are not run may be wrong on purpose.
        skipped = line.startswith("<!-- not run: ") or (skipped and line.startswith("|"))
        if not fence and not skipped:
            spans = re.findall(r"`((?:csd|csdplan) [^`]+)`", line)
            found += [(number, span.replace("\\|", "|")) for span in spans]
    return found
