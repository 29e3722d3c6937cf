"""`prefect-assay estimate`: checks designs and shows what a campaign would buy and cost; orders and writes nothing."""

from typing import TYPE_CHECKING

from prefect_assay.blocks.campaign_plan import split_into_experiments
from prefect_assay.campaigns.approval.purchase import look_up_purchase
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.cli.campaigns.purchase import show_purchase
from prefect_assay.cli.designs.check import check_locally, read_file, warnings_of
from prefect_assay.cli.output import make_plain_console, print_json
from prefect_assay.cli.prefect_api import saved_account
from prefect_assay.designs.options import CampaignOptions
from prefect_assay.designs.report import order_lines
from prefect_assay.orders.targets import resolve_target
from prefect_assay.service.models.sequences import Sequences
from prefect_assay.service.models.spec import Assay

if TYPE_CHECKING:
    from prefect_assay.orders.purchase import PurchaseSummary


def estimate_campaign(
    designs: str,
    assay: Assay,
    options: CampaignOptions,
    *,
    account: str,
    campaign_id: str | None = None,
    as_json: bool,
) -> None:
    """Print what a campaign would buy: what is new, what it costs line by line, and who would be asked.

    Raises:
        InputError: the designs, the assay or the target are wrong, with every finding.
        ConfigurationError: there is no such account.
    """
    from prefect_assay.cli.campaigns.run import check_campaign_id, check_target

    check_campaign_id(campaign_id)
    sequences = read_file(designs, options.reading)
    check_target(assay)
    check_locally(sequences, assay, options.reading.designs_per_experiment)
    setup = CampaignSetup(saved_account(account), options)
    purchase = look_up(setup, sequences, assay, campaign_id)
    warnings = warnings_of(sequences)
    if as_json:
        reading = list(order_lines(sequences))
        shown = {"due": purchase.due, "reading": reading, "design_warnings": list(warnings)}
        print_json({**purchase.model_dump(mode="json"), **shown})
        return
    show_purchase(purchase, stderr=False)
    for warning in warnings:
        make_plain_console().print(warning, style="yellow")
    next_step = " `prefect-assay run` with the same options asks first." if purchase.new else ""
    make_plain_console().print(f"Nothing was ordered.{next_step}")


def look_up(
    setup: CampaignSetup,
    sequences: Sequences,
    assay: Assay,
    campaign_id: str | None,
    *,
    unasked_cents: int | None = None,
    requester: str | None = None,
) -> "PurchaseSummary":
    """What the campaign of these designs buys, by the service and the archive. Nothing is written.

    Raises:
        InvalidSpec: the target is wrong, or the campaign id was used for other designs or another assay.
        InvalidSequences: the designs contain the target.
    """
    reading = setup.options.reading
    with setup.credentials.get_client() as service:
        target = resolve_target(service, assay)
    plan = split_into_experiments(
        sequences,
        assay,
        target,
        campaign_id=campaign_id,
        per_experiment=reading.designs_per_experiment,
        reading=reading,
    )
    return look_up_purchase(setup, plan, unasked_cents=unasked_cents, requester=requester)
