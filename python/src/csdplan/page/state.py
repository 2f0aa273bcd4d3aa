"""One scenario: all that the page shows depends on, and its form in a link.

A scenario from a link is checked like any input: shipped profiles by name only (a link never names
a file), numbers within their ranges. An uploaded profile travels in the link, packed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from csdplan.errors import CsdplanError, ModelError
from csdplan.page.parts import check as check_parts
from csdplan.page.prices import price_usd
from csdplan.page.quantities import BY_NAME, CORE, RATE, RETURNS, SPREAD
from csdplan.profile import Profile, load, shipped_names
from csdplan.profile.read import parse
from csdplan.profile.schema import Point
from csdplan.request.ask import SPREAD as USUAL_SPREAD
from csdplan.request.coding import protection

#: Name of an uploaded profile.
UPLOADED = "uploaded"
#: Fields that are chosen by name.
CHOICES = ("profile", "kernel", "device", "ssd_profile", "ssd", "size")
#: Fields that a request of `plan` has, and that are chosen by name too.
WAYS = ("protect", "usable", "overlap", "network")
TEXTS = (*CHOICES, *WAYS, "text", "parts")
#: Texts that are as long as a file, and packed in a link.
PACKED = ("text", "parts")
#: A profile is at most this long, read from a file or unpacked from a link [bytes].
PROFILE_BYTES_MAX = 256 * 1024
#: Workloads at most.
WORKS_MAX = 8
#: Values of the ways that are a few words; the first is the default.
_WAYS = {
    "usable": ("yes", "no"),
    "overlap": ("pipelined", "serial"),
    "network": ("auto", "yes", "no"),
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}")
_WORK_KEY = re.compile(r"work([0-9]+)\.(name|rate|core|returns|spread)")


@dataclass(frozen=True)
class Work:
    """One workload of the purchase.

    Attributes
    ----------
    name : str
        A kernel of the profile or, with `core`, any name.
    rate : float
        Input that must be processed [GB/s].
    core : float
        Input that one core processes [GB/s]; 0 for a kernel of the profile.
    returns, spread : float
        Share that crosses back to the host, and spread of its times [%].
    """

    name: str
    rate: float
    core: float = 0.0
    returns: float = 0.0
    spread: float = 100 * USUAL_SPREAD


@dataclass(frozen=True)
class State:
    """One scenario; numbers are named and measured as `csdplan.page.quantities` has them.

    ``k_limit`` 0 stands for the profile's own. ``device``, ``ssd`` and ``size`` (in bytes) are
    empty where the profile leaves no choice, ``ssd_profile`` if the SSDs are the profile's own.
    Prices: those of the catalogue. ``text`` is the uploaded profile, ``parts`` a catalogue of one's
    own. The rest is a request of ``csdplan plan``.
    """

    profile: str = "newport"
    kernel: str = "count"
    device: str = ""
    ssd_profile: str = ""
    ssd: str = ""
    size: str = ""
    cores: float = 4
    k_limit: float = 0
    sd_tx: float = 1
    sd_comp: float = 1
    bandwidth: float = 1
    compute: float = 1
    iso: float = 4
    ssds: float = 8
    host_usd: float = field(default_factory=lambda: price_usd("host_usd"))
    csd_host_usd: float = field(default_factory=lambda: price_usd("csd_host_usd"))
    ssd_usd: float = field(default_factory=lambda: price_usd("ssd_usd"))
    csd_usd: float = field(default_factory=lambda: price_usd("csd_usd"))
    works: tuple[Work, ...] = field(default=(Work("count", 120.0),))
    store: float = 500
    cold: float = 0
    cold_read: float = 0
    serve: float = 0
    write: float = 0
    write_daily: float = 0
    growth: float = 0
    compression: float = 1
    filesystem: float = 2
    spare: float = 0
    protect: str = "rs:8+2"
    usable: str = "yes"
    overlap: str = "pipelined"
    network: str = "auto"
    budget: float = 0
    power: float = 0
    rack: float = 0
    hosts_max: float = 64
    years: float = 5
    kwh: float = 0
    text: str = ""
    parts: str = ""

    def chosen_profile(self) -> Profile:
        """Return the profile.

        Raises
        ------
        CsdplanError
            If there is no such profile, or the uploaded one breaks the schema.
        """
        return profile_named(self.profile, self.text)

    def host_profile(self) -> Profile:
        """Return the profile of the host and its SSDs."""
        return profile_named(self.ssd_profile or self.profile, self.text)


@lru_cache(maxsize=256)
def picks(state: State) -> dict[str, tuple[str, ...]]:
    """Return the choices: profiles, kernels, and the devices and sizes that they have.

    The working sets are those of the scenario's drive and SSD, both sides having measured them.
    """
    profile, host = state.chosen_profile(), state.host_profile()
    drives, hosts = profile.points(state.kernel, "drive"), host.points(state.kernel, "host")
    names = _names(drives), _names(hosts)
    device, ssd = (
        chosen if chosen in found else next(iter(found), "")
        for chosen, found in zip((state.device, state.ssd), names, strict=True)
    )
    sizes = {p.bytes for p in drives if p.device == device}
    sizes &= {p.bytes for p in hosts if p.device == ssd and p.units == 1}
    return {
        "profile": profile_names(state.text),
        "kernel": tuple(name for name in profile.kernels() if profile.points(name, "drive")),
        "device": names[0],
        "ssd_profile": ("", *_ssd_profiles(state.profile, state.kernel, state.text)),
        "ssd": names[1],
        "size": tuple(str(size) for size in sorted(sizes, reverse=True)),
    }


def normalized(state: State) -> State:
    """Return the scenario with the first possible choice in place of an impossible one.

    A field without a choice is left empty, so that a link does not mention it. Workloads that
    the profile has no kernel for become the chosen kernel.
    """
    for name in ("kernel", "ssd_profile", "device", "ssd", "size"):
        found = picks(state)[name]
        chosen = getattr(state, name)
        if name not in {"kernel", "ssd_profile"} and len(found) < 2:  # noqa: PLR2004 - no choice
            state = replace(state, **{name: ""})  # type: ignore[arg-type]
        elif chosen not in found and found:
            state = replace(state, **{name: found[0]})  # type: ignore[arg-type]
    kernels = state.chosen_profile().kernels()
    kept: dict[str, Work] = {}
    for work in state.works:
        known = work if work.core or work.name in kernels else replace(work, name=state.kernel)
        kept.setdefault(known.name, known)
    return replace(state, works=tuple(kept.values()))


def check_choices(state: State) -> None:
    """Refuse a kernel, device, size or workload that the profile does not have.

    Raises
    ------
    ModelError
        If a choice is named that there is not; the message lists those there are.
    """
    found = picks(state)
    for name in ("kernel", "ssd_profile", "device", "ssd", "size"):
        chosen = getattr(state, name)
        if chosen and chosen not in found[name]:
            listed = ", ".join(one for one in found[name] if one) or "none"
            raise ModelError(name, chosen, f"one that {state.profile} has: {listed}")
    kernels = state.chosen_profile().kernels()
    for work in state.works:
        if not work.core and work.name not in kernels:
            listed = ", ".join(kernels)
            raise ModelError("workload", work.name, f"one that {state.profile} has: {listed}")


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


@lru_cache(maxsize=64)
def profile_named(profile: str, text: str) -> Profile:
    """Return a shipped profile, or the uploaded one, whose TOML is `text`."""
    if profile == UPLOADED and text:
        return parse(text, file="the uploaded profile")
    if profile not in shipped_names():
        raise ModelError("profile", profile, f"one of {', '.join(computing_names())}")
    return load(profile)


@lru_cache(maxsize=64)
def _ssd_profiles(profile: str, kernel: str, text: str) -> tuple[str, ...]:
    """Return the other profiles whose hosts ran the kernel on a working set of the drive's."""
    drives = {point.bytes for point in profile_named(profile, text).points(kernel, "drive")}
    others = [name for name in shipped_names() if name != profile]
    return tuple(
        name
        for name in others
        if drives & {p.bytes for p in load(name).points(kernel, "host") if p.units == 1}
    )


