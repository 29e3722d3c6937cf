"""Tests of your own campaign settings, played against the lab: what is ordered, paid, archived, and refused."""

import pytest

from prefect_assay import Assay
from prefect_assay.blocks import AssayAccount, AssayCredentials, LocalArchive, SpendingPolicy
from prefect_assay.errors import AssayError
from prefect_assay.flows import campaign

DESIGNS = ">design-1\nSESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE\n"
ASSAY = Assay(experiment_type="screening", target="Human EGFR, extracellular domain")


@pytest.fixture
def account(local_lab, tmp_path):
    return AssayAccount(
        credentials=AssayCredentials(base_url=local_lab.base_url, token=local_lab.token),
        policy=SpendingPolicy(per_experiment_usd=1_000, per_campaign_usd=1_000),
        archive=LocalArchive(root=str(tmp_path / "archive")),
    )


def count_orders(lab):
    with lab.http() as http:
        return http.get("/experiments").json()["total"]


def test_a_campaign_is_ordered_once_however_often_it_starts(local_lab, account):
    local_lab.set_clock("auto")  # lab days pass at once
    reports = [
        campaign(designs=DESIGNS, assay=ASSAY, account=account, spend_up_to_usd=500, campaign_id="mine")
        for _ in range(2)
    ]
    assert count_orders(local_lab) == 1
    assert reports[0].table == reports[1].table


def test_an_order_over_the_cap_is_refused_before_it_costs_money(local_lab, account):
    account.policy = SpendingPolicy(per_experiment_usd=1, per_campaign_usd=1)
    with pytest.raises(AssayError):
        campaign(designs=DESIGNS, assay=ASSAY, account=account, spend_up_to_usd=1, campaign_id="mine")
    assert count_orders(local_lab) == 0
