"""Equations 1 to 7: values worked by hand, broadcasting, and every argument's range."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from csdplan import ModelError
from csdplan.model import (
    csd_array_time_s,
    csd_time_s,
    ssd_array_time_s,
    ssd_compute_time_s,
    ssd_devices_effective,
    ssd_time_s,
)


def test_one_device_by_hand() -> None:
    assert ssd_compute_time_s(6.0, 4) == 1.5
    assert ssd_time_s(2.0, 6.0, cores=4) == 3.5
    assert ssd_time_s(2.0, 6.0, cores=4, sd_tx=1.5, sd_comp=2.0) == 6.0
    assert csd_time_s(3.0, 9.0) == 12.0


def test_arrays_by_hand() -> None:
    # 8 / min(m, 4) + 6 / 3, and (12 + 4) / m.
    assert ssd_array_time_s([1, 2, 4, 9], 8.0, 6.0, k_limit=4, cores=3).tolist() == [10, 6, 4, 4]
    assert csd_array_time_s([1, 2, 4, 16], 12.0, 4.0).tolist() == [16, 8, 4, 1]
    assert csd_array_time_s(4, 12.0, 4.0, host_part_s=0.5) == 4.5
    assert ssd_devices_effective([3, 9], None).tolist() == [3, 9]


def test_one_device_in_an_array_is_one_device() -> None:
    alone = ssd_time_s(1.5, 0.7, cores=4, sd_tx=1.2, sd_comp=3.0)
    array = ssd_array_time_s(1, 1.5, 0.7, k_limit=8, cores=4, sd_tx=1.2, sd_comp=3.0)
    assert alone == array
    assert csd_time_s(9.0, 1.2) == csd_array_time_s(1, 9.0, 1.2)


def test_arguments_broadcast() -> None:
    times = ssd_array_time_s(np.arange(1, 6), 1.0, 1.0, k_limit=[[2], [4]])
    assert times.shape == (2, 5)
    for row, limit in enumerate([2, 4]):
        for column, devices in enumerate(range(1, 6)):
            assert times[row, column] == ssd_array_time_s(devices, 1.0, 1.0, k_limit=limit)


def _call(function: Callable[..., Any], good: dict[str, Any], **bad: Any) -> None:
    function(**{**good, **bad})


_SSD = {"devices": 2, "tx_s": 1.0, "comp_s": 1.0, "k_limit": 8, "cores": 1}
_CSD = {"devices": 2, "tx_s": 1.0, "comp_s": 1.0}


@pytest.mark.parametrize("function_and_good", [(ssd_array_time_s, _SSD), (csd_array_time_s, _CSD)])
@pytest.mark.parametrize("argument", ["tx_s", "comp_s"])
@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "2", None, [1.0, 0.0]])
def test_times_outside_the_range_are_refused_by_name(
    function_and_good: tuple[Callable[..., Any], dict[str, Any]], argument: str, value: object
) -> None:
    function, good = function_and_good
    with pytest.raises(ModelError) as caught:
        _call(function, good, **{argument: value})
    assert caught.value.argument == argument
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("devices", 0),
        ("devices", 1.5),
        ("devices", True),
        ("cores", 0),
        ("cores", 2.5),
        ("k_limit", 0),
        ("k_limit", float("nan")),
        ("k_limit", float("-inf")),
        ("sd_tx", 0.99),
        ("sd_comp", float("inf")),
        ("tx_s", [[1.0], [1.0, 2.0]]),
    ],
)
def test_numbers_outside_the_range_are_refused_by_name(argument: str, value: object) -> None:
    with pytest.raises(ModelError, match=f"^{argument} = "):
        _call(ssd_array_time_s, _SSD, **{argument: value})


def test_a_negative_host_part_is_refused() -> None:
    with pytest.raises(ModelError, match=r"^host_part_s = -0\.1: expected"):
        csd_array_time_s(1, 1.0, 1.0, host_part_s=-0.1)