def _names(points: list[Point]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(point.device for point in points))


def to_values(state: State) -> dict[str, str]:
    """Return a scenario as the texts of its fields."""
    values = {name: one.text(getattr(state, name)) for name, one in BY_NAME.items()}
    values |= {name: getattr(state, name) for name in TEXTS}
    values["works"] = str(len(state.works))
    for at, work in enumerate(state.works):
        values[f"work{at}.name"] = work.name
        for one in (RATE, CORE, RETURNS, SPREAD):
            values[f"work{at}.{one.name}"] = one.text(getattr(work, one.name))
    return values


def of_values(values: Mapping[str, object]) -> tuple[State, dict[str, str]]:
    """Return the scenario of fields' texts, and the faults of fields by their names.

    Absent fields and wrong ones keep their defaults. Without any workload those of the default
    stay, unless ``works`` is 0.
    """
    plain, faults = State(), {}
    numbers = {}
    for name, quantity in BY_NAME.items():
        if values.get(name) is None:
            continue
        try:
            numbers[name] = quantity.checked(values[name])
        except CsdplanError as error:
            faults[name] = str(error)
    texts = {name: str(values[name]) for name in TEXTS if values.get(name)}
    for name, found in _WAYS.items():
        if texts.get(name, found[0]) not in found:
            faults[name] = str(ModelError(name, texts.pop(name), " or ".join(found)))
    try:
        protection(texts.get("protect", plain.protect))
    except ModelError as error:
        faults["protect"] = str(error)
        del texts["protect"]
    try:
        check_parts(texts.get("parts", ""))
    except CsdplanError as error:
        faults["parts"] = str(error)
        del texts["parts"]
    works, wrong = _works(values)
    if not works and values.get("works") != "0":
        works = plain.works
    state = replace(plain, **numbers, **texts, works=works)  # type: ignore[arg-type]
    return state, {**faults, **wrong}


