"""Tags and labels of assay runs. Tags are the only index by which a run is found; their texts never change."""

import logging
from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext
from prefect.logging import get_run_logger
from prefect.runtime import flow_run as current_run

from prefect_assay.errors import shorten

_log = logging.getLogger(__name__)

EXPERIMENT_TAG: Final = "assay-experiment:"  # <id>: a run that waits for an experiment
ARCHIVE_TAG: Final = "assay-archive:"  # <id>: the same run
ORDER_TAG: Final = "assay-order:"  # <order key>: the same run
CHILDREN_TAG: Final = "assay-children:"  # <group>: the run that starts a group of child runs
GROUP_TAG: Final = "assay-group:"  # <group>: each child run of the group
WAITS_TAG: Final = "assay-waits:"  # <group>: the run that waits for the whole group
CAMPAIGN_TAG: Final = "assay-campaign:"  # <id>: a campaign
LOOP_TAG: Final = "assay-loop:"  # <id>, and <id>@<scope>: a loop
LOOPS_TAG: Final = "assay-loop"  # every loop
CANCELED_TAG: Final = "assay-canceled:"  # <execution>-<reported>: a canceled run and what was reported of it
RETRY_TAG: Final = "assay-again:"  # <times>: failed attempts in a row of a run
ASKS_TAG: Final = "assay-asks"  # a run that asks a person
REPLACED_TAG: Final = "assay-replaced:"  # <run id>: a run that was replaced by this one
EXPERIMENT_CODE_LABEL: Final = "assay.experiment-code"  # the code that people know an experiment by
PRICE_LABEL: Final = "assay.price-cents"  # of the order's invoice, in US cents, or `unknown` once it is paid
INVOICE_LABEL: Final = "assay.unpaid-invoice"  # its page, or its id without one; empty once it is paid
# Of a run that asks a person: the cap that it would exceed, in words; empty if it asks for another reason
CAP_LABEL: Final = "assay.cap"
INVOICE_SEEN_LABEL: Final = "assay.invoice-seen"  # when the sweep first saw its open invoice, ISO 8601
BLOCK_LABEL: Final = "assay.block."  # <parameter>: the name of its block, as `type/name`
# Of a run that failed: how its order came to its end
ORDER_OVER_LABEL: Final = "assay.order-over"
PARTIAL_LABEL: Final = (
    "assay.partial-since"  # when the run first saw partial results of a finished experiment, ISO 8601
)
ETA_LABEL: Final = "assay.eta"  # when the last delivery expects results, ISO 8601

# A replaced run leaves these to its successor.
INDEX_TAGS: Final = (
    EXPERIMENT_TAG,
    ARCHIVE_TAG,
    CHILDREN_TAG,
    GROUP_TAG,
    WAITS_TAG,
    CAMPAIGN_TAG,
    LOOPS_TAG,  # and LOOP_TAG, which begins with it
    CANCELED_TAG,
    RETRY_TAG,
    ASKS_TAG,
)


def campaign_group(campaign_id: str, scope: str = "") -> str:
    """Return the group of a campaign's experiments; without a scope, the group that people search by."""
    return f"campaign-{campaign_id}{scope and '@'}{scope}"


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
    _change_tags(run_id, (), tags)


def set_tag(run_id: UUID, prefix: str, value: str, *, also: Iterable[str] = ()) -> None:
    """Give a run one tag with this prefix in place of those it has, and in the same write the tags `also`."""
    _change_tags(run_id, (prefix,), [*also, prefix + value])


def drop_tags(run_id: UUID, prefixes: tuple[str, ...]) -> None:
    """Remove the tags with these prefixes from a run."""
    _change_tags(run_id, prefixes, [])


def _change_tags(run_id: UUID, dropped: tuple[str, ...], added: list[str]) -> None:
    with get_client(sync_client=True) as client:
        tags = client.read_flow_run(run_id).tags
        kept = [tag for tag in tags if not tag.startswith(dropped)]
        changed = [*kept, *(tag for tag in added if tag not in kept)]
        if sorted(changed) != sorted(tags):
            client.update_flow_run(run_id, tags=changed)


def own_campaign() -> str | None:
    """The campaign that the current run carries, by its tag; None before its first plan."""
    names = tag_values(own_tags(), CAMPAIGN_TAG)
    return names[0] if names else None
