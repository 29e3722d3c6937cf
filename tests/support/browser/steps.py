"""Steps that several browser tests take, and what they wait for."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect.client.schemas.objects import FlowRun

from prefect_assay.runs.states import waits_for_input
from support.runs.world import World, eventually

if TYPE_CHECKING:
    from support.browser.people import Person


def asks(run: FlowRun) -> bool:
    """Whether a suspended run asks a person."""
    return run.state.name == "Suspended" and waits_for_input(run)


def waits(run: FlowRun) -> bool:
    """Whether a suspended run waits for something else than a person's answer."""
    return run.state.name == "Suspended" and not waits_for_input(run)


def in_production(world: World, run: FlowRun, *, seconds: float) -> None:
    """Let lab days pass until the laboratory produces the proteins and the run's state says so."""
    for _ in range(15):
        world.advance(days=1)
        message = eventually(lambda: world.run(run).state.message, seconds=seconds, what="the stage")
        if message.startswith("in the laboratory: in production"):
            return
    raise AssertionError(f"the run is {world.run(run).state!r}")


def picture(page: Any, name: str, person: "Person", *, below: Any = None) -> None:
    """Take a picture for the docs, where ASSAY_BROWSER_PICTURES names their folder; `below` is its topmost element."""
    if folder := os.environ.get("ASSAY_BROWSER_PICTURES"):
        page.wait_for_load_state("networkidle")
        top = below.bounding_box()["y"] if below is not None else 0
        clip = {"x": 0, "y": top, "width": 1000, "height": 800 - top}
        page.screenshot(path=Path(folder) / f"{name}-{person.name}.png", clip=clip)
