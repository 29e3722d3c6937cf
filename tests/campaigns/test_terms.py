"""The terms of a campaign pin its account: nothing is sent under another one unless a person says so."""

import pytest

from prefect_assay.archive import LocalStore
from prefect_assay.campaigns import play as play_module
from prefect_assay.campaigns.approval.terms import describe_account, find_differences, terms_question
from prefect_assay.campaigns.play import begin_campaign
from prefect_assay.designs.options import USUAL
from prefect_assay.errors import ConfigurationError, DecisionNeeded
from prefect_assay.orders.ledger.campaign_log import CampaignLog, Terms
from support.accounts import make_account

START = Terms(
    service="https://lab.example",
    organisation="org",
    simulated=True,
    archive_id="a",
    payment_method="x402-exact",
    wallet="0x1",
    payees=("0xlab",),
    per_experiment_cents=100,
    per_campaign_cents=200,
    accept_quotes=False,
    deadline_days=45,
)


def test_an_organisation_is_called_by_its_name_and_told_apart_by_its_id():
    named = START.model_copy(update={"organisation_name": "Local lab"})
    assert describe_account(named).endswith(", https://lab.example, organization Local lab")
    assert describe_account(START).endswith(", organization org")
    assert find_differences(named, START) == {}, "a name decides nothing"


@pytest.mark.parametrize(
    ("changes", "decisions"),
    [
        ({"service": "https://live.example"}, ("look_again", "reject")),
        ({"organisation": "another"}, ("look_again", "reject")),
        ({"simulated": False}, ("look_again", "reject")),
        ({"archive_id": "b"}, ("look_again", "reject")),
        ({"payment_method": "async_invoice"}, ("approve", "reject")),
        ({"wallet": "0x2"}, ("approve", "reject")),
        ({"payees": ("0xother",)}, ("approve", "reject")),
        ({"wallet": "0x2", "service": "https://live.example"}, ("look_again", "reject")),
    ],
)
def test_another_account_is_a_question_and_another_ledger_cannot_be_accepted(changes, decisions):
    present = START.model_copy(update=changes)
    assert terms_question("c", START, present).decisions == decisions


@pytest.mark.parametrize(
    "changes",
    [
        {"per_experiment_cents": 1},
        {"per_campaign_cents": 10**9},
        {"accept_quotes": True},
        {"deadline_days": 1},
    ],
)
def test_caps_and_the_deadline_are_no_question(changes):
    assert find_differences(START, START.model_copy(update=changes)) == {}


def test_people_read_whether_the_account_is_live():
    assert "(simulated)" in describe_account(START)
    assert "(LIVE)" in describe_account(START.model_copy(update={"simulated": False}))


class Setup:
    """A setup with these present terms."""

    def __init__(self, log, present):
        self.campaign_log, self.present = log, present
        self.account, self.options = make_account(), USUAL

    def log(self, _campaign_id):
        return self.campaign_log

    def terms(self, _unasked_cents=0):
        return self.present

    def under(self, _terms):
        return self


class Plan:
    campaign_id = "c"
    experiments = ()


def test_a_campaign_that_is_over_is_not_ordered_again_under_another_account(tmp_path):
    log = a_log(tmp_path)
    begin_campaign(Setup(log, START), Plan())
    log.finish("measured", complete=True)
    live = START.model_copy(update={"service": "https://live.example", "simulated": False})
    with pytest.raises(ConfigurationError, match="choose another campaign id"):
        begin_campaign(Setup(log, live), Plan())
    assert log.read().over is not None


def test_an_open_campaign_asks_before_anything_is_sent_under_another_account(tmp_path, monkeypatch):
    log = a_log(tmp_path)
    begin_campaign(Setup(log, START), Plan())
    asked = []

    def decide(_log, _setup, _recorded, present):
        asked.append(present)
        raise DecisionNeeded(terms_question("c", START, present))

    monkeypatch.setattr(play_module, "decide_terms", decide)
    live = START.model_copy(update={"service": "https://live.example"})
    with pytest.raises(DecisionNeeded, match="another one than at its start"):
        begin_campaign(Setup(log, live), Plan())
    assert asked == [live]


def a_log(folder):
    return CampaignLog(LocalStore(folder), "", "c")
