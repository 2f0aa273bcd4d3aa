"""The configurations of paper 004: by shares, in whole tasks, and as printed."""

import pytest
from csdplan_reproduce.configurations import predicted, section

from csdplan.jobs.check import TABLE_3


@pytest.mark.parametrize("kind", ["hadoop", "dft"])
def test_whole_tasks_never_beat_the_closed_form_and_come_near(kind: str) -> None:
    known = [(row, predicted(kind, row)) for row in TABLE_3]
    found = [one for _, one in known if one]
    assert len(found) == (12 if kind == "hadoop" else 8)
    for one in found:
        assert one.shares * 0.95 < one.tasks <= one.shares * (1 + 1e-9)


@pytest.mark.parametrize(("kind", "printed"), [("hadoop", 2.2), ("dft", 5.4)])
def test_a_share_is_fitted_to_the_one_number_that_is_printed(kind: str, printed: float) -> None:
    shown = [one for row in TABLE_3 if (one := predicted(kind, row)) and one.printed]
    assert [one.printed for one in shown] == [printed]
    assert shown[0].shares == pytest.approx(printed, rel=5e-3)


def test_six_drives_bring_the_low_host_to_the_high_one() -> None:
    low = {row.enabled: predicted("hadoop", row) for row in TABLE_3 if row.host == "low"}
    assert low[6] is not None
    # The low host alone is 0.54 of the high one.
    assert low[6].shares * 0.54 == pytest.approx(1, rel=0.01)


def test_what_is_fitted_stands_out_and_every_configuration_has_a_row() -> None:
    rows = [line for line in section().splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(TABLE_3)
    assert [row for row in rows if "**" in row] == [rows[-1]]
