"""The archived documents of a campaign: its plan, and one table of all measured rows."""

from collections.abc import Sequence
from datetime import UTC, datetime

from prefect import task

from prefect_assay.analysis.results import collate_rows, from_csv, to_csv
from prefect_assay.analysis.results.row import CampaignTable
from prefect_assay.archive import Document, archive_version, read_latest
from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.archive.layout import TABLE_CODE, TABLE_PATH
from prefect_assay.archive.plans import find_plan, fix_plan
from prefect_assay.blocks import Archive
from prefect_assay.service.models.vocabulary import ResultsStatus
from prefect_assay.tasks.retry_policies import READ


@task(name="save-plan", **READ)
def save_plan(archive: Archive, plan: Plan) -> None:
    """Archive a campaign's plan, once; the same plan again changes nothing.

    Raises:
        InvalidSpec: the campaign id has been used for other designs or another assay.
    """
    fix_plan(archive.get_store(), archive.prefix, plan)


def kept_plan(archive: Archive, campaign_id: str) -> Plan | None:
    """The archived plan of a campaign, or None."""
    return find_plan(archive.get_store(), archive.prefix, campaign_id)


@task(name="collate-campaign", **READ)
def collate_campaign(archive: Archive, campaign_id: str, experiment_codes: Sequence[str]) -> CampaignTable:
    """Join the archived tables of a campaign's experiments into one, and archive it: `partial` while any lacks results."""
    store = archive.get_store()
    versions = [read_latest(store, archive.prefix, campaign_id, code) for code in experiment_codes]
    kept_versions = [version for version in versions if version is not None]
    table = collate_rows(from_csv(version.read(TABLE_PATH)) for version in kept_versions)
    if not table:
        return CampaignTable(location=None, rows=())
    plan = kept_plan(archive, campaign_id)
    expected = max(len(versions), len(plan.experiments) if plan else 0)
    complete = [version for version in kept_versions if version.manifest.results_status == ResultsStatus.ALL]
    record = archive_version(
        store,
        archive.prefix,
        campaign_id=campaign_id,
        experiment_id=campaign_id,
        experiment_code=TABLE_CODE,
        results_status=ResultsStatus.ALL if len(complete) == expected else ResultsStatus.PARTIAL,
        documents=[Document(path=TABLE_PATH, content_type="text/csv", body=to_csv(table))],
        now=datetime.now(UTC),
    )
    return CampaignTable(location=f"{record.location}/{TABLE_PATH}", rows=table)


def read_campaign_table(archive: Archive, campaign_id: str) -> CampaignTable | None:
    """The campaign's table as archived, or None."""
    latest = read_latest(archive.get_store(), archive.prefix, campaign_id, TABLE_CODE)
    if latest is None:
        return None
    return CampaignTable(location=f"{latest.location}/{TABLE_PATH}", rows=from_csv(latest.read(TABLE_PATH)))
