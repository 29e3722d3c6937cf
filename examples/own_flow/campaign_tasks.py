"""Five tasks in a flow of your own: estimate the price, order, pay, poll, retrieve. It plays against a local lab."""

import sys
from pathlib import Path

from prefect import flow, task
from pydantic import SecretStr

from assay_lab.rails.x402 import X402Settings
from assay_lab.testing import LocalLab
from prefect_assay import Assay
from prefect_assay.blocks import AssayCredentials, LocalArchive, SpendingPolicy, X402Wallet
from prefect_assay.orders.identity import experiment_name
from prefect_assay.orders.job import OrderRoute
from prefect_assay.service.models.vocabulary import PaymentMethod
from prefect_assay.tasks import (
    archive_experiment,
    estimate_cost,
    open_ledgers,
    order_experiment,
    pay_invoice,
    plan_campaign,
    poll_quote,
    read_designs,
    read_experiment,
    resolve_target,
    retrieve_results,
)

DESIGNS = ">design-1\nSESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE\n"


@task(retries=100, retry_delay_seconds=1)
def wait_for_results(credentials: AssayCredentials, experiment_id: str) -> None:
    """Poll the experiment; the flow `campaign` suspends instead, and needs no process for two weeks."""
    experiment = read_experiment(credentials, experiment_id)
    if experiment.results_status != "all":
        raise RuntimeError(f"experiment {experiment.code} has results: {experiment.results_status}")


@flow
def measure(
    credentials: AssayCredentials,
    policy: SpendingPolicy,
    wallet: X402Wallet,
    archive: LocalArchive,
    campaign_id: str = "own-flow",
) -> str:
    """Order one experiment once and pay it once; return where its results are archived."""
    assay = Assay(experiment_type="screening", target="Human EGFR, extracellular domain")
    target = resolve_target(credentials, assay)
    plan = plan_campaign(read_designs(DESIGNS), assay, target, campaign_id=campaign_id, per_experiment=96)
    (planned,) = plan.experiments

    price = estimate_cost(credentials, planned.spec)
    if price.total_cents is None or price.total_cents > policy.per_experiment_cents:
        raise ValueError(f"the price needs a decision of yours: {price.total_cents} cents, {price.reason}")

    payment_ledger = open_ledgers(credentials, archive).open_order(campaign_id, planned.order_key)
    order = order_experiment(
        credentials,
        planned.spec,
        ledger=payment_ledger,
        name=experiment_name(campaign_id, 0, 1, planned.order_key),
        route=OrderRoute.SELF_SERVICE,  # creates the experiment with auto_accept_quote
        payment_method=PaymentMethod.X402_EXACT,
        webhook=None,
        amount_cents=price.total_cents,
        campaign_cap_cents=policy.per_campaign_cents,
    )
    print("stage:", poll_quote(credentials, order.experiment_id).stage)
    payment = pay_invoice(
        credentials,
        order,
        ledger=payment_ledger,
        policy=policy,
        wallet=wallet,
        method=PaymentMethod.X402_EXACT,
        limit_cents=price.total_cents,
    )
    wait_for_results(credentials, order.experiment_id)
    received = retrieve_results(credentials, order.experiment_id)
    archived = archive_experiment(
        credentials,
        archive,
        read_experiment(credentials, order.experiment_id),
        received=received,
        campaign_id=campaign_id,
        order=order,
        payment=payment,
        spec=planned.spec,
    )
    return archived.record.location


def main(folder: Path) -> None:
    """Start a lab whose days pass at once, with a wallet that it takes, and run the flow twice."""
    from eth_account import Account

    offer = X402Settings()
    wallet = X402Wallet(
        private_key=SecretStr(Account.create().key.hex()),
        networks=[offer.network],
        assets=[offer.asset],
        pay_to=[offer.pay_to],
    )
    with LocalLab(clock="auto") as lab:
        credentials = AssayCredentials(base_url=lab.base_url, token=lab.token)
        policy = SpendingPolicy(
            machine_payments=True,
            per_experiment_usd=1_000,
            per_campaign_usd=1_000,
            rolling_usd=1_000,
        )
        archive = LocalArchive(root=str(folder))
        print("archived:", measure(credentials, policy, wallet, archive))
        print("again:   ", measure(credentials, policy, wallet, archive))
        print("orders at the lab:", lab.http().get("/experiments").json()["total"])


if __name__ == "__main__":
    main(Path(sys.argv[1] if sys.argv[1:] else "assay-archive"))
