"""`prefect-assay spending`: the orders in an archive's log, hosted invoices among them, and their sum compared with the cap."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from prefect_assay.archive import LocalStore
from prefect_assay.blocks import SpendingPolicy
from prefect_assay.cli.archives import spending
from prefect_assay.errors import ArchiveError, ConfigurationError, InputError
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.budget import Reservation
from prefect_assay.orders.ledger.campaign_log import CampaignLog, Started, StartedKind
from prefect_assay.orders.ledger.log import (
    Approved,
    Confirming,
    Delivered,
    InDoubt,
    Invoiced,
    NotSettled,
    Ordered,
    Paying,
    Sending,
    Settled,
    Withdrawn,
)
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.archive.campaign_records import some_terms

NOW = datetime.now(UTC)
POLICY = SpendingPolicy(per_experiment_usd=0.01, per_campaign_usd=0.01, rolling_usd=200, rolling_days=7)


@pytest.fixture
def archive(tmp_path):
    return Archive(tmp_path)


class Archive:
    """Logs of orders, each with the records that are given."""

    def __init__(self, folder):
        self.folder = folder
        self.ledgers = Ledgers(LocalStore(folder), "", "org-1")
        self.orders = 0

    def order(
        self,
        *records,
        campaign="c-1",
        days_ago=0.0,
        rail=PaymentMethod.X402_EXACT,
        ordered=True,
        route=OrderRoute.SELF_SERVICE,
    ):
        self.orders += 1
        recorded_at = NOW - timedelta(days=days_ago, hours=1, seconds=-self.orders)
        ledger = self.ledgers.open_order(campaign, f"{self.orders:020x}")
        first = [Sending(attempt=1, route=route, rail=rail, at=recorded_at)]
        if ordered:
            first.append(Ordered(experiment_id=f"exp-{self.orders}", at=recorded_at))
        for record in [*first, *records]:
            dated = record.model_copy(update={"at": recorded_at})
            ledger.record(lambda _, new=dated: new)
        return ledger

    def paid_by_machine(self, *payments):
        """`(cents, days ago)` each, as the budget counts them."""
        for n, (cents, ago) in enumerate(payments):
            self.ledgers.budget.restore(
                Reservation(
                    order_key=f"{n}", campaign_id="c-1", cents=cents, paid_at=NOW - timedelta(days=ago)
                )
            )


def paying(cents):
    return Paying(
        invoice_id=f"inv_{cents}",
        rail=PaymentMethod.MPP_SPT,
        amount_cents=cents,
        nonce="challenge",
        network="stripe",
        asset="usd",
        pay_to="profile_1",
        expires_at=NOW + timedelta(minutes=5),
    )


@pytest.fixture
def show(archive, monkeypatch, capsys):
    def run(policy=None, columns=80, **options):
        monkeypatch.setattr(spending, "saved_account", lambda _: SimpleNamespace(policy=policy))
        monkeypatch.setenv("COLUMNS", str(columns))
        spending.show_spending(
            archive.folder, None, "name" if policy else None, **{"days": None, "as_json": False, **options}
        )
        return capsys.readouterr().out

    return run


def rows(printed):
    """The lines of the table, without its head."""
    lines = printed.splitlines()
    return lines[1 : next(n for n, line in enumerate(lines) if line.startswith(("Open money", "0.00 USD")))]


def hosted(cents):
    return Settled(invoice_id=f"inv_{cents}", amount_cents=cents)


def test_every_order_is_listed_oldest_first_on_every_rail(archive, show):
    archive.order(paying(5001), hosted(5001))
    archive.order(paying(200), InDoubt(), days_ago=1)
    archive.order(paying(30_000), NotSettled())
    archive.order(hosted(438_00), rail=PaymentMethod.ASYNC_INVOICE, days_ago=20)
    archive.order(Approved(amount_cents=700, approver="Ada"), rail=PaymentMethod.ASYNC_INVOICE)
    archive.order(Withdrawn(reason="the quote expired"), days_ago=3)
    archive.order(ordered=False)
    assert [" ".join(row.split()[2:]) for row in rows(show(columns=120))] == [
        "c-1 a person paid 438.00 USD",
        "c-1 x402-exact quote came to nothing",
        "c-1 mpp-spt payment sent, outcome unknown 2.00 USD",
        "c-1 mpp-spt paid 50.01 USD",
        "c-1 mpp-spt payment refused, not paid 300.00 USD",
        "c-1 a person ordered, not paid 7.00 USD",
        "c-1 x402-exact order sent, outcome unknown",
    ]


def test_an_invoice_settled_over_nothing_cost_nothing(archive, show):
    archive.order(Approved(amount_cents=700, approver="Ada"), hosted(0), rail=PaymentMethod.ASYNC_INVOICE)
    (order,) = json.loads(show(as_json=True))["orders"]
    assert order["amount_cents"] == 0


def test_the_invoice_of_an_order_is_the_one_that_was_settled(archive, show):
    archive.order(paying(5001), hosted(6000))
    (order,) = json.loads(show(as_json=True))["orders"]
    assert (order["invoice_id"], order["amount_cents"], order["rail"]) == ("inv_6000", 6000, "mpp-spt")


def test_the_table_can_be_read_at_80_columns(archive, show):
    name = "a-campaign-with-the-longest-name-that-is-allowed-of-60-chars"
    assert len(name) == 60
    archive.order(hosted(123_456_789), campaign=name, rail=PaymentMethod.ASYNC_INVOICE)
    archive.order(ordered=False, campaign=name)
    printed = show()
    lines = printed.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    first = lines[1]
    assert first.startswith("20")
    assert first.endswith("1,234,567.89 USD")
    assert "a person" in first
    assert "paid" in first
    column = lines[0].index("Campaign")
    width = lines[0].index("Paid by") - column
    assert "".join(line[column : column + width].strip() for line in rows(printed)) == name * 2
    assert any("outcome" in line for line in lines)


def test_the_last_line_has_the_sum_of_machine_payments_and_the_rest_of_the_cap(archive, show):
    archive.order()
    archive.paid_by_machine((5001, 0), (200, 1), (7, 20), (40, 6.9), (1000, 7.1))
    assert show(POLICY).splitlines()[-1] == (
        "52.41 USD paid by machine in the last 7 days, of 200.00 USD allowed: 147.59 USD left."
    )
    assert show().splitlines()[-1] == "62.48 USD paid by machine in the last 30 days."
    assert show(days=1).splitlines()[-1] == "50.01 USD paid by machine in the last 1 day."
    tight = POLICY.model_copy(update={"rolling_usd": 1})
    assert show(tight).splitlines()[-1].endswith("of 1.00 USD allowed: 0.00 USD left.")


def test_an_archive_without_an_order(show):
    assert show().strip() == "The archive has no order in its log."


def test_as_json_the_figures_are_cents_and_the_ids_are_there(archive, show):
    archive.order(Approved(amount_cents=5001, approver="Ada, in flow run 1"), paying(5001), hosted(5001))
    archive.order(rail=PaymentMethod.ASYNC_INVOICE)
    archive.paid_by_machine((5001, 0))
    figures = json.loads(show(POLICY, as_json=True))
    window = figures["window"]
    assert (window["days"], window["counted_cents"], window["cap_cents"], window["left_cents"]) == (
        7,
        5001,
        20_000,
        14_999,
    )
    one, two = figures["orders"]
    assert {name: one[name] for name in ("experiment_id", "invoice_id", "rail", "state", "amount_cents")} == {
        "experiment_id": "exp-1",
        "invoice_id": "inv_5001",
        "rail": "mpp-spt",
        "state": "paid",
        "amount_cents": 5001,
    }
    assert one["approved_by"] == "Ada, in flow run 1"
    assert (two["state"], two["amount_cents"], two["rail"]) == ("ordered, not paid", None, "async_invoice")


def test_every_organisation_of_the_archive_is_counted(archive, show):
    archive.order(hosted(100))
    other = Archive(archive.folder)
    other.ledgers = Ledgers(LocalStore(archive.folder), "", "org-2")
    other.order(hosted(200))
    assert [row.split()[-2] for row in rows(show())] == ["1.00", "2.00"]


def test_a_damaged_log_is_an_error_and_not_a_smaller_sum(archive, show):
    ledger = archive.order(hosted(100))
    next(archive.folder.rglob(f"{ledger.order_key}/000002.json")).unlink()
    with pytest.raises(ArchiveError, match="is missing"):
        show()


def test_neither_and_both_of_folder_and_block_are_refused(archive):
    for path, block in ((None, None), (archive.folder, "block")):
        with pytest.raises(ConfigurationError):
            spending.show_spending(path, block, None, days=None, as_json=False)


def test_a_quote_that_nobody_has_accepted_is_no_order(archive, show):
    archive.order(Approved(amount_cents=700, approver="Ada"), route=OrderRoute.QUOTED)
    archive.order(
        Approved(amount_cents=900, approver="Ada"), Confirming(amount_cents=900), route=OrderRoute.QUOTED
    )
    states = [order["state"] for order in json.loads(show(as_json=True))["orders"]]
    assert states == ["quote waits", "ordered, not paid"]


def test_open_money_is_listed_by_what_the_log_says(archive, show):
    archive.order(hosted(100), days_ago=9)
    archive.order(hosted(200), Delivered(experiment_code="LAB-1"))
    archive.order(Invoiced(invoice_id="inv", amount_cents=131_400), days_ago=3, campaign="egfr")
    archive.order(Withdrawn(reason="the quote expired"))
    archive.order(paying(5001), InDoubt())
    archive.order(ordered=False)
    printed = show()
    assert "Open money, without VAT: 1,364.01 USD ordered, not paid; 1.00 USD paid, not" in printed
    assert "  1,314.00 USD  ordered, not paid: exp-3\n" in printed
    assert " (3 days), campaign egfr\n" in printed
    open_money = json.loads(show(as_json=True))["open_money"]
    assert open_money["cents"] == {
        "to_pay": 136_401,
        "to_deliver": 100,
        "quote": 0,
        "to_refund": 0,
        "to_void": 0,
        "unsure": 0,
    }
    assert [item["kind"] for item in open_money["items"]] == ["to_deliver", "to_pay", "unsure", "to_pay"]


def started(archive, **terms):
    """The campaign's log, with the account of its terms."""
    log = CampaignLog(archive.ledgers.store, "", "c-1")
    log.start(
        Started(what=StartedKind.CAMPAIGN, name="c-1", terms=some_terms(**terms), requester="Grace Hopper")
    )


