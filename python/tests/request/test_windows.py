"""Windows of a day: what is asked for at every time of it, and endurance by the day."""

import pytest

from csdplan.errors import ModelError
from csdplan.request.ask import Work
from csdplan.request.windows import Window, peaks, windows_of, with_daily_writes
from csdplan.solve.optimize import optimize
from csdplan.solve.purchase import Cpu, Demand, DriveKind, Limits, Request


def test_what_overlaps_is_asked_for_at_once() -> None:
    found = windows_of(["8:30-10,write=2GB/s,count=1GB/s", "9-12,count=3GB/s"])
    assert [(one.name, one.hours) for one in found] == [
        ("08:30-09:00", 0.5), ("09:00-10:00", 1.0), ("10:00-12:00", 2.0),
    ]  # fmt: skip
    assert [one.write_Bps for one in found] == [2e9, 2e9, 0.0]
    assert [[work.required_Bps for work in one.works] for one in found] == [[1e9], [4e9], [3e9]]


def test_a_window_goes_past_midnight() -> None:
    found = windows_of(["22-6,count=1GB/s"])
    assert [(one.begin, one.end) for one in found] == [(0.0, 6.0), (22.0, 24.0)]
    assert [one.hours for one in windows_of(["22-24,write=1GB/s"])] == [2.0]
    assert [one.hours for one in windows_of(["22-0,write=1GB/s"])] == [2.0]


def test_peaks_are_of_each_by_itself() -> None:
    whole = peaks(windows_of(["0-4,write=2GB/s,count=5GB/s", "4-9,write=3GB/s,count=1GB/s"]))
    assert (whole.write_Bps, whole.works[0].required_Bps, whole.hours) == (3e9, 5e9, 24.0)


@pytest.mark.parametrize(
    "text",
    ["", "8-10", "8-10,", "8-8,write=1GB/s", "8-25,write=1GB/s", "8:60-9,write=1GB/s",
     "8-10,write=0", "8-10,count", "8-10,count=nan", "8-10,write=1TB",
     "x-10,write=1GB/s", "-8-10,write=1GB/s"],
)  # fmt: skip
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(ModelError):
        windows_of([text])


def request(rate: float) -> Request:
    kind = DriveKind("x", 100.0, 1e12, 6e9, write_Bps=5e9, endurance_Bps=1e8)
    return Request(
        (Cpu("a", 8, 1.0, 1e12, 400),),
        (kind,),
        (Demand("storage", 1e6, {"a": 1e-12}, {}),),
        Limits(write_Bps=rate, hosts_max=4),
    )


def drives(rate: float, window: Window, windows: list[Window]) -> int:
    plan = optimize(with_daily_writes(request(rate), window, windows), explain=False)
    assert plan is not None
    return plan.drives["x"]


def test_two_hours_of_writing_take_a_twelfth_of_the_endurance() -> None:
    short, whole = Window(8, 10, 30e9, ()), Window(0, 24, 30e9, ())
    assert drives(30e9, whole, [whole]) == 300
    # 25 by endurance; and 6 by the speed of a drive, which also reads a little.
    assert drives(30e9, short, [short]) == 25
    assert drives(29e9, Window(8, 8.1, 29e9, ()), [Window(8, 8.1, 29e9, ())]) == 6


def test_writes_of_several_windows_share_a_days_endurance() -> None:
    first, second = Window(0, 6, 4e9, (Work("count", 1.0),)), Window(6, 12, 2e9, ())
    times = [first, second]
    # (4 x 6 + 2 x 6) / 24 = 1.5 GB/s on average: 15 drives, for both windows.
    assert [drives(one.write_Bps, one, times) for one in times] == [15, 15]
