"""What is open of orders by their ledgers alone: until it is paid and delivered, and never without saying what is damaged."""

import pytest

from prefect_assay.orders.ledger.log import Delivered, Settled, Stopped, Surplus
from prefect_assay.orders.ledger.open_money import OpenKind, is_closed, item_of, of_logs, read_logs
from support.archive.memory_store import MemoryStore, ledgers_in, make_ledger

SETTLED = Settled(invoice_id="inv_1", amount_cents=3000)
DELIVERED = Delivered(experiment_code="SIM-001-001")
SURPLUS = Surplus(experiment_id="exp_2", kept="exp_1")


@pytest.mark.parametrize(
    ("records", "closed"),
    [
        ([], False),
        ([DELIVERED], False),
        ([SETTLED], False),
        ([SETTLED, DELIVERED], True),
        ([DELIVERED, SETTLED], True),
        ([SURPLUS, SETTLED, DELIVERED], False),
        ([SETTLED, Stopped(person="ada", how="cancel")], False),
        ([SETTLED, Stopped(person="ada", how="cancel"), DELIVERED], True),
    ],
)
def test_an_order_is_closed_when_it_is_paid_and_delivered_and_has_nothing_beside_it(records, closed):
    ledger = make_ledger()
    for record in records:
        ledger.record(lambda _, new=record: new)
    assert is_closed(ledger.state) is closed


def test_a_paid_order_that_a_person_has_canceled_is_still_to_be_delivered():
    ledger = make_ledger()
    ledger.record(lambda _: SETTLED)
    ledger.stop("ada", "cancel")
    assert item_of(ledger).kind is OpenKind.TO_DELIVER


def test_a_list_without_a_damaged_ledger_says_that_it_is_not_complete():
    store = MemoryStore()
    make_ledger(store, key="k1").record(lambda _: SETTLED)
    damaged = make_ledger(store, key="k2").location.removeprefix("memory:")
    assert of_logs(*read_logs(ledgers_in(store))).complete
    store.objects[f"{damaged}/000002.json"] = b"{"
    money = of_logs(*read_logs(ledgers_in(store)))
    assert (money.complete, [item.order_key for item in money.items]) == (False, ["k1"])
    assert "log of order k2 of campaign c cannot be read" in money.notes[0]
