"""`prefect-assay spending`: what the ledger holds, and how it stands to the cap."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.blocks import SpendingPolicy
from prefect_assay.cli import spending
from prefect_assay.models.job import PaymentState
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.payments import LedgerEntry, MemoryLedger
from prefect_assay.tasks import ledger as prefect_ledger

NOW = datetime.now(UTC)
POLICY = SpendingPolicy(per_experiment_cents=1, per_campaign_cents=1, rolling_cents=20_000, rolling_days=7)


def entry(number, state, cents, *, days_ago=0.0):
    return LedgerEntry(
        key=f"{number:040x}",
        base_url="https://lab.example",
        invoice_id=f"inv_{number}",
        rail=PaymentMethod.MPP_SPT,
        amount_cents=cents,
        nonce="challenge",
        network="stripe",
        asset="usd",
        pay_to="profile_1",
        expires_at=NOW + timedelta(minutes=5),
        recorded_at=NOW - timedelta(days=days_ago),
        state=state,
        campaign_id="c-1",
    )


ENTRIES = (
    entry(1, PaymentState.SETTLED, 5001),
    entry(2, PaymentState.UNKNOWN, 200, days_ago=1),
    entry(3, PaymentState.FAILED, 30_000),
    entry(4, PaymentState.SETTLED, 7, days_ago=20),
    entry(5, PaymentState.INTENDED, 40, days_ago=6.9),
    entry(6, PaymentState.SENT, 1000, days_ago=7.1),
)


@pytest.fixture
def show(monkeypatch, capsys):
    def run(*entries, policy=None, **options):
        ledger = MemoryLedger()
        for item in entries:
            assert ledger.claim(item)
        monkeypatch.setattr(prefect_ledger, "PrefectLedger", lambda: ledger)
        monkeypatch.setattr(spending, "load_block", lambda *_: policy)
        monkeypatch.setenv("COLUMNS", "200")
        spending.show_spending("name" if policy else None, **{"days": None, "as_json": False, **options})
        return capsys.readouterr().out

    return run


def test_every_payment_is_listed_oldest_first_and_the_sum_stands_below(show):
    lines = show(*ENTRIES, policy=POLICY).splitlines()
    rows = [line for line in lines if "inv_" in line]
    assert [row.split("inv_")[1][0] for row in rows] == ["4", "6", "5", "2", "1", "3"]
    assert "unknown" in next(row for row in rows if "inv_2" in row)
    assert "50.01 USD" in next(row for row in rows if "inv_1" in row)
    assert lines[-1] == "52.41 USD counted in the last 7 days, of 200.00 USD allowed: 147.59 USD left."


def test_without_a_policy_the_window_is_thirty_days_and_there_is_no_cap(show):
    assert show(*ENTRIES).splitlines()[-1] == "62.48 USD counted in the last 30 days."
    assert show(*ENTRIES, days=1).splitlines()[-1] == "50.01 USD counted in the last 1 days."
    assert show().strip() == "No machine payment is in the ledger."


def test_as_json_the_figures_are_cents(show):
    found = json.loads(show(*ENTRIES[:3], policy=POLICY, as_json=True))
    window = found["window"]
    assert (window["days"], window["counted_cents"], window["cap_cents"], window["left_cents"]) == (
        7,
        5201,
        20_000,
        14_799,
    )
    assert {row["invoice_id"]: row["state"] for row in found["payments"]} == {
        "inv_1": "settled",
        "inv_2": "unknown",
        "inv_3": "failed",
    }
    assert found["payments"][0]["rail"] == "mpp-spt"


def test_a_cap_that_is_passed_leaves_nothing(show):
    tight = POLICY.model_copy(update={"rolling_cents": 100})
    assert show(ENTRIES[0], policy=tight).splitlines()[-1].endswith("of 1.00 USD allowed: 0.00 USD left.")
