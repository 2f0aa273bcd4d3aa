"""Parts of one's own: typed in on the page, and kept as the text of a catalogue.

The text is what ``csdplan plan --catalogue FILE`` reads. The page writes no file: the browser saves
the text under a name that is free.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from itertools import count

from csdplan.errors import ModelError
from csdplan.hardware.read import TYPED, load_catalogue
from csdplan.plot.svg import safe
from csdplan.profile import shipped_names
from csdplan.profile.read import parse_toml

#: Name of the file that the browser saves.
FILE = "csdplan-parts.toml"
#: Kinds that can be typed in; the file may hold all that a catalogue does.
_KINDS = {
    "ssd": "SSD",
    "csd": "drive that computes",
    "cpu": "host's CPU",
    "nic": "network card",
}
_DRIVES = "ssd csd"
#: Numbers: what they are called, an example, and the kinds that have them.
_NUMBERS = {
    "capacity_bytes": ("Capacity", "7.68 TB", _DRIVES),
    "read_Bps": ("Read by a host", "7 GB/s", _DRIVES),
    "write_Bps": ("Written", "3 GB/s", _DRIVES),
    "active_W": ("Power at work", "18 W", f"{_DRIVES} nic"),
    "cores": ("Cores", "32", "cpu"),
    "core_speed": ("Speed of a core, of an EPYC 7352's", "1.2", "cpu"),
    "pcie_lanes": ("PCIe lanes", "128", "cpu"),
    "pcie_generation": ("PCIe generation", "5", "cpu"),
    "tdp_W": ("Power at work", "280 W", "cpu"),
    "link_Bps": ("Link", "200 Gb/s", "nic"),
    "price_usd": ("Price", "1500", " ".join(_KINDS)),
}
_PLAIN = ("cores", "core_speed", "pcie_lanes", "pcie_generation")


def check(text: str) -> None:
    """Refuse a text that is no TOML of schema 1, or names a file: a link never names one.

    Raises
    ------
    CsdplanError
        If it is refused.
    """
    if not text.strip():
        return
    rows = parse_toml(text, TYPED).get("part", [])
    for row in rows if isinstance(rows, list) else []:
        profile = row.get("profile") if isinstance(row, dict) else None
        if profile is not None and profile not in shipped_names():
            listed = ", ".join(shipped_names())
            raise ModelError("profile of a part", profile, f"a shipped one: {listed}")


def added(text: str, part: Mapping[str, object]) -> str:
    """Return the text with one more part, as the fields of the page have it.

    Raises
    ------
    CsdplanError
        If a number is wrong, or one that the part needs is absent.
    """
    given = {name: str(value).strip() for name, value in part.items()}
    kind, title = given.get("kind", ""), given.get("title", "")
    if kind not in _KINDS:
        raise ModelError("kind", kind, f"one of {', '.join(_KINDS)}")
    name = re.sub(r"[^a-z0-9.]+", "-", title.lower()).strip("-.")
    if not name:
        raise ModelError("name of the part", title, "letters or digits")
    whence = given.get("source") or "typed in on the page"
    publisher, _, document = whence.partition(",")
    key = next(f"own-{at}" for at in count(1) if f"[source.own-{at}]" not in text)
    lines = [
        f"[source.{key}]",
        f"publisher = {_quoted(publisher.strip())}",
        f"document = {_quoted(document.strip() or 'no document named')}",
        f"date = {_quoted(given.get('date') or date.today().isoformat())}",
        "",
        "[[part]]",
        f"name = {_quoted(name)}",
        f"title = {_quoted(title)}",
        f"kind = {_quoted(kind)}",
        f'source = "{key}"',
    ]
    if kind == "csd":
        lines.append(f"profile = {_quoted(given.get('profile', ''))}")
    for number, (_, _, kinds) in _NUMBERS.items():
        if kind in kinds.split() and given.get(number):
            lines.append(f"{number} = {_value(number, given[number])}")
    one = "\n".join(lines) + "\n"
    check(f"schema = 1\n\n{one}")
    found = load_catalogue(typed=f"schema = 1\n\n{one}")
    for number in ("price", *(("capacity_bytes", "read_Bps") if kind in _DRIVES.split() else ())):
        known = name in found.prices if number == "price" else found.parts[name].value(number)
        if not known:
            raise ModelError(f"{number} of {title}", "absent", "a number: a plan needs it")
    return f"{text.strip() or 'schema = 1'}\n\n{one}"


def form(which: str, text: str, profiles: tuple[str, ...]) -> str:
    """Return the fields of a new part, and the text of those there are."""
    kinds = "".join(f'<option value="{kind}">{said}</option>' for kind, said in _KINDS.items())
    shipped = "".join(f"<option>{safe(name)}</option>" for name in profiles)
    every = " ".join(_KINDS)
    rows = [
        _field(which, "title", "Name", "ACME drive", every),
        _field(which, "kind", "Kind", f"<select{{}}>{kinds}</select>", every),
        _field(which, "profile", "Computes as profile", f"<select{{}}>{shipped}</select>", "csd"),
        *(_field(which, name, *about) for name, about in _NUMBERS.items()),
        _field(which, "source", "Numbers from", "ACME, quote 17", every),
        _field(which, "date", "Date", date.today().isoformat(), every),
    ]
    key = f"{which}-parts"
    return (
        f'<div class="newpart" id="{which}-newpart">{"".join(rows)}<div class="actions">'
        f'<button type="button" data-do="add-part" data-which="{which}">Add this part</button>'
        '</div></div><div class="field choice">'
        f'<label for="{key}">Your parts, as --catalogue reads them</label>'
        f'<textarea id="{key}" name="parts" rows="6" spellcheck="false">{safe(text)}</textarea>'
        f'<span class="wrong" id="{key}-wrong" role="alert"></span></div>'
    )


def _field(which: str, name: str, label: str, example: str, kinds: str) -> str:
    key = f"{which}-part-{name}"
    named = f' id="{key}" data-part="{name}"'
    if example.startswith("<select"):
        entry = example.format(named)
    else:
        entry = f'<input{named} placeholder="{safe(example)}" maxlength="120">'
    hidden = "" if "ssd" in kinds.split() else " hidden"
    return (
        f'<div class="field" data-kinds="{kinds}"{hidden}><label for="{key}">{safe(label)}</label>'
        f"{entry}</div>"
    )


def _value(name: str, text: str) -> str:
    if name not in _PLAIN:
        return _quoted(text)
    try:
        return f"{float(text):.12g}"
    except ValueError as error:
        raise ModelError(name, text, "a number") from error


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
