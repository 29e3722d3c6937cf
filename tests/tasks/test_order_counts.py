"""An order that exists counts against the campaign's cap, whoever has created it."""

import logging
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

import prefect_assay.tasks.order as task
from prefect_assay.errors import ClockDiffers
from prefect_assay.orders.identity import experiment_name, order_key
from prefect_assay.orders.job import OrderRoute
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.services.order_service import OrderService, ledgers

SPEC = ExperimentSpec.model_validate(
    {
        "experiment_type": "affinity",
        "method": "bli",
        "target_id": "0" * 8 + "-0000-0000-0000-" + "0" * 12,
        "sequences": {"a": {"aa_string": "ACD"}},
    }
)
KEY = order_key("c", 0, SPEC)
NAME = experiment_name("c", 0, 1, KEY)


@pytest.mark.parametrize("exists", [False, True])
def test_a_found_order_counts_like_a_created_one(tmp_path, monkeypatch, exists):
    service = OrderService()
    if exists:
        service.add(NAME, SPEC)
    monkeypatch.setattr(task, "get_run_logger", logging.getLogger)
    ledger = ledgers(tmp_path).open_order("c", KEY)
    order = task.order_experiment.fn(
        SimpleNamespace(base_url="https://lab.example", get_client=lambda: nullcontext(service)),
        SPEC,
        ledger=ledger,
        name=NAME,
        route=OrderRoute.SELF_SERVICE,
        payment_method=PaymentMethod.ASYNC_INVOICE,
        webhook=None,
        amount_cents=21_900,
        campaign_cap_cents=21_900,
    )
    assert order.adopted is exists
    assert service.creates == (0 if exists else 1)
    assert ledger.ledgers.budget.read().campaign_cents("c") == 21_900


@pytest.mark.parametrize("away", [timedelta(days=31), timedelta(minutes=-6)])
def test_a_machine_with_a_wrong_clock_orders_nothing_that_it_would_have_to_pay(tmp_path, monkeypatch, away):
    service = OrderService()
    service.service_time = datetime.now(UTC) + away
    monkeypatch.setattr(task, "get_run_logger", logging.getLogger)
    ledger = ledgers(tmp_path).open_order("c", KEY)

    def order(payment_method):
        return task.order_experiment.fn(
            SimpleNamespace(base_url="https://lab.example", get_client=lambda: nullcontext(service)),
            SPEC,
            ledger=ledger,
            name=NAME,
            route=OrderRoute.SELF_SERVICE,
            payment_method=payment_method,
            webhook=None,
            amount_cents=21_900,
            campaign_cap_cents=21_900,
        )

    with pytest.raises(ClockDiffers, match=r"nothing is ordered.*Set the clock"):
        order(PaymentMethod.X402_EXACT)
    assert service.creates == 0
    assert ledger.ledgers.budget.read().campaign_cents("c") == 0
    order(PaymentMethod.ASYNC_INVOICE)  # a person pays
    service.service_time = datetime.now(UTC)
    assert order(PaymentMethod.X402_EXACT).adopted
