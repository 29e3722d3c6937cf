"""Which log a service's address has in an archive: fixed at its first use, whatever the service says later."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.errors import ArchiveError, OrderOutcomeUnknown, OtherOrganization
from prefect_assay.orders.find import adopt_experiment
from prefect_assay.orders.ledger import Ledgers, PaymentLedger
from prefect_assay.orders.ledger.log import Ordered
from prefect_assay.orders.payments.interfaces import normalize_address
from prefect_assay.service.client.http.address import checked_base_url
from support.archive.memory_store import MemoryStore, an_attempt
from support.crash.races import a_cap

LAB, ALIAS = "https://lab.example.org", "https://alias.example.org"


@pytest.fixture
def store():
    return MemoryStore()


def opened(store, organisation, service=LAB):
    return Ledgers.open(store, "", service, organisation)


def placed(ledgers, key="k"):
    ledger = ledgers.open_order("c", key)
    ledger.record(lambda _: Ordered(experiment_id="exp_1"))
    return ledger


def test_a_service_that_names_its_organisation_later_has_the_log_of_its_first_use(store):
    first = opened(store, None)
    placed(first)
    first.budget.reserve("k", "c", 5)
    for organisation in ("org-1", None, "org-1"):
        later = opened(store, organisation)
        assert later.folder == first.folder
        assert later.open_order("c", "k").read().ordered.experiment_id == "exp_1"
        assert later.budget.read().campaign_cents("c") == 5
        assert later.derive_scope(LAB) == first.derive_scope(LAB)
    assert Ledgers.find_recorded(store, "", LAB).folder == first.folder


def test_another_organisation_is_refused_with_the_next_step_whenever_the_first_was_named(store):
    opened(store, None)
    opened(store, "org-1")
    with pytest.raises(
        OtherOrganization, match=r"org-2 at https://lab.* org-1; nothing is ordered or paid. Put"
    ):
        opened(store, "org-2")
    assert len(list(store.keys("LEDGERS/IDENTITY"))) == 2
    assert Ledgers.open(store, "of-org-2", LAB, "org-2").folder != opened(store, "org-1").folder


def test_two_addresses_of_one_organisation_have_one_log_and_two_services_have_two(store):
    assert opened(store, "org-1", ALIAS).folder == opened(store, "org-1").folder
    assert opened(store, None, "https://other.example.org").folder != opened(store, None).folder


def test_another_address_of_an_organisation_that_was_named_later_has_the_log_of_the_first(store):
    first = opened(store, None)
    opened(store, "org-1")
    assert opened(store, "org-1", ALIAS).folder == first.folder


@pytest.mark.parametrize("answers", [("org-1", "org-1"), ("org-1", None), ("org-1", "org-2")])
def test_of_first_users_at_once_one_decides(any_store, answers):
    barrier = threading.Barrier(8)

    def first_use(number):
        barrier.wait(20)
        try:
            return opened(any_store, answers[number % 2]).folder
        except OtherOrganization:
            return None

    with ThreadPoolExecutor(8) as pool:
        folders = [*pool.map(first_use, range(8))]
    assert len({*folders} - {None}) == 1
    assert (None in folders) == ("org-2" in answers)


def test_logs_without_a_record_of_whose_they_are_stop_every_order(store):
    placed(opened(store, "org-1"))
    for key in store.keys("LEDGERS/IDENTITY"):
        del store.objects[key]
    with pytest.raises(ArchiveError, match=r"IDENTITY is missing.*Restore it"):
        opened(store, "org-1")


@pytest.mark.parametrize("organisation", [None, "org-1"])
def test_an_order_that_stands_in_another_log_is_neither_adopted_nor_paid(store, organisation):
    """Such as an alias of a service that does not tell its organization."""
    placed(opened(store, organisation))
    elsewhere = opened(store, None, ALIAS)
    ledger = elsewhere.open_order("c", "k")
    with pytest.raises(OrderOutcomeUnknown, match="is in another log"):
        adopt_experiment(ledger, "exp_1")
    assert ledger.read().ordered is None
    ledger.record(lambda _: Ordered(experiment_id="exp_1"))  # as if both had ordered at the same moment
    payment_ledger = PaymentLedger(ledger)
    with pytest.raises(OrderOutcomeUnknown, match="is in another log"):
        payment_ledger.reserve(an_attempt().amount_cents, a_cap(10**6))
    assert not elsewhere.budget.read().reservations


@pytest.mark.parametrize(
    "spelt",
    [
        "https://lab.example.org/",
        "HTTPS://LAB.Example.ORG",
        "https://lab.example.org:443//",
        " https://lab.example.org ",
        "https://lab.example.org/api/v1",
        "https://lab.example.org/api/v1/",
        "https://lab.example.org.",
    ],
)
def test_every_spelling_of_an_address_is_one_address(spelt):
    assert normalize_address(spelt) == LAB
    assert normalize_address(checked_base_url(spelt)) == LAB


@given(
    host=st.from_regex(r"[a-zA-Z0-9]{1,9}(\.[a-zA-Z]{2,5}){1,2}\.?", fullmatch=True),
    port=st.sampled_from(["", ":443", ":8443"]),
    path=st.sampled_from(["", "/", "/lab", "/lab/", "/api/v1", "/lab/api/v1/", "/Lab"]),
)
def test_the_clients_address_and_the_users_spelling_of_it_are_one(host, port, path):
    url = f"https://{host}{port}{path}"
    assert (
        normalize_address(url)
        == normalize_address(checked_base_url(url))
        == normalize_address(normalize_address(url))
    )
    assert ("/lab" in path) == normalize_address(url).endswith("/lab")
