"""What separate runs of one campaign commit it to. The one on a Prefect server is in e2e/test_approval.py."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.errors import BudgetExceeded
from prefect_assay.payments.ledger import _MemoryStore
from prefect_assay.tasks import intent
from prefect_assay.tasks.intent import CampaignIntents

URL = "https://lab.example.org"


@pytest.fixture
def stores(monkeypatch):
    """One store for each prefix, as the server has them."""
    made = {}
    monkeypatch.setattr(intent, "VariableStore", lambda prefix: made.setdefault(prefix, _MemoryStore()))
    return made


def test_ten_orders_that_race_fill_the_cap_of_their_campaign_to_the_cent(stores):
    barrier = threading.Barrier(10)

    def order(number):
        barrier.wait(20)
        try:
            CampaignIntents(URL, "c").sending(f"key{number}", 10_000, 70_003)
        except BudgetExceeded:
            return 0
        return 10_000

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(order, range(10))) == 70_000
    with pytest.raises(BudgetExceeded) as over:
        CampaignIntents(URL, "c").commit("more", 4, 70_003)
    assert (over.value.cap, over.value.total_cents, over.value.cap_cents) == ("campaign", 70_004, 70_003)
    CampaignIntents(URL, "c").commit("more", 3, 70_003)
    CampaignIntents(URL, "another").commit("more", 70_003, 70_003)
    CampaignIntents("https://other.example.org", "c").commit("more", 70_003, 70_003)


def test_the_same_order_counts_once_and_its_quote_takes_the_place_of_nothing(stores):
    intents = CampaignIntents(URL, "c")
    assert intents.sending("a", 0, 100) is False
    assert intents.sending("a", 0, 100) is True  # an earlier process may have sent it
    intents.commit("a", 60, 100)
    intents.commit("a", 60, 100)
    assert intents.of("a").sent_at is not None
    with pytest.raises(BudgetExceeded, match=r"0.60 USD of 1.00 USD is committed"):
        intents.sending("b", 41, 100)
    intents.sending("b", 41, 101)  # a person has allowed it
    assert intents.of("b").campaign_cap_cents == 101
    intents.sending("b", 41, 100)  # and is not asked again about what was allowed
    assert intents.of("b").campaign_cap_cents == 101


def test_what_was_refused_frees_its_share(stores):
    intents = CampaignIntents(URL, "c")
    intents.sending("a", 100, 100)
    intents.withdraw("a")
    assert intents.sending("b", 100, 100) is False
    assert intents.of("a").sent_at is None
    intents.withdraw("never")


def test_a_create_of_long_ago_is_not_waited_for(stores):
    intents = CampaignIntents(URL, "c")
    intents.sending("a", 1, 100)
    (store,) = stores.values()
    old = intents.of("a").model_copy(update={"sent_at": datetime.now(UTC) - timedelta(minutes=11)})
    store.replace("a", old.model_dump_json())
    assert intents.sending("a", 1, 100) is False
