"""Points of erasure coding: ``csdplan ec`` reads the bytes that ``csd bench ec -o`` writes."""

from pathlib import Path

import csdplan as cp

POINTS = Path(__file__).parents[3] / "docs" / "internals" / "golden" / "encode" / "points.csv"


def test_golden_points_are_answered_from_their_times() -> None:
    at_16 = cp.ec(POINTS, blocks=[24], block_MB=[16])
    assert at_16[["host_s", "drive_s", "devices", "times_from"]].to_numpy().tolist() == [
        [0.0125, 4.000001, 321, "measured"]
    ]
    at_64 = cp.ec(POINTS, blocks=[48], block_MB=[64])
    # Six drives are a tie, which is no win.
    assert at_64["devices"].tolist() == [7]
