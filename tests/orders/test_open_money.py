"""The list of open money: one row per situation. After any story it agrees with the lab's records (`test_any_campaign.py`)."""

from types import SimpleNamespace

import pytest

from prefect_assay.campaigns.sweep.open_money import record_check
from prefect_assay.errors import NotReady
from prefect_assay.orders import open_money
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger.log import Sending
from prefect_assay.orders.ledger.open_money import OpenKind, of_logs, read_logs
from prefect_assay.orders.open_money import check_orders
from prefect_assay.service.models.billing import Invoice
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.lab.campaign import PlayedCampaign
from support.services.order_service import KEY, REQUEST, SPEC, OrderService, ledgers

CANCELED = ("force_status", {"status": "canceled"})
PAID, VOID = ("pay_invoice", {}), ("void_invoice", {})


@pytest.mark.parametrize(
    ("by_quote", "events", "kind", "by_archive"),
    [
        (False, [], OpenKind.TO_PAY, OpenKind.TO_PAY),
        (False, [PAID], OpenKind.TO_DELIVER, OpenKind.TO_DELIVER),
        (False, [CANCELED], OpenKind.TO_VOID, OpenKind.TO_PAY),
        (False, [PAID, CANCELED], OpenKind.TO_REFUND, OpenKind.TO_DELIVER),
        (True, [], OpenKind.QUOTE, OpenKind.QUOTE),
        (True, [("expire_quote", {})], None, None),
        (True, [("reject_quote", {})], None, None),
    ],
)
def test_what_the_sweep_records_makes_the_archive_alone_tell_the_same(by_quote, events, kind, by_archive):
    """Only the service knows of a cancellation, and what a quote costs before it is approved."""
    campaign = PlayedCampaign("async_invoice", is_priced=True, by_quote=by_quote, orders=1)
    campaign.look()
    if by_quote:
        campaign.pass_time(hours=2)
    for event, details in events:
        campaign.happen(event, campaign.keys[0], **details)
    checks = campaign.list_open_money()
    for look in checks.checks:
        record_check(look)
    alone = of_logs(*read_logs(campaign.ledgers())).items
    assert ([item.kind for item in checks.open_money.items], [item.kind for item in alone]) == (
        [kind] * (kind is not None),
        [by_archive] * (by_archive is not None),
    )
    if not by_quote:
        assert checks.open_money.items[0].amount_cents == alone[0].amount_cents > 0
    campaign.close()


def test_a_voided_bill_of_delivered_results_is_not_open_for_ever():
    campaign = PlayedCampaign("async_invoice", is_priced=True, by_quote=False, orders=1)
    campaign.look()
    assert campaign.list_open_money().open_money.items[0].remark.endswith("; pay it by its link")
    campaign.happen("void_invoice", campaign.keys[0])
    assert [item.kind for item in campaign.list_open_money().open_money.items] == [OpenKind.UNSURE], (
        "not done yet"
    )
    campaign.ledger(campaign.keys[0]).deliver("LAB-1-1")
    assert campaign.list_open_money().open_money.items == ()
    campaign.close()


@pytest.mark.parametrize(
    ("statuses", "kinds"),
    [
        (["canceled", "in_queue"], [OpenKind.UNSURE]),
        (["draft"], [OpenKind.QUOTE]),
        (["canceled"], []),
    ],
)
def test_an_order_whose_answer_was_lost_is_what_the_next_look_takes_for_it(
    tmp_path, monkeypatch, statuses, kinds
):
    ledger = ledgers(tmp_path).open_order("camp", KEY)
    service = OrderService()
    for status in statuses:
        service.add(REQUEST.name, SPEC, status=status)
    ledger.record(lambda _: Sending(attempt=1, route=OrderRoute.QUOTED, rail=PaymentMethod.ASYNC_INVOICE))
    client = service.client()
    monkeypatch.setattr(client.experiments, "get_quote", lambda _: raise_error(NotReady("404")))
    assert [item.kind for item in check_orders([ledger], client).open_money.items] == kinds


def raise_error(error):
    raise error


def test_a_status_of_this_moment_is_told_apart_from_the_one_of_the_last_look():
    experiment = SimpleNamespace(status="data_analysis")
    assert open_money._describe_stage(experiment) == "the service shows now: data analysis"


def test_an_open_campaign_is_not_said_to_need_another_start():
    assert "an open campaign collects them itself" in open_money._COLLECT


@pytest.mark.parametrize(
    ("amount", "approved", "expected"),
    [
        (20_000, 20_000, "; pay it by its link"),
        (20_000, None, "; pay it by its link"),
        (
            20_001,
            20_000,
            "; it bills more than the approved 200.00 USD: ask the laboratory why before you pay",
        ),
    ],
)
def test_a_bill_above_the_approval_is_to_be_asked_about(amount, approved, expected):
    link = "https://pay.example.com/1"
    invoice = Invoice(id="inv-1", status="open", amount=amount, provider_hosted_invoice_url=link)
    assert open_money.describe_hosted_bill(invoice, approved) == expected
