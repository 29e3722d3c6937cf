"""Steps that several browser tests take, and what they wait for."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect.client.schemas.objects import FlowRun

from prefect_assay.campaigns.runs.states import waits_for_input
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
    """Let lab days pass until the laboratory produces the proteins and the progress of the run's campaign says so."""
    campaign_id = eventually(lambda: world.campaign_of(run), seconds=seconds, what="the run's campaign")
    for _ in range(15):
        if all(order.status == "in_production" for order in world.orders(campaign_id)):
            break
        world.advance(days=1)
    eventually(lambda: "in production" in newest_text(world, run), seconds=seconds, what="the stage")


def newest_text(world: World, run: FlowRun) -> str:
    """The newest text of a campaign's progress; empty before there is one."""
    shown = world.artifacts(run, "assay-progress-")
    return str(max(shown, key=lambda one: one.created).data) if shown else ""


def picture(page: Any, name: str, person: "Person", *, below: Any = None) -> None:
    """Take a picture for the docs, where ASSAY_BROWSER_PICTURES names their folder; `below` is its topmost element."""
    if folder := os.environ.get("ASSAY_BROWSER_PICTURES"):
        page.wait_for_load_state("networkidle")
        top = below.bounding_box()["y"] if below is not None else 0
        clip = {"x": 0, "y": top, "width": 1000, "height": 800 - top}
        page.screenshot(path=Path(folder) / f"{name}-{person.name}.png", clip=clip)
