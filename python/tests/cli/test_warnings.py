"""More cores than the host has are warned of wherever a number of cores can be given."""

from pathlib import Path
from typing import Any

import pytest

import csdplan as cp
from csdplan import ModelError

BEYOND = "Host(64) exceeds the host's 48 cores"


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (cp.surface, {"bandwidth": [1, 2], "compute": [1, 2], "host_cores": 64}),
        (cp.overload, {"host_cores": 64}),
        (cp.simulate, {"host_cores": 64, "tasks": 80, "enabled": [0]}),
        (cp.uncertainty, {"host_cores": 64, "samples": 16, "base": 2}),
        (cp.grid, {"host_cores": [64]}),
    ],
)
def test_cores_that_the_host_lacks_are_warned_of(command: Any, options: dict[str, Any]) -> None:
    found = command("newport", "count", **options)
    tables = found.values() if type(found) is dict else [found]
    for table in tables:
        assert any(BEYOND in text for text in table.attrs["warnings"])


def test_sweeps_and_mixes_warn_too() -> None:
    swept = cp.sweep("newport", "count", "host_cores", [1, 64])
    mixed = cp.mix("newport", {"count": 1.0}, host_cores=64)
    for tables in (swept, mixed):
        assert any(BEYOND in text for t in tables.values() for text in t.attrs["warnings"])


def test_a_host_faster_than_the_profiles_is_costed(tmp_path: Path) -> None:
    system = (
        'name = "{}"\ncpu = "x"\ncomputes = "host"\nhost_usd = 1.0\ndrive_usd = 1.0\n'
        "drives = 4\ndrive_bytes = 1_000\nslow_down = {}\n"
    )
    text = 'profile = "newport"\nkernel = "count"\n'
    text += "".join(f"[[system]]\n{system.format(n, s)}" for n, s in (("a", 1.0), ("b", 0.5)))
    file = tmp_path / "fast.toml"
    file.write_text(text, encoding="utf-8")
    costs = cp.tco(file)["as_configured"]
    assert costs["time_s"].iloc[1] < costs["time_s"].iloc[0]
    file.write_text(text.replace("0.5", "-0.5"), encoding="utf-8")
    with pytest.raises(ModelError, match="b: slow_down"):
        cp.tco(file)
