"""The plan of a campaign in the archive: fixed once, by whoever is first."""

from datetime import UTC, datetime
from typing import Final

from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.archive.layout import PLAN_CODE, PLAN_PATH, experiment_folder
from prefect_assay.archive.read import choose_version, chosen_version, read_plan
from prefect_assay.archive.store import Store
from prefect_assay.archive.write import Document, archive_version
from prefect_assay.errors import InvalidSpec

_CAMPAIGN_ADDRESS: Final = "campaign:"


def campaign_address(campaign_id: str) -> str:
    """The `designs` parameter with which a campaign is played by its archived plan."""
    return f"{_CAMPAIGN_ADDRESS}{campaign_id}"


def campaign_of_address(designs: str) -> str | None:
    """The campaign that a `designs` parameter names by its archived plan; None for any other designs."""
    return designs.removeprefix(_CAMPAIGN_ADDRESS) if designs.startswith(_CAMPAIGN_ADDRESS) else None


def find_plan(store: Store, prefix: str, campaign_id: str) -> Plan | None:
    """The archived plan of a campaign, or None."""
    version = chosen_version(store, experiment_folder(prefix, campaign_id, PLAN_CODE))
    return None if version is None else read_plan(version)


def fix_plan(store: Store, prefix: str, plan: Plan) -> None:
    """Archive a campaign's plan, once; the same plan again changes nothing.

    Raises:
        InvalidSpec: the campaign id has been used for other designs or another assay.
    """
    if find_plan(store, prefix, plan.campaign_id) is None:
        archive_version(
            store,
            prefix,
            campaign_id=plan.campaign_id,
            experiment_id=plan.campaign_id,
            experiment_code=PLAN_CODE,
            results_status="none",
            documents=[
                Document(
                    path=PLAN_PATH,
                    content_type="application/json",
                    # the source differs between two submissions of the same designs
                    body=plan.model_copy(update={"source": ""}).model_dump_json(indent=2).encode(),
                )
            ],
            now=datetime.now(UTC),
        )
    # Of two runs that fix different plans at once, one plan is chosen for both.
    choose_version(store, experiment_folder(prefix, plan.campaign_id, PLAN_CODE))
    existing = find_plan(store, prefix, plan.campaign_id)
    if existing is None or existing.order_keys != plan.order_keys:
        finding = (
            f"campaign_id: {plan.campaign_id} has been used for other designs or another assay; "
            "nothing new was ordered. Choose a new campaign id, or another loop id for a round of a loop"
        )
        raise InvalidSpec([finding])
