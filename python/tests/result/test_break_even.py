"""Results: their values and warnings, and curves that agree with tables."""

import json

import pytest

from csdplan import ModelError, ProfileIncomplete
from csdplan.profile import load, parse, workload_of
from csdplan.result import HostResult, SystemResult, as_json, bep, curves

COUNT = [workload_of(load(name), "count", name=name) for name in ("newport", "smartssd")]


def lead_s(system: SystemResult, host: HostResult, devices: int) -> float:
    """Return by how much the drives are faster, from the result's own numbers alone."""
    ssd = host.ssd_tx_s / min(devices, system.k_limit) + host.ssd_comp_s
    return ssd - (system.csd_tx_s + system.csd_comp_s) / devices


def test_a_result_can_be_checked_by_hand() -> None:
    result = bep(COUNT, [1, 16])
    newport, smartssd = result.systems
    assert [host.devices for host in newport.hosts] == [12, 44]
    assert [host.closed_form_devices for host in smartssd.hosts] == [2, 32]
    assert [host.difference for host in smartssd.hosts] == ["none", "k_limit"]
    for system in result.systems:
        for host in system.hosts:
            assert host.devices is not None
            assert lead_s(system, host, host.devices) > 0 >= lead_s(system, host, host.devices - 1)


def test_options_change_the_plan_and_are_written_down() -> None:
    result = bep(COUNT[:1], [4], k_limit=16, sd_tx=2.0, sd_comp=1.5, host_part_s=0.01)
    (system,) = result.systems
    assert (system.k_limit, system.k_limit_from) == (16, "option")
    assert (result.sd_tx, result.sd_comp, result.host_part_s) == (2.0, 1.5, 0.01)
    assert system.hosts[0].difference == "host_part"
    assert system.hosts[0].ssd_limit_s == pytest.approx(3.0 / 16 + 1.5 * 0.7317073 / 4)
    assert system.hosts[0].csd_limit_s == 0.01


def test_more_cores_than_the_host_has_are_planned_with_a_warning() -> None:
    assert bep(COUNT, [48]).warnings == ()
    warnings = bep(COUNT[:1], [48, 64]).warnings
    assert warnings == (
        "newport: Host(64) exceeds the host's 48 cores; "
        "equation 2 is extrapolated beyond its range",
    )


def test_an_unknown_k_limit_is_not_taken_for_any_number() -> None:
    text = 'schema = 1\n[meta]\nmachine = "m"\n[host]\ncores = 1\n[device.a]\n' + "".join(
        f'[[point]]\nkernel = "count"\nwhere = "{where}"\ndevice = "a"\nunits = 1\n'
        'bytes = 1\noverlap = "serial"\nprov = "assumed"\n'
        "load_s = { median = 1 }\ncomp_s = { median = 1 }\n"
        for where in ("host", "drive")
    )
    bare = workload_of(parse(text), "count", name="bare")
    with pytest.raises(ProfileIncomplete, match="k_limit is unknown"):
        bep([bare], [1])
    assert bep([bare], [1], k_limit=3).systems[0].hosts[0].devices == 2


def test_never_is_none_with_its_limits_in_json() -> None:
    result = bep(COUNT[:1], [16], host_part_s=1.0)
    body = json.loads(as_json("bep", result.as_dict(), result.warnings))
    host = body["result"]["systems"][0]["hosts"][0]
    assert (host["verdict"], host["devices"]) == ("never", None)
    assert host["csd_limit_s"] == 1.0 > host["ssd_limit_s"]
    assert set(body) == {"schema", "command", "result", "warnings"}
    assert "warnings" not in body["result"]


def test_empty_requests_are_refused() -> None:
    with pytest.raises(ModelError, match=r"^workloads"):
        bep([], [1])
    with pytest.raises(ModelError, match=r"^host_cores"):
        bep(COUNT, [])


def test_an_envelope_never_holds_what_json_cannot_say() -> None:
    with pytest.raises(ValueError, match="JSON"):
        as_json("bep", {"x": float("nan")})


@pytest.mark.parametrize("kernel", ["count", "page-rank"])
def test_curves_cross_where_the_table_says(kernel: str) -> None:
    result = bep([workload_of(load("smartssd"), kernel)], [1, 4, 16])
    (system,) = curves(result)
    drives = dict(zip(system.devices, system.drives.throughput_Bps, strict=True))
    assert list(system.devices) == sorted(set(system.devices))
    for host, row in zip(system.hosts, result.systems[0].hosts, strict=True):
        assert host.break_even_devices == row.devices
        assert row.devices is not None
        assert row.devices <= system.devices[-1]
        for devices, ssds in zip(system.devices, host.throughput_Bps, strict=True):
            assert (drives[devices] > ssds) == (devices >= row.devices)


def test_curves_stop_at_k_limit_and_axes_fit_the_span() -> None:
    (near,) = curves(bep(COUNT[1:], [1]))
    flat = near.hosts[0].throughput_Bps[int(near.k_limit) - 1 :]
    assert len(set(flat)) == 1
    assert not near.logarithmic
    (far,) = curves(bep([workload_of(load("smartssd"), "page-rank")], [64]))
    assert far.logarithmic
    assert len(far.devices) <= 400


def test_bounds_are_those_of_the_uncertainty_analysis() -> None:
    """Nine draws in ten lie within; the analysis of its own draws gives the same bounds."""
    result = bep(COUNT[:1], [1, 4])
    (system,) = result.systems
    bounds = [(host.devices_low, host.devices_high) for host in system.hosts]
    assert bounds == [(11, 13), (25, 32)]
    for host in system.hosts:
        assert host.devices is not None
        assert host.devices_low is not None
        assert host.devices_high is not None
        assert host.devices_low <= host.devices <= host.devices_high
