"""``csdplan ec``: measured points decide where there are some, the model only elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

import csdplan as cp
from csdplan import ModelError

HEAD = "blocks,block_MB,ssd_s,csd_s\n"


def ec(tmp_path: Path, rows: str, **options: Any) -> list[dict[str, Any]]:
    file = tmp_path / "points.csv"
    file.write_text(HEAD + rows, encoding="utf-8")
    table = cp.ec(file, **options)
    found: list[dict[str, Any]] = json.loads(table.to_json(orient="records"))
    return found


def test_equal_times_give_equal_answers(tmp_path: Path) -> None:
    """A tie at 6 drives is no win: 7, at the measured sizes as between them."""
    rows = "12,64,1,6\n48,64,1,6\n"
    found = ec(tmp_path, rows, blocks=[12, 20, 30, 48], block_MB=[64])
    assert [row["devices"] for row in found] == [7, 7, 7, 7]
    assert [row["times_from"] for row in found] == ["measured", "fitted", "fitted", "measured"]
    three = ec(tmp_path, rows + "24,64,1,6\n", blocks=[30], block_MB=[64])
    assert [row["devices"] for row in three] == [7]


def test_a_measured_size_is_answered_by_its_measurement() -> None:
    """48 blocks of 64 MB: 22.3 s over 4.8 s is 4.65, and no fit may say 4.02."""
    table = cp.ec(blocks=[48], block_MB=[64])
    assert table["host_s"].tolist() == [4.8]
    assert table["drive_s"].tolist() == [22.3]
    assert table["devices"].tolist() == [5]
    assert table["times_from"].tolist() == ["measured"]
    assert "off their points" not in table.attrs["note"]


def test_one_point_is_enough_for_its_own_size(tmp_path: Path) -> None:
    (row,) = ec(tmp_path, "48,64,4.8,22.3\n", blocks=[48], block_MB=[64])
    assert (row["devices"], row["times_from"]) == (5, "measured")
    with pytest.raises(ModelError, match="12 blocks of 64 MB: expected the measured size, 48"):
        ec(tmp_path, "48,64,4.8,22.3\n", blocks=[12], block_MB=[64])


def test_two_times_alone_are_a_question() -> None:
    table = cp.ec(csd_s=22.3, ssd_s=4.8)
    assert table["devices"].tolist() == [5]
    assert table["times_from"].tolist() == ["given"]
    faster = cp.ec(csd_s=22.3, ssd_s=4.8, drive_power=[1, 4])
    assert faster["devices"].tolist() == [5, 2]
    with pytest.raises(ModelError, match="both csd_s and ssd_s"):
        cp.ec(csd_s=22.3)


def test_times_that_grow_faster_than_the_work_are_fitted_without_a_base(tmp_path: Path) -> None:
    """Large codes take more time for each byte and block: the line through them begins below 0."""
    rows = "24,16,0.0125,4\n48,64,1,6\n"
    small, middle = ec(tmp_path, rows, blocks=[24, 30], block_MB=[16])
    assert (small["host_s"], small["times_from"]) == (0.0125, "measured")
    assert middle["times_from"] == "fitted"
    assert middle["host_s"] > 0
    with pytest.raises(ModelError, match="times that grow with the work"):
        ec(tmp_path, "24,16,5,4\n48,64,1,6\n", blocks=[24], block_MB=[16])


def test_sizes_beyond_the_points_are_said_to_be_extrapolated(tmp_path: Path) -> None:
    (row,) = ec(tmp_path, "12,64,3,4\n48,64,5,22\n", blocks=[96], block_MB=[64])
    assert row["times_from"] == "extrapolated"
    with pytest.raises(ModelError, match="twice"):
        ec(tmp_path, "12,64,3,4\n12,64,3.1,4\n", blocks=[12], block_MB=[64])
