"""A campaign that a running lab has measured, in an archive: plan, orders, payments and every answer, without Prefect runs."""

from pathlib import Path

from prefect.logging import disable_run_logger

from assay_lab.testing import LocalLab
from prefect_assay.archive import LocalStore
from prefect_assay.archive.campaign_plan import Plan, PlannedExperiment
from prefect_assay.blocks import AssayCredentials, LocalArchive
from prefect_assay.designs.read import read_sequences
from prefect_assay.orders.create import find_or_create
from prefect_assay.orders.identity import experiment_name
from prefect_assay.orders.job import Payment, PaymentState
from prefect_assay.orders.ledger import Ledgers, PaymentLedger
from prefect_assay.orders.ledger.log import Approved
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.models.vocabulary import PaymentMethod, ResultsStatus
from prefect_assay.tasks.archive import archive_experiment
from prefect_assay.tasks.collate import save_plan
from prefect_assay.tasks.estimate import resolve_target
from prefect_assay.tasks.read import plan_campaign

EGFR = "Human EGFR, extracellular domain"


def lab_campaign(
    lab: LocalLab,
    folder: Path,
    fasta: str,
    *,
    campaign_id: str = "round-1",
    assay: Assay | None = None,
    per_experiment: int = 96,
    measured: int | None = None,
    days: int = 30,
) -> Plan:
    """Order the designs, let the lab's days pass and archive the first `measured` experiments; the others stay ordered."""
    archive = LocalArchive(root=str(folder))
    credentials = AssayCredentials(base_url=lab.base_url, token=lab.token)
    assay = assay or Assay(target=EGFR)
    with disable_run_logger(), AssayClient(lab.base_url, lab.token) as client:
        plan = plan_campaign.fn(
            read_sequences(fasta),
            assay,
            resolve_target.fn(credentials, assay),
            campaign_id=campaign_id,
            per_experiment=per_experiment,
        )
        ledgers = Ledgers(LocalStore(folder), "", "the organization")
        save_plan.fn(archive, plan.model_copy(update={"archive_id": ledgers.archive_id}))
        orders = [_order(client, ledgers, plan, planned) for planned in plan.experiments]
        lab.advance(days=days)
        for planned, order in list(zip(plan.experiments, orders, strict=True))[:measured]:
            invoice = client.invoices.find_for_experiment(order.experiment_id)
            assert invoice is not None
            ledger = ledgers.open_order(campaign_id, planned.order_key)
            PaymentLedger(ledger).record_paid(invoice.id, invoice.amount)
            experiment = client.experiments.get(order.experiment_id)
            kept = archive_experiment.fn(
                credentials,
                archive,
                experiment,
                campaign_id=campaign_id,
                order=order,
                payment=Payment(
                    invoice_id=invoice.id,
                    method=PaymentMethod.ASYNC_INVOICE,
                    state=PaymentState.SETTLED,
                    amount_cents=invoice.amount,
                ),
                spec=planned.spec,
            )
            if experiment.reported == ResultsStatus.ALL:
                ledger.deliver(kept.record.experiment_code)
    return plan


def _order(client: AssayClient, ledgers: Ledgers, plan: Plan, planned: PlannedExperiment):
    ledger = ledgers.open_order(plan.campaign_id, planned.order_key)
    total = client.experiments.estimate_cost(planned.spec).total_cents or 0
    ledger.record(lambda _: Approved(amount_cents=total, approver="the caps of the policy"))
    name = experiment_name(plan.campaign_id, planned.batch_index, len(plan.experiments), planned.order_key)
    request = CreateRequest(experiment_spec=planned.spec, name=name, skip_draft=True, auto_accept_quote=True)
    return find_or_create(client, request, ledger)
