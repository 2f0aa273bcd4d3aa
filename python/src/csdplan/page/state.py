"""The state that determines everything the page shows, and its form in a link.

A state from a link is checked like any input: shipped profiles by name only (a link never names a
file), numbers within their sliders. An uploaded profile travels in the link, packed.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from urllib.parse import parse_qs, urlencode

from csdplan.errors import ModelError
from csdplan.profile import Profile, load, shipped_names
from csdplan.profile.read import parse
from csdplan.profile.schema import Point

#: Name of an uploaded profile.
UPLOADED = "uploaded"
#: Fields that are chosen by name.
CHOICES = ("profile", "kernel", "device", "ssd", "size")
TEXTS = (*CHOICES, "text")
#: A profile is at most this long, read from a file or unpacked from a link [bytes].
PROFILE_BYTES_MAX = 256 * 1024
#: A link longer than this is refused by some programs that would pass it on.
LINK_MAX = 16_000


@dataclass(frozen=True)
class Slider:
    """One number that can be set.

    Attributes
    ----------
    name, label : str
        Field of `State`; what the page calls it.
    low, high, step : float
        Its range and the distance between its values.
    unit : str
        Unit, or empty.
    group : str
        Heading under which it stands.
    """

    name: str
    label: str
    low: float
    high: float
    step: float
    unit: str = ""
    group: str = "System"

    def checked(self, value: object) -> float:
        """Return `value` as a number of this slider.

        Raises
        ------
        ModelError
            If it is none, or out of range.
        """
        expected = f"a number from {self.low:g} to {self.high:g}"
        try:
            number = float(str(value))
        except ValueError as error:
            raise ModelError(self.name, value, expected) from error
        if not self.low <= number <= self.high:
            raise ModelError(self.name, value, expected)
        if self.step == 1 and number != int(number):
            raise ModelError(self.name, value, "a whole number")
        return number


SLIDERS = (
    Slider("cores", "Host cores at work", 1, 64, 1),
    Slider("k_limit", "k_limit: SSDs that fill the host's link", 0, 64, 1),
    Slider("bandwidth", "Drive's internal bandwidth", 0.25, 8, 0.05, "times", "Drive"),
    Slider("compute", "Drive's computational power", 0.25, 8, 0.05, "times", "Drive"),
    Slider("iso", "Break-even point to draw a line for", 1, 64, 1, "drives", "Drive"),
    Slider("sd_tx", "Slow-down of the host's transfer", 1, 10, 0.1, "times"),
    Slider("sd_comp", "Slow-down of the host's compute", 1, 10, 0.1, "times"),
    Slider("ssds", "SSDs to compare with", 1, 64, 1, "", "Prices"),
    Slider("host_usd", "Host of the SSDs", 0, 5000, 1, "USD", "Prices"),
    Slider("csd_host_usd", "Host of the computational drives", 0, 5000, 1, "USD", "Prices"),
    Slider("ssd_usd", "SSD", 0, 1000, 1, "USD", "Prices"),
    Slider("csd_usd", "Computational drive", 0, 1000, 1, "USD", "Prices"),
    Slider("need_GBps", "Throughput required", 0.1, 40, 0.1, "GB/s", "Requirements"),
    Slider("need_TB", "Capacity required", 0, 200, 1, "TB", "Requirements"),
)
_BY_NAME = {slider.name: slider for slider in SLIDERS}


@dataclass(frozen=True)
class State:
    """One state of the page; fields named as the sliders, and `text` of an uploaded profile.

    ``k_limit`` 0 stands for the profile's own. ``device``, ``ssd`` and ``size`` (in bytes) are
    empty where the profile leaves no choice. Prices: the published ones, in 2022.
    """

    profile: str = "newport"
    kernel: str = "count"
    device: str = ""
    ssd: str = ""
    size: str = ""
    cores: float = 4
    k_limit: float = 0
    bandwidth: float = 1
    compute: float = 1
    iso: float = 4
    sd_tx: float = 1
    sd_comp: float = 1
    ssds: float = 8
    host_usd: float = 1828
    csd_host_usd: float = 485
    ssd_usd: float = 100
    csd_usd: float = 110
    need_GBps: float = 12
    need_TB: float = 16
    text: str = ""

    def chosen_profile(self) -> Profile:
        """Return the profile.

        Raises
        ------
        CsdplanError
            If there is no such profile, or the uploaded one breaks the schema.
        """
        return _profile(self.profile, self.text)


def picks(state: State) -> dict[str, tuple[str, ...]]:
    """Return the choices: profiles, kernels, and the devices and sizes that a profile has.

    The working sets are those of the state's drive and SSD, both sides having measured them.
    """
    profile = state.chosen_profile()
    drives, hosts = profile.points(state.kernel, "drive"), profile.points(state.kernel, "host")
    names = _names(drives), _names(hosts)
    device, ssd = (
        chosen if chosen in found else next(iter(found), "")
        for chosen, found in zip((state.device, state.ssd), names, strict=True)
    )
    sizes = {p.bytes for p in drives if p.device == device}
    sizes &= {p.bytes for p in hosts if p.device == ssd and p.units == 1}
    return {
        "profile": profile_names(state.text),
        "kernel": profile.kernels(),
        "device": names[0],
        "ssd": names[1],
        "size": tuple(str(size) for size in sorted(sizes, reverse=True)),
    }


def normalized(state: State) -> State:
    """Return the state with the first possible choice in place of an impossible one.

    A field without a choice is left empty, so that a link does not mention it.
    """
    for name in ("kernel", "device", "ssd", "size"):
        found = picks(state)[name]
        chosen = getattr(state, name)
        if name != "kernel" and len(found) < 2:  # noqa: PLR2004 - of one there is no choice
            state = replace(state, **{name: ""})  # type: ignore[arg-type]
        elif chosen not in found and found:
            state = replace(state, **{name: found[0]})  # type: ignore[arg-type]
    return state


def check_choices(state: State) -> None:
    """Refuse a kernel, device or size that the profile does not have.

    Raises
    ------
    ModelError
        If a choice is named that there is not; the message lists those there are.
    """
    found = picks(state)
    for name in ("kernel", "device", "ssd", "size"):
        chosen = getattr(state, name)
        if chosen and chosen not in found[name]:
            listed = ", ".join(found[name]) or "none"
            raise ModelError(name, chosen, f"one that {state.profile} has: {listed}")


def _names(points: list[Point]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(point.device for point in points))


def profile_names(text: str) -> tuple[str, ...]:
    """Return the profiles to choose from, the uploaded one last."""
    return (*computing_names(), UPLOADED) if text else computing_names()


@lru_cache(maxsize=1)
def computing_names() -> tuple[str, ...]:
    """Return the shipped profiles that have a drive that computes."""
    return tuple(
        name
        for name in shipped_names()
        if any(point.where == "drive" for point in load(name).point)
    )


@lru_cache(maxsize=32)
def _profile(profile: str, text: str) -> Profile:
    if profile == UPLOADED and text:
        return parse(text, file="the uploaded profile")
    if profile not in computing_names():
        raise ModelError("profile", profile, f"one of {', '.join(computing_names())}")
    return load(profile)


def of_values(values: Mapping[str, object]) -> State:
    """Return the state of raw values; absent ones keep their defaults.

    Raises
    ------
    ModelError
        If a value is none that its slider can have.
    """
    state = State()
    numbers = {
        name: slider.checked(values[name])
        for name, slider in _BY_NAME.items()
        if values.get(name) is not None
    }
    texts = {name: str(values[name]) for name in TEXTS if values.get(name)}
    return replace(state, **numbers, **texts)  # type: ignore[arg-type]


def to_query(state: State) -> str:
    """Return the part of a link from ``?`` on; only what differs from the default is in it."""
    plain = State()
    pairs: dict[str, str] = {}
    for field in fields(State):
        value = getattr(state, field.name)
        if value == getattr(plain, field.name):
            continue
        if field.name == "text":
            if state.profile == UPLOADED:
                pairs["text"] = _packed(value)
        else:
            pairs[field.name] = value if isinstance(value, str) else f"{value:g}"
    return f"?{urlencode(pairs)}"


def from_query(query: str) -> State:
    """Return the state that a link holds.

    Raises
    ------
    ModelError
        If the link holds what no state has.
    """
    found = parse_qs(query.removeprefix("?"), keep_blank_values=True, max_num_fields=100)
    values: dict[str, object] = {name: texts[-1] for name, texts in found.items()}
    known = {field.name for field in fields(State)}
    if unknown := sorted(set(values) - known):
        raise ModelError("link", ", ".join(unknown), f"only {', '.join(sorted(known))}")
    if "text" in values:
        values["text"] = _unpacked(str(values["text"]))
    return of_values(values)


def _packed(text: str) -> str:
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def _unpacked(text: str) -> str:
    expected = "a profile as this page packs it"
    try:
        packed = base64.b64decode(text.encode(), altchars=b"-_", validate=True)
        stream = zlib.decompressobj()
        # Bounded: a short link can unpack to gigabytes.
        data = stream.decompress(packed, PROFILE_BYTES_MAX)
        if not stream.eof:
            raise ModelError("link: text", "too long or cut off", expected)
        return data.decode("utf-8")
    except (binascii.Error, zlib.error, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError("link: text", "damaged", expected) from error
