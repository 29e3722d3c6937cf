"""Tags, labels and names of assay runs. Tags are the only index by which a run is found; their texts never change."""

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext
from prefect.logging import get_run_logger
from prefect.runtime import flow_run as current_run

from prefect_assay.errors import shorten

_log = logging.getLogger(__name__)

EXPERIMENT_TAG: Final = "assay-experiment:"  # <id>: a run that waits for an experiment
ORDER_TAG: Final = "assay-order:"  # <order key>: the same run
CAMPAIGN_TAG: Final = "assay-campaign:"  # <id>: a run that carries a campaign
LOOP_TAG: Final = "assay-loop:"  # <id>: a run that carries a loop
APPROVED_TAG: Final = "assay-approved:"  # <how>: the command whose amount the run may spend without asking


def tag_values(tags: Iterable[str], prefix: str) -> list[str]:
    """Return what follows the prefix in each tag that begins with it."""
    return [tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)]


def own_tags() -> list[str]:
    """Return the tags of the current run; empty outside of a run."""
    return list(current_run.tags or [])


def own_label(name: str) -> Any:
    """Return a label of the current run as of its start; None without one."""
    context = FlowRunContext.get()
    return context.flow_run.labels.get(name) if context and context.flow_run else None


def expected_label(experiment_id: str) -> str:
    """The label of a run that says when the laboratory expects an experiment's results, as a webhook has told."""
    return f"assay.expected.{experiment_id}"


def own_expected_time(experiment_id: str | None) -> datetime | None:
    """When the results of an experiment of the current run are expected; None before a webhook has told."""
    text = own_label(expected_label(experiment_id)) if experiment_id else None
    return datetime.fromisoformat(text) if text else None


def set_labels(run_id: UUID, labels: dict[str, str]) -> None:
    """Add labels to the current run, best effort: the next execution tries again."""
    try:
        with get_client(sync_client=True) as client:
            client.update_flow_run_labels(run_id, dict(labels))
    except httpx.HTTPError as error:
        logger = get_run_logger() if FlowRunContext.get() else _log
        logger.warning(
            "Could not store %s in the run's labels; the next execution will",
            ", ".join(labels),
            exc_info=shorten(error),
        )


def add_tags(run_id: UUID, tags: list[str]) -> None:
    """Add tags to a run; tags that it already has cost no write."""
    with get_client(sync_client=True) as client:
        known = client.read_flow_run(run_id).tags
        new = [tag for tag in dict.fromkeys(tags) if tag not in known]
        if new:
            client.update_flow_run(run_id, tags=[*known, *new])


def name_run(run: FlowRun, name: str) -> None:
    """Give the run the name of what it carries; a further run of it, such as `egfr 2`, keeps its number."""
    if run.name == name or run.name.startswith(f"{name} "):
        return
    with get_client(sync_client=True) as client:
        client.set_flow_run_name(run.id, name)
    run.name = name


def own_campaign() -> str | None:
    """The campaign that the current run carries, by its tag; None before its first plan."""
    names = tag_values(own_tags(), CAMPAIGN_TAG)
    return names[0] if names else None
