"""`AssayExperiment`: one experiment as a job block, for users' own flows (docs/reference.md)."""

from typing import TYPE_CHECKING, Any

from prefect.blocks.abstract import JobBlock
from pydantic import Field

from prefect_assay.blocks.account import AssayAccount
from prefect_assay.blocks.base import DOCUMENTATION, StrictFields, link_logo
from prefect_assay.designs.options import USUAL, CampaignOptions, Usd
from prefect_assay.service.bounds import CampaignId, Text
from prefect_assay.service.models.spec import Assay

if TYPE_CHECKING:
    from prefect_assay.blocks.experiment_run import AssayExperimentRun, ExperimentResults

    _Job = JobBlock[ExperimentResults]
else:
    _Job = JobBlock  # with a parameter pydantic would make another block type of it


class AssayExperiment(StrictFields, _Job):
    """One laboratory experiment. Triggering it again finds its order, in any process and after any crash.

    The job is a campaign of one experiment, played by the deployment `campaign/assay-campaign`: it orders once, pays
    once, and waits without a process, whatever happens to the flow that has triggered it or to the campaign's own run.
    The account has to be saved.

    Example:
        ```python
        from prefect_assay import Assay
        from prefect_assay.blocks import AssayExperiment, AssayAccount

        AssayExperiment(
            designs="designs.fasta",
            assay=Assay(experiment_type="thermostability"),
            campaign_id="stability-1",
            account=AssayAccount.load("BLOCK_NAME"),
            spend_up_to_usd=500,
        ).save("BLOCK_NAME")


        def measure():
            run = AssayExperiment.load("BLOCK_NAME").trigger()
            run.wait_for_completion()
            return run.fetch_result()
        ```
    """

    _block_type_name = "Assay Experiment"
    _block_type_slug = "assay-experiment"
    _description = "One laboratory experiment as a job: trigger it, wait for it, fetch its results."
    _documentation_url = DOCUMENTATION
    _logo_url = link_logo("process")

    designs: Text = Field(
        title="Designs",
        description="A FASTA file, a table or a workbook: a path on the machine that triggers, an s3:// address, or pasted FASTA "
        "text. All designs go into one experiment.",
    )
    assay: Assay = Field(title="Assay", description="What to measure.")
    campaign_id: CampaignId = Field(
        title="Campaign",
        description="Part of the order key: the same id, designs and assay are ordered once, ever. To measure again, "
        "choose another id.",
    )
    account: AssayAccount = Field(
        title="Account",
        description="The service with your token, the spending policy, the archive, how you pay.",
    )
    spend_up_to_usd: Usd | None = Field(
        default=None,
        title="Spend without asking up to (USD)",
        description="What the experiment may cost without asking, in USD without VAT, within the policy's caps. Empty: "
        "its run asks with the price before anything is ordered.",
    )
    options: CampaignOptions = Field(
        default=USUAL,
        title="More options",
        description="How the designs are read, how long to wait, and how to pay.",
    )

    def trigger(self) -> "AssayExperimentRun":  # type: ignore[override] # Prefect's is asynchronous
        """Start the experiment's campaign, or find it. In async code call it with `asyncio.to_thread`.

        Raises:
            InputError: the designs or the assay are wrong, with every finding; nothing was ordered.
            AccessError: the token is not accepted.
            ConfigurationError: the flows are not deployed, or a block is not saved.
        """
        from prefect_assay.blocks.experiment_run import start_job  # noqa: PLC0415 - Prefect loads blocks at start

        job: Any = self  # pyright reads this folder as a second package
        return start_job(job)
