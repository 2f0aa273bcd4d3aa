"""Answers to look at: report (one HTML file for a decision meeting) and ui (the local page)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from csdplan.commands import planned
from csdplan.commands.bought import bought
from csdplan.commands.choose import choose, profile_of
from csdplan.errors import ModelError, PlotError
from csdplan.hardware import Catalogue, load_catalogue
from csdplan.options import (
    TARGET_MAX,
    BytesOption,
    CatalogueOption,
    DeviceOption,
    HostComputeOption,
    HostTransferOption,
    KernelOption,
    KLimitOption,
    Option,
    PriceDateOption,
    PricesOption,
    ProfileLike,
    ProfileOption,
    SsdOption,
    documented,
    paths_of,
)
from csdplan.request import load_request
from csdplan.request.file import read_file_of_question
from csdplan.request.scenario import load_scenario
from csdplan.result.listed import listed
from csdplan.result.planned import Planned
from csdplan.solve.purchase import Request
from csdplan.texts import whole_numbers

#: Limit of each of the solver's runs for a purchase [s].
_LIMIT_S = 5.0


@documented
def report(
    out: Annotated[str | Path, Option("The file to write, as .html.", flag="--out -o")],
    profile: ProfileOption = "newport",
    kernel: KernelOption = "count",
    *,
    host_cores: Annotated[
        Sequence[int],
        Option(
            "Host cores at work; costs are about the last.", metavar="N,N,...", parse=whole_numbers
        ),
    ] = (1, 4, 16),
    k_limit: KLimitOption = None,
    sd_tx: HostTransferOption = 1.0,
    sd_comp: HostComputeOption = 1.0,
    target: Annotated[
        int,
        Option("Say what would have to change for this break-even point.", min=1, max=TARGET_MAX),
    ] = 4,
    scenario: Annotated[
        str | Path | None,
        Option("TOML of systems to cost. Default: SSDs and drives for the kernel."),
    ] = None,
    request: Annotated[
        Request | str | Path | None,
        Option("Also find a purchase: a request, such as epyc.", type=str),
    ] = None,
    ask: Annotated[
        str | Path | None, Option("Also plan a purchase: a request of csdplan plan.")
    ] = None,
    one_page: Annotated[
        bool, Option("Write one page to sign instead: the purchase of --ask, with its sources.")
    ] = False,
    catalogue: CatalogueOption = (),
    prices: PricesOption = None,
    price_date: PriceDateOption = None,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
) -> Path:
    """Write one self-contained HTML file: the answer, figures, costs, and their sources.

    Returns the file that was written.

    Raises
    ------
    PlotError
        If the file's name does not end in ``.html``.
    ModelError
        If one page is asked for without a question.
    """
    from csdplan.document import Question, signed, write  # noqa: PLC0415 - draws figures

    target_file = Path(out)
    if target_file.suffix.lower() not in {".html", ".htm"}:
        raise PlotError(f"{out}: a report's name ends in .html")
    listed_by = PriceChoice(tuple(paths_of(catalogue)), prices, price_date)
    if one_page:
        if ask is None:
            raise ModelError("one_page", "without a question", "a purchase to sign (ask)")
        asked = read_file_of_question(Path(ask))
        text = signed.render(asked, listed_by.planned(ask=ask), date.today())
        target_file.write_text(text, encoding="utf-8")
        return target_file
    name, source = profile_of(profile)
    question = Question(
        name=name,
        profile=source,
        workload=choose(profile, kernel, device=device, ssd=ssd, bytes=bytes),
        host_cores=tuple(host_cores),
        prices=listed(listed_by.catalogue()),
        k_limit=k_limit,
        sd_tx=sd_tx,
        sd_comp=sd_comp,
        target=target,
        scenario=None if scenario is None else load_scenario(scenario),
        request=load_request(request) if isinstance(request, str | Path) else request,
        planned=None if ask is None else listed_by.planned(ask=ask),
    )
    write(target_file, question)
    return target_file


@documented
def ui(
    port: Annotated[
        int, Option("Port on this machine; 0: any that is free.", min=0, max=65535)
    ] = 8050,
    *,
    catalogue: CatalogueOption = (),
    prices: PricesOption = None,
    price_date: PriceDateOption = None,
) -> None:
    """Serve the local page until interrupted.

    Raises
    ------
    OSError
        If the port cannot be had.
    """
    from csdplan.page.prices import use  # noqa: PLC0415

    listed_by = PriceChoice(tuple(paths_of(catalogue)), prices, price_date)
    use(listed_by.catalogue())
    # The fields of the page take its prices when it is imported.
    from csdplan.page.server import serve  # noqa: PLC0415 - slow to import

    serve(port, listed_by.planned)


@dataclass(frozen=True)
class PriceChoice:
    """The price list that everything in an answer is from."""

    files: tuple[Path, ...]
    prices: str | Path | None
    price_date: str | None

    def catalogue(self, parts: str = "") -> Catalogue:
        """Return the catalogue, with `parts` over it: the text of a catalogue of one's own."""
        return load_catalogue(self.prices, self.files, typed=parts, latest=self.price_date)

    def planned(
        self, profile: ProfileLike | None = None, parts: str = "", **values: Any
    ) -> Planned:
        """Plan a purchase from the catalogue, by the values of a request or by its file."""
        catalogue = self.catalogue(parts)
        found = planned.plan(profile=profile, time_limit_s=_LIMIT_S, catalogue=catalogue, **values)
        asked = {} if values.get("ask") is None else read_file_of_question(Path(values["ask"]))
        protect = values.get("protect") or asked.get("protect") or "none"
        return bought(found, catalogue, str(protect))
