"""One or two scenarios as the query of a link.

Only what differs from the default is in a link. Names of the second scenario start with ``b.``.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from urllib.parse import parse_qs, urlencode

from csdplan.errors import ModelError
from csdplan.page.quantities import BY_NAME, CORE, RATE, RETURNS, SPREAD, plain
from csdplan.page.state import PACKED, PROFILE_BYTES_MAX, TEXTS, UPLOADED, State, checked

#: A link longer than this is refused by some programs that would pass it on.
LINK_MAX = 16_000
_SECOND = "b."
#: Names that links of earlier pages used, and those of today.
_EARLIER = {"need_TB": "store", "need_GBps": "work0.rate"}
_FIELDS_MAX = 200
_OF_WORK = (RATE, CORE, RETURNS, SPREAD)


def to_query(first: State, second: State | None = None) -> str:
    """Return the part of a link from ``?`` on."""
    pairs = _pairs(first)
    if second is not None:
        # The profile says that there is a second scenario, also if it is the default.
        own = [("profile", second.profile), *(one for one in _pairs(second) if one[0] != "profile")]
        pairs += [(f"{_SECOND}{name}", value) for name, value in own]
    return f"?{urlencode(pairs)}"


def from_query(query: str) -> tuple[State, State | None]:
    """Return the scenarios that a link holds; the second one is None if it holds one alone.

    Raises
    ------
    CsdplanError
        If the link holds what no scenario has.
    """
    try:
        found = parse_qs(
            query.removeprefix("?"), keep_blank_values=True, max_num_fields=_FIELDS_MAX
        )
    except ValueError as error:
        raise ModelError("link", "too long", f"at most {_FIELDS_MAX} fields") from error
    first = {name: texts for name, texts in found.items() if not name.startswith(_SECOND)}
    second = {
        name.removeprefix(_SECOND): texts for name, texts in found.items() if name not in first
    }
    return _state(first), _state(second) if second else None


def _pairs(state: State) -> list[tuple[str, str]]:
    usual, pairs = State(), []
    for name in (*TEXTS, *BY_NAME):
        value = getattr(state, name)
        if value == getattr(usual, name):
            continue
        if name in PACKED:
            if name != "text" or UPLOADED in {state.profile, state.ssd_profile}:
                pairs.append((name, _packed(value)))
        else:
            pairs.append((name, value if isinstance(value, str) else plain(value)))
    if state.works != usual.works:
        if not state.works:
            pairs.append(("work", ""))
        for work in state.works:
            numbers = [plain(getattr(work, one.name)) for one in _OF_WORK]
            pairs.append(("work", ":".join([work.name, *numbers])))
    return pairs


def _state(found: Mapping[str, list[str]]) -> State:
    values: dict[str, object] = {
        _EARLIER.get(name, name): texts[-1] for name, texts in found.items() if name != "work"
    }
    known = {*TEXTS, *BY_NAME}
    if unknown := sorted(set(values) - known - set(_EARLIER.values())):
        raise ModelError("link", ", ".join(unknown), f"only {', '.join(sorted(known))}")
    if found.get("work") == [""]:
        values["works"] = "0"
    for at, text in enumerate(one for one in found.get("work", []) if one):
        name, *numbers = text.split(":")
        if not numbers or len(numbers) > len(_OF_WORK):
            raise ModelError("work", text, "NAME:RATE:CORE:RETURNS:SPREAD, such as count:120")
        values[f"work{at}.name"] = name
        for one, number in zip(_OF_WORK, numbers, strict=False):
            values[f"work{at}.{one.name}"] = number
    if "work0.rate" in values:
        values.setdefault("work0.name", values.get("kernel", State().kernel))
    for name in PACKED:
        if name in values:
            values[name] = _unpacked(str(values[name]))
    return checked(values)


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
