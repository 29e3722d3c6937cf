"""The plan of a campaign: read, checked, split and archived before anything costs money.

A campaign waits for days and its designs file may change meanwhile, so a run that goes on reads the archived plan.
"""

from dataclasses import dataclass
from pathlib import PurePosixPath

from prefect.logging import get_run_logger

from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.archive.plans import campaign_of_address
from prefect_assay.campaigns.loops.loop_log import LoopLog, of_designs_address
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.designs.liabilities import design_warnings
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.read import PASTED, is_pasted
from prefect_assay.designs.report import order_lines
from prefect_assay.errors import ArchiveError
from prefect_assay.foreign_text import clean_text
from prefect_assay.service.models.sequences import Sequences
from prefect_assay.service.models.spec import Assay, Target
from prefect_assay.service.words import many
from prefect_assay.tasks.archive import check_archive
from prefect_assay.tasks.collate import kept_plan, save_plan
from prefect_assay.tasks.estimate import check_access, resolve_target
from prefect_assay.tasks.pay import require_rail
from prefect_assay.tasks.read import plan_campaign, read_designs


@dataclass(frozen=True)
class CampaignInput:
    """The parameters of `campaign` from which its plan follows."""

    designs: str
    assay: Assay
    campaign_id: str | None
    reading: ReadingOptions

    @property
    def continued_id(self) -> str | None:
        """The campaign that goes on by its archived plan, as the sweep starts it again; None for a new start."""
        return campaign_of_address(self.designs)

    @property
    def title(self) -> str:
        """The name of the run before it has a plan: the campaign's, else that of its designs."""
        name = self.campaign_id or self.continued_id
        if name is not None:
            return name
        source = self.reading.designs_name if is_pasted(self.designs) else self.designs
        return f"designs of {PurePosixPath(clean_text(source or PASTED)).name}"

    def read(self, setup: CampaignSetup) -> Sequences:
        """Read and check the designs, of a file or of a loop's round in the archive."""
        of_loop = of_designs_address(self.designs)
        if of_loop is None:
            return read_designs(self.designs, self.reading)
        archive = setup.archive
        return LoopLog(archive.get_store(), archive.prefix, of_loop[0]).designs(of_loop[1], self.reading)

    def split(self, sequences: Sequences, target: Target | None) -> Plan:
        """Split the designs into experiments and check every specification."""
        return plan_campaign(
            sequences,
            self.assay,
            target,
            campaign_id=self.campaign_id,
            per_experiment=self.reading.designs_per_experiment,
            reading=self.reading,
        )


def read_kept_plan(setup: CampaignSetup, campaign_id: str) -> Plan:
    """The archived plan of a campaign that was started before.

    Raises:
        ArchiveError: it is not in this archive, or was made in another one; nothing is ordered.
    """
    plan = kept_plan(setup.archive, campaign_id)
    if plan is None or plan.archive_id not in {None, setup.ledgers.archive_id}:
        raise ArchiveError(
            f"the plan of campaign {campaign_id} is not in this archive; nothing new was ordered. Restore the archive, or "
            "point its block to it, and run it again"
        )
    return plan


def make_plan(setup: CampaignSetup, campaign_input: CampaignInput) -> Plan:
    """Read, validate, deduplicate, split; then archive the plan before anything costs money."""
    require_rail(setup.payment_method, setup.policy, setup.wallet)
    check_archive(setup.archive)
    sequences = campaign_input.read(setup)
    check_access(setup.credentials)
    target = resolve_target(setup.credentials, campaign_input.assay)
    plan = campaign_input.split(sequences, target)
    save_plan(setup.archive, plan.model_copy(update={"archive_id": setup.ledgers.archive_id}))
    _log_plan(sequences, plan)
    return plan


def _log_plan(sequences: Sequences, plan: Plan) -> None:
    logger = get_run_logger()
    for line in order_lines(sequences):
        logger.info("%s: %s", sequences.source, line)
    for warning in design_warnings((s.name, s.aa_string) for s in sequences.items):
        logger.warning("%s", warning)
    if plan.attributes_left_out:
        left = plan.attributes_left_out
        logger.warning("The plan has no room for %s: %s", many(len(left), "column"), ", ".join(left[:10]))