def test_finance_gets_orders_payments_tax_account_and_who_approved(archive, show):
    started(
        archive,
        simulated=True,
        account_name="main",
        owner="Structural Biology",
        purchase_order="PO-4711",
        cost_centre="=CC 12",
    )
    archive.order(
        Approved(amount_cents=700, approver="Ada Lovelace", how="prefect-assay approve", by_person=True),
        Invoiced(invoice_id="inv", amount_cents=650),
        Settled(invoice_id="inv", amount_cents=650),
        Delivered(experiment_code="LAB-1"),
        rail=PaymentMethod.ASYNC_INVOICE,
    )
    archive.order(campaign="without-a-log")
    first, second = csv.DictReader(io.StringIO(show(csv_file="-").removeprefix("\ufeff")))
    expected = {
        "campaign_id": "c-1",
        "experiment_code": "LAB-1",
        "invoice_id": "inv",
        "state": "paid",
        "amount_usd": "6.50",
        "vat": "not included: it is computed at invoicing, and the invoice shows it",
        "account": "main",
        "simulated": "true",
        "owner": "Structural Biology",
        "purchase_order": "PO-4711",
        "cost_center": "'=CC 12",  # no formula of a spreadsheet
        "requested_by": "Grace Hopper",
        "approved_by": "Ada Lovelace",
        "approved_how": "prefect-assay approve",
        "approved_usd": "7.00",
    }
    assert {name: first[name] for name in expected} == expected
    assert first["ordered_at"] <= first["paid_at"]
    assert (second["account"], second["simulated"], second["amount_usd"]) == ("", "", "")


def test_a_payment_at_a_simulated_service_says_so(archive, show):
    archive.order(hosted(100), rail=PaymentMethod.ASYNC_INVOICE)
    assert "simulated" not in show()
    started(archive, simulated=True)
    assert "paid, simulated" in show(columns=120)


def test_csv_is_written_to_a_file_and_not_mixed_with_json(archive, show, tmp_path):
    archive.order(hosted(100))
    file = tmp_path / "orders.csv"
    assert show(csv_file=str(file)) == ""
    assert file.read_text(encoding="utf-8-sig").count("\n") == 2
    with pytest.raises(InputError, match="choose --json or --csv"):
        show(csv_file="-", as_json=True)
