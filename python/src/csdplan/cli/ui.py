"""``csdplan ui``: the local page."""

from __future__ import annotations

from typing import Annotated

import typer

from csdplan.cli.common import reported

_MISSING = "csdplan: the page needs Dash, which comes with the extra ui: pip install './python[ui]'"


def ui_command(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0: any that is free.")
    ] = 8050,
) -> None:
    """Show a local page: profile, sliders and prices change curves, costs and purchase at once.

    It listens on 127.0.0.1 only and needs no network.
    """
    try:
        from csdplan.page.server import serve  # noqa: PLC0415 - an extra, and slow to import
    except ModuleNotFoundError as error:
        typer.echo(f"{_MISSING} ({error})", err=True)
        raise typer.Exit(1) from error
    with reported():
        serve(port)
