"""Options and requests of commands that ask one question several times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from csdplan.commands.choose import profile_of
from csdplan.hardware import Catalogue
from csdplan.hardware.measured import inside_of
from csdplan.options import Option, ProfileLike
from csdplan.profile import Profile
from csdplan.request.ask import Ask, read_ask
from csdplan.request.file import read_file_of_question
from csdplan.request.offer import Asked, check_parts, to_request

PROFILE = "newport"
StoreOption = Annotated[str | float | None, Option("Data to keep, such as 500TB.", metavar="SIZE")]
WorkloadOption = Annotated[
    Sequence[str],
    Option(
        "A kernel and its input, such as count=120GB/s, or @FILE.toml. Repeat it.",
        metavar="NAME=RATE|@FILE",
        type=list[str],
    ),
]
ProtectOption = Annotated[str | None, Option("none, replica:3 or rs:8+2.", metavar="CODE")]
PowerOption = Annotated[
    str | float | None, Option("With all at work, such as 12kW.", metavar="POWER")
]
GrowthOption = Annotated[str | float | None, Option("Growth a year, such as 20%.", metavar="SHARE")]
YearsOption = Annotated[
    str | float | None, Option("Years in service. Default: 5.", metavar="YEARS")
]
KwhOption = Annotated[
    str | float | None, Option("Price of a kWh; then energy is a cost.", metavar="USD")
]
AskOption = Annotated[
    str | Path | None, Option("A file of a question, as plan takes it; options go before it.")
]
OnlyOption = Annotated[
    Sequence[str], Option("Consider this part of its kind alone. Repeat it.", type=list[str])
]
WithoutOption = Annotated[Sequence[str], Option("Leave out this part.", type=list[str])]
CoreProfileOption = Annotated[
    ProfileLike,
    Option("Profile whose host points give the times of one core. Default: newport.", type=str),
]


def ask_of(given: Mapping[str, object], ask: str | Path | None) -> Ask:
    """Return a question of options, by name, and of a file that they go before.

    Raises
    ------
    ProfileInvalid
        If values are wrong; all of them are listed.
    """
    values = {} if ask is None else read_file_of_question(Path(ask))
    values |= {name: value for name, value in given.items() if value is not None}
    return read_ask(values, None if ask is None else Path(ask).parent)


@dataclass(frozen=True)
class Choice:
    """Parts to choose from, for any question.

    Attributes
    ----------
    parts : Catalogue
        The catalogue.
    profile : Profile
        Times of one core.
    only, without : tuple of str
        Parts to consider alone, and to leave out.
    """

    parts: Catalogue
    profile: Profile
    only: tuple[str, ...]
    without: tuple[str, ...]

    @classmethod
    def of(
        cls, parts: Catalogue, profile: ProfileLike, only: Sequence[str], without: Sequence[str]
    ) -> Choice:
        """Return a choice, checked.

        Raises
        ------
        ModelError
            If a part is not in the catalogue, or both wanted and left out.
        """
        check_parts(parts, only, without)
        return cls(parts, profile_of(profile)[1], tuple(only), tuple(without))

    def asked(self, ask: Ask) -> Asked:
        """Return the request of a question."""
        inside = inside_of(self.parts.parts.values())
        return to_request(
            ask, self.parts, self.profile, inside, only=self.only, without=self.without
        )

    @property
    def titles(self) -> dict[str, str]:
        """Titles of all parts, by name."""
        return {name: part.title for name, part in self.parts.parts.items()}
