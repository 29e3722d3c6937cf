"""Order and pay without Prefect: the product's `find_or_create` and `settle` with the ledgers in a folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefect_assay.archive import LocalStore
from prefect_assay.blocks.wallets import WALLETS
from prefect_assay.errors import AssayError, OrderOutcomeUnknown
from prefect_assay.orders.billing import BillingStage, read_billing
from prefect_assay.orders.create import find_or_create
from prefect_assay.orders.find import recheck_order
from prefect_assay.orders.ledger import Ledgers, PaymentLedger
from prefect_assay.orders.payments.guard import PaymentPolicy
from prefect_assay.orders.payments.settle import settle
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.tasks.quote import confirm_quote


def order_and_pay(job: Mapping[str, Any]) -> None:
    """To the end, or to an error that is written down by its class."""
    try:
        outcome = _run(job)
    except AssayError as error:
        outcome = {"error": type(error).__name__, "message": str(error)}
    Path(job["answer"]).write_text(json.dumps(outcome))


def _run(job: Mapping[str, Any]) -> dict[str, Any]:
    kind = next(kind for kind in WALLETS if kind.rail == job["rail"])
    rail = kind(**job["wallet"]).get_rail()
    request = CreateRequest.model_validate(job["request"])
    ledger = Ledgers(LocalStore(job["ledgers"]), "", "account").open_order("core", job["order_key"])
    with AssayClient(job["base_url"], job["token"]) as client:
        try:
            find_or_create(client, request, ledger, repeats=job.get("repeats"))
        except OrderOutcomeUnknown:  # a person is asked, as by the flow
            state = ledger.read()
            if not any(sent.commits for sent in state.open_attempts):
                raise
            return {"asks": state.attempts}
        experiment_id = recheck_order(client, request.experiment_spec, ledger)
        billing = read_billing(client, experiment_id)
        if billing.stage is BillingStage.QUOTE_OPEN:
            billing = confirm_quote.fn(
                _Credentials(client),
                experiment_id,
                ledger=ledger,
                approved_cents=billing.quote.amount_total,
            )
        if billing.stage is not BillingStage.INVOICED:
            return {"stage": billing.stage, "experiment_id": experiment_id}
        invoice = client.invoices.find_for_experiment(experiment_id)
        payment = settle(
            client.invoices,
            invoice.id,
            rail,
            PaymentPolicy.model_validate(job["policy"]),
            PaymentLedger(ledger),
            expected_cents=invoice.amount,
            experiment_id=experiment_id,
        )
    return {"stage": payment.state, "experiment_id": experiment_id}


class _Credentials:
    """What the task takes for a block: it gives the client and leaves it open."""

    def __init__(self, client: AssayClient) -> None:
        self._client = client

    def get_client(self) -> "_Credentials":
        return self

    def __enter__(self) -> AssayClient:
        return self._client

    def __exit__(self, *error: object) -> None:
        """The owner closes it."""