def checked(values: Mapping[str, object]) -> State:
    """Return the scenario of fields' texts.

    Raises
    ------
    CsdplanError
        If a field is wrong; all that are wrong are named.
    """
    state, faults = of_values(values)
    if faults:
        raise CsdplanError("\n".join(faults.values()))
    return state


def _works(values: Mapping[str, object]) -> tuple[tuple[Work, ...], dict[str, str]]:
    rows: dict[int, dict[str, object]] = {}
    for key, value in values.items():
        if (found := _WORK_KEY.fullmatch(key)) and value is not None:
            rows.setdefault(int(found.group(1)), {})[found.group(2)] = value
    works: list[Work] = []
    faults = {}
    for at in sorted(rows)[:WORKS_MAX]:
        numbers = {}
        for one in (RATE, CORE, RETURNS, SPREAD):
            try:
                if one.name in rows[at]:
                    numbers[one.name] = one.checked(rows[at][one.name])
            except CsdplanError as error:
                faults[f"work{at}.{one.name}"] = str(error)
        name = str(rows[at].get("name", ""))
        if not _NAME.fullmatch(name):
            expected = "letters, digits, blanks, dots, dashes"
            faults[f"work{at}.name"] = str(ModelError("workload", name, expected))
        elif name in {work.name for work in works}:
            faults[f"work{at}.name"] = str(ModelError("workload", name, "names that differ"))
        else:
            measured = not numbers.get("core")
            rate = numbers.pop("rate", 1.0)
            works.append(Work(name, rate) if measured else Work(name, rate, **numbers))
    return tuple(works), faults
