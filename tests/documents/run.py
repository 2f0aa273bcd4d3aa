#!/usr/bin/env python3
"""Run every command of the read-me and the guide as it is written there.

One shell runs each page from top to bottom in its own folder, which looks like a clone of the
repository, with the programs on the path. Prints each command that was not run, with the reason.
The last line is ``N passed, N failed, N skipped``; the exit status is 0 if no command failed.
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import cache
from itertools import groupby
from pathlib import Path

import page
import shown
from page import Command
from shell import Outcome, Shell

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
# What builds and runs leave in a clone.
LEFT_BEHIND = ("target", "build", "csd-array", "csd-array.toml")
PATHS = os.environ.get("PATH", "/usr/bin:/bin")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--csd", type=Path, required=True, help="the csd program")
    parser.add_argument("--csdplan", type=Path, required=True, help="the csdplan program")
    parser.add_argument("--only", default="", help="pattern of pages")
    return parser.parse_args()


def main() -> int:
    """Run the pages."""
    options = arguments()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="csd-documents-") as folder:
        programs = Path(folder) / "bin"
        programs.mkdir()
        for program in (options.csd, options.csdplan):
            (programs / program.name).symlink_to(program.absolute())
        for path in PAGES:
            if re.search(options.only, str(path)):
                begin = time.monotonic()
                counts += one_page(path, Path(folder), programs)
                print(f"{path.relative_to(ROOT)}: {time.monotonic() - begin:.1f} s", flush=True)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


def one_page(path: Path, scratch: Path, programs: Path) -> Counter[str]:
    """Run a page's commands, and check those that it only mentions."""
    name = path.relative_to(ROOT)
    text = path.read_text(encoding="utf-8")
    counts: Counter[str] = Counter()
    for line, mention in page.mentions(text):
        if why := unknown(mention, programs):
            print(f"FAILED {name}:{line}: {mention}: {why}")
            counts["failed"] += 1
    try:
        commands = page.commands(text)
    except page.PageError as error:
        print(f"FAILED {name}: {error}")
        return counts + Counter(failed=1)
    folder = Path(tempfile.mkdtemp(dir=scratch))
    clone(folder)
    environment = {
        "PATH": f"{programs}:{PATHS}",
        "HOME": str(folder),
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
        # Toolchains are in the home of the user, not in the page's.
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")),
    }
    try:
        with Shell(folder, environment, Path(tempfile.mkdtemp(dir=scratch))) as shell:
            counts += in_order(str(name), commands, shell)
    finally:
        stop(folder, programs / "csd")
        shutil.rmtree(folder)
    return counts


def in_order(name: str, commands: list[Command], shell: Shell) -> Counter[str]:
    """Run commands until one fails, because later ones may depend on it."""
    counts: Counter[str] = Counter()
    for needs in {command.needs for command in commands} - {""}:
        if shell.run(needs).code:
            for command in commands:
                if command.needs == needs and not command.skipped:
                    command.skipped = f"it needs `{needs}`"
    skipped = [command for command in commands if command.skipped]
    for reason, group in groupby(skipped, key=lambda command: command.skipped):
        first, *more = group
        others = f" (and {len(more)} more)" if more else ""
        print(f"SKIPPED {name}:{first.line}: {first.text}{others}: {reason}")
    counts["skipped"] += len(skipped)
    for command in commands:
        where = f"{name}:{command.line}: {command.text}"
        if command.skipped:
            continue
        done = shell.run(command.text, answers=command.answers, in_background=command.in_background)
        if why := wrong(command, done):
            print(f"FAILED {where}: {why}\n{done.output}")
            counts["failed"] += 1
            break
        counts["passed"] += not command.hidden
    return counts


def wrong(command: Command, done: Outcome) -> str:
    """Describe the error of an outcome; empty if it is as the page says."""
    if done.code != command.code:
        return f"it ended with {done.code}, and {command.code} was expected"
    line = shown.missing(command.shown, done.output)
    return "" if line is None else f"it did not print as shown: {line}"


def clone(folder: Path) -> None:
    """Make a folder look like a clone of this repository."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith(".") and entry.name not in LEFT_BEHIND:
            (folder / entry.name).symlink_to(entry)


@cache
def help_of(program: Path, words: tuple[str, ...]) -> str | None:
    """Ask for the help of a command; nothing if there is no such command."""
    asked = subprocess.run(
        [program, *words, "--help"],
        check=False,
        capture_output=True,
        text=True,
        env={"COLUMNS": "200", "PATH": PATHS},
    )
    return asked.stdout if asked.returncode == 0 else None


def help_with_parts(program: Path, words: tuple[str, ...]) -> str:
    """Ask for the help of a command and of those that it groups."""
    whole = help_of(program, words) or ""
    parts = re.split(r"^Commands:$", whole, maxsplit=1, flags=re.MULTILINE)[1:]
    names = [name for part in parts for name in re.findall(r"^  ([a-z-]+) ", part, re.MULTILINE)]
    helps = [help_of(program, (*words, name)) or "" for name in names if words and name != "help"]
    return "\n".join([whole, *helps])


def unknown(mention: str, programs: Path) -> str:
    """Name the command or option of a mention that does not exist."""
    program, *rest = mention.split()
    words: tuple[str, ...] = ()
    for word in rest:
        if re.fullmatch(r"[a-z][a-z-]*", word):
            if help_of(programs / program, (*words, word)) is None:
                break
            words = (*words, word)
    found = help_with_parts(programs / program, words)
    named = [word for word in rest if not word.startswith("-")]
    if not words and named and not named[0].isupper():
        return f"there is no command {named[0]}"
    options = re.findall(r"(?<!\S)--?[a-z][a-z-]*", mention)
    gone = [option for option in options if not re.search(rf"(?<!\S){option}(?![\w-])", found)]
    return f"there is no option {gone[0]}" if gone else ""


def stop(folder: Path, csd: Path) -> None:
    """Stop the processes of a page: its arrays, then all others in its folder."""
    for path in folder.rglob("*.toml"):
        if "[[drives]]" in path.read_text(encoding="utf-8"):
            down = [csd, "--quiet", "--array", path, "array", "down"]
            subprocess.run(down, check=False, stdout=subprocess.DEVNULL, timeout=120)
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + 10
        while (left := working_in(folder)) and time.monotonic() < until:
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, number)
            time.sleep(0.05)


def working_in(folder: Path) -> list[int]:
    """List the processes whose working directory is in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            at = (process / "cwd").readlink()
        except OSError:
            continue
        if at.is_relative_to(folder.resolve()):
            found.append(int(process.name))
    return found


if __name__ == "__main__":
    sys.exit(main())
