"""The lane itself: what it takes for a command, and that it notices what is wrong."""

import os
from pathlib import Path

import page
import pytest
import run
import shown
from page import Command
from shell import Shell

PAGE = """\
Text with `csd ls` and `csd gone`.
<!-- first: touch data -->
```console
$ echo one \\
> two
one two
$ echo \\$ three
```

<!-- not run: needs a crowd -->
```console
$ false
```

<!-- exits with 3 -->
```sh
# Not a command.
exit 3
```

<!-- needs: command -v no-such-tool -->
```console
$ no-such-tool
```

<!-- answers: y -->
| command | what |
|---|---|
| `echo a \\| cat` | x |

```text
anything
```
"""


def test_commands_are_found_with_what_steers_them() -> None:
    first, echo, dollar, skipped, leaves, tool, row = page.commands(PAGE)
    assert (first.text, first.hidden) == ("touch data", True)
    assert (echo.text, echo.shown, echo.line) == ("echo one \\\ntwo", ["one two"], 4)
    assert dollar.text == "echo \\$ three"
    assert (skipped.text, skipped.skipped) == ("false", "needs a crowd")
    assert (leaves.text, leaves.code) == ("exit 3", 3)
    assert (tool.text, tool.needs) == ("no-such-tool", "command -v no-such-tool")
    assert (row.text, row.answers, row.code) == ("echo a | cat", "y", 0)
    assert page.mentions(PAGE) == [(1, "csd ls"), (1, "csd gone")]


@pytest.mark.parametrize(
    "text",
    [
        "\n    csd ls\n",
        "```\ncsd ls\n```\n",
        "```text\n$ csd ls\n```\n",
        "```console\n$ csd ls\n",
        "```console\noutput\n```\n",
        "<!-- not run: -->\n```console\n$ csd ls\n```\n",
        "<!-- not run -->\n```console\n$ csd ls\n```\n",
        "<!-- not run: why -->\nText\n",
        "<!-- not run: why -->\n",
        "<!-- not run: a -->\n<!-- not run: b -->\n```console\n$ csd ls\n```\n",
        "| command | x |\n|---|---|\n| csd ls | x |\n",
    ],
)
def test_what_would_be_left_out_unseen_is_an_error(text: str) -> None:
    with pytest.raises(page.PageError):
        page.commands(text)


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("count 4,000  12.5 ms", "count  4,000   3.75 ms"),
        ("wall 12 ms, (0.5 us)", "wall 1.02 s, (3 ms)"),
        ("5.3 MiB at 0.6 GB/s", "0 B at 17 MB/s"),
        ("x 256 MiB in 2 chunks", "x 15 MiB in 2 chunks"),
        ("digest 1c0f...", "digest 488a7871da305c64"),
        ("at 127.0.0.1:4420", "at 127.0.0.1:37621"),
        ("d0 48% (1.5 ms)", "d0 51.2% (3 ms)"),
        ("a ... b", "a 1 2 3 b"),
    ],
)
def test_lines_agree_that_differ_in_what_is_measured(line: str, printed: str) -> None:
    assert shown.missing([line], f"before\n{printed}\nafter") is None


@pytest.mark.parametrize(
    ("lines", "printed"),
    [
        (["count 4,000"], "count 0"),
        (["count 4,000  1 ms"], "count 4,001  1 ms"),
        (["d0 stopped"], "d1 stopped"),
        (["a", "b"], "b\na"),
        (["a"], ""),
        (["12 ms"], "12 MiB"),
        (["12 MB/s"], "12 MB"),
    ],
)
def test_lines_differ_in_counts_words_and_order(lines: list[str], printed: str) -> None:
    assert shown.missing(lines, printed) is not None


def test_a_shell_runs_in_order_and_notices_failures(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"]}
    commands = [
        Command("export A=1; cd /", 1),
        Command("echo $A $PWD", 2, shown=["1 /"]),
        Command("read -r line && test -t 0 && echo $line", 3, shown=["yes"], answers="yes"),
        Command("(echo serving now; exec sleep 600) &", 4, shown=["serving now"]),
        Command("false | cat", 5, code=1),
        Command("echo 6", 6, shown=["6"], needs="true"),
        Command("false", 7, needs="false"),
    ]
    bad = [
        Command("false", 1),
        Command("echo 4", 2, shown=["5"]),
        Command("echo 'error: no' &", 3),
        Command("if", 4),
        Command("exit 0", 5),
    ]
    with Shell(tmp_path, environment, tmp_path) as shell:
        counts = run.in_order("page", commands, shell)
    assert counts == {"passed": len(commands) - 1, "skipped": 1}
    for command in bad:
        with Shell(tmp_path, environment, tmp_path) as shell:
            assert run.in_order("page", [command], shell)["failed"] == 1, command.text
