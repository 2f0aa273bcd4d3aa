"""Documents that state numbers."""

from __future__ import annotations

from datetime import date as day
from typing import Annotated

from pydantic import AfterValidator, Field

from csdplan.profile.schema import Table, Text


def _is_a_day(text: str) -> str:
    year, *rest = (int(one) for one in text.split("-"))
    try:
        day(year, *(*rest, 1, 1)[:2])
    except ValueError:
        raise ValueError("a date that exists, such as 2026, 2026-03 or 2026-03-31") from None
    return text


Date = Annotated[
    str,
    Field(pattern=r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?$"),
    AfterValidator(_is_a_day),
]
Key = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]


class Source(Table):
    """Document that states a number.

    `date` is the document's own; `seen` is the day on which it was read. The numbers of
    a source without it are known from the vendor's page, but that page was not read for this file.
    """

    publisher: Text
    document: Text
    date: Date
    seen: Date | None = None
    url: Text | None = None

    def __str__(self) -> str:
        """Return publisher and document, with a mark if the document was not read."""
        is_checked = self.seen is not None or self.publisher == "assumption"
        return f"{self.publisher}: {self.document}{'' if is_checked else ' (to be checked)'}"
