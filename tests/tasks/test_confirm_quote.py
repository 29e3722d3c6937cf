"""A quote is confirmed after its record, and again after a crash; of two experiments see test_moved_order."""

from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.errors import BudgetExceeded, Conflict, TransientError
from prefect_assay.orders.billing import BillingStage
from prefect_assay.orders.ledger.log import Confirming
from prefect_assay.tasks.quote import confirm_quote
from support.archive.memory_store import make_ledger
from support.services.billed_service import BilledService


def a_service(refusal=None, **quote):
    return BilledService(
        quote={"status": "open", "amount_total": 500, "currency": "usd", **quote}, refusal=refusal
    )


def confirm(service, ledger, experiment_id):
    return confirm_quote.fn(service, experiment_id, ledger=ledger, approved_cents=500, campaign_cap_cents=500)


def test_a_quote_is_confirmed_after_its_record_and_again_after_a_crash():
    service, ledger = a_service(), make_ledger()
    ledger.record(lambda _: Confirming(amount_cents=500))
    assert confirm(service, make_ledger(ledger.ledgers.store), "exp_1").stage is BillingStage.INVOICED
    assert service.confirmed == ["exp_1"]
    assert make_ledger(ledger.ledgers.store).read().confirmed


def test_a_quote_whose_validity_has_passed_is_not_confirmed():
    service = a_service(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert confirm(service, make_ledger(), "exp_1").stage is BillingStage.QUOTE_EXPIRED
    assert service.confirmed == []


@pytest.mark.parametrize(
    "refusal",
    ["409: already confirmed", "409: the quote has expired or is already confirmed", "409: conflict"],
)
def test_a_refusal_that_the_present_state_does_not_explain_yet_is_looked_at_again(refusal):
    with pytest.raises(TransientError, match=f"{refusal}, and the quote .* reads as open"):
        confirm(a_service(Conflict(refusal)), make_ledger(), "exp_1")


def test_what_is_confirmed_counts_in_the_campaign_and_never_passes_its_cap():
    service, ledger = a_service(), make_ledger()
    confirm(service, ledger, "exp_1")
    assert ledger.ledgers.budget.read().campaign_cents(ledger.campaign_id) == 500
    service, ledger = a_service(), make_ledger()
    ledger.ledgers.budget.reserve("another order", ledger.campaign_id, 1)
    with pytest.raises(BudgetExceeded) as over:
        confirm(service, ledger, "exp_1")
    assert (over.value.cap, over.value.total_cents, service.confirmed) == ("campaign", 501, [])
    assert not ledger.read().confirmed


def test_a_total_above_what_was_approved_is_not_accepted():
    with pytest.raises(
        BudgetExceeded, match=r"is 5.01 USD, approved were 5.00 USD; nothing was accepted"
    ) as over:
        confirm(a_service(amount_total=501), make_ledger(), "exp_1")
    assert over.value.cap is None


@pytest.mark.parametrize("cents", [0, 1])
def test_a_total_far_below_what_was_approved_is_not_accepted(cents):
    ledger = make_ledger()
    with pytest.raises(BudgetExceeded, match=r"approved were 5.00 USD; nothing was accepted"):
        confirm(a_service(amount_total=cents), ledger, "exp_1")
    assert not ledger.read().confirmed
