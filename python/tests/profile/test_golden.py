"""The golden files that bind every reader of schema 1, and faults they cannot hold."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csdplan import ProfileError, ProfileInvalid, ProfileNotFound
from csdplan.profile import Profile, load, parse

GOLDEN = Path(__file__).parents[3] / "docs" / "internals" / "golden" / "profile"
VALID = sorted(GOLDEN.glob("valid-*.toml"))
INVALID = sorted(GOLDEN.glob("invalid-*.toml"))
MINIMAL = (GOLDEN / "valid-minimal.toml").read_text(encoding="utf-8")


def canonical(value: object) -> str:
    """Return text that tells 2 from 2.0, as JSON readers of other languages do."""
    return json.dumps(value, sort_keys=True)


def test_the_golden_files_are_there() -> None:
    assert len(VALID) >= 2
    assert len(INVALID) >= 30


@pytest.mark.parametrize("file", VALID, ids=lambda file: file.stem)
def test_valid_files_have_their_normal_form(file: Path) -> None:
    expected = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    assert canonical(load(file).as_dict()) == canonical(expected)


@pytest.mark.parametrize("file", INVALID, ids=lambda file: file.stem)
def test_invalid_files_are_refused_with_every_key_named(file: Path) -> None:
    keys = file.with_suffix(".txt").read_text(encoding="utf-8").split("\n")[:-1]
    with pytest.raises(ProfileInvalid) as caught:
        load(file)
    # Neither fewer problems than the file has, nor others in their wake.
    assert sorted(problem.key for problem in caught.value.problems) == sorted(keys)
    for line in str(caught.value).splitlines():
        assert line.startswith(f"{file}: ")


def test_an_unknown_version_is_the_only_problem_reported() -> None:
    with pytest.raises(ProfileInvalid) as caught:
        parse(MINIMAL.replace("schema = 1", "schema = 9").replace("cores = 4", "cores = 0"))
    assert [problem.key for problem in caught.value.problems] == ["schema"]


def test_a_message_says_file_key_value_and_expectation() -> None:
    with pytest.raises(ProfileInvalid) as caught:
        parse(MINIMAL.replace("units = 1", "units = -3"), file="mine.toml")
    assert str(caught.value) == (
        "mine.toml: point[0].units = -3: expected a whole number of at least 1"
    )


def test_an_unknown_key_lists_the_known_ones() -> None:
    with pytest.raises(ProfileInvalid, match="there are: median, p25, p75, n, prov"):
        parse(MINIMAL.replace("median = 2 ", "median = 2, mean = 2 "))


@pytest.mark.parametrize(
    "text",
    [
        b"\xff\xfe",
        b"",
        "schema = " + "9" * 5000,
        "schema = 1\nx = " + "[" * 5000 + "]" * 5000,
        MINIMAL.replace("units = 1", "units = 0x" + "f" * 9000),
        MINIMAL.replace("cores = 4", 'cores = 4\nprov = { "{x}" = "given" }'),
        MINIMAL + "overload = { kind = [1], memory_bytes = { x = 0x" + "f" * 9000 + " } }",
        MINIMAL + "overload = [1]",
        "schema = 1\nmeta = 1\nhost = 2\ndevice = 3\npoint = 4",
        "schema = 1\npoint = [1, [2]]",
        "schema = 1\npoint = [{ kernel = [1], device = {}, where = 1, units = [], bytes = {} }]",
    ],
)
def test_hostile_text_is_a_problem_never_a_crash(text: str | bytes) -> None:
    with pytest.raises(ProfileInvalid):
        parse(text)


_VALUES = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.text(max_size=4), st.floats(), st.none()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


def _toml(value: object) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items())
        return "{" + inner + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps("none" if value is None else value)


@given(_VALUES, st.sampled_from(["1000", '"d0"', "{ median = 2 }", '"drive"', "4", '"count"']))
def test_any_value_anywhere_gives_a_profile_or_a_profile_error(value: object, place: str) -> None:
    try:
        profile = parse(MINIMAL.replace(place, _toml(value)))
    except ProfileError:
        return
    assert isinstance(profile, Profile)


def test_absent_numbers_are_unknown_not_zero() -> None:
    profile = parse(MINIMAL)
    assert profile.host.idle_W is None
    assert profile.host.ingest_bw_Bps is None
    assert profile.device["d0"].price_usd is None


def test_names_and_files_are_told_apart_by_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("newport").write_text("not a profile", encoding="utf-8")
    assert "count" in load("newport").kernels()
    Path("mine.toml").write_text(MINIMAL, encoding="utf-8")
    assert load("mine.toml") == load("./mine.toml") == load(tmp_path / "mine.toml")


@pytest.mark.parametrize("source", ["nowhere.toml", "./", "no\0name.toml", "catalina-9"])
def test_what_is_not_there_is_not_found(source: str) -> None:
    with pytest.raises(ProfileNotFound):
        load(source)


def test_an_unknown_name_lists_the_shipped_ones() -> None:
    with pytest.raises(ProfileNotFound, match="newport-b, newport-encode, nvme-ssd, smartssd"):
        load("newprot")
