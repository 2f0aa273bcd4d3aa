"""``csdplan ui``: the local page."""

from __future__ import annotations

from typing import Annotated

import typer

from csdplan import commands
from csdplan.cli.common import reported


def ui_command(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0: any that is free.")
    ] = 8050,
) -> None:
    """Show a local page: profile, sliders and prices change curves, costs and purchase at once.

    It listens on 127.0.0.1 only and needs no network.
    """
    with reported():
        commands.ui(port)
