"""Two Prefect homes at one service, with one archive or without a shared one. The lab's books are the judge."""

import threading

import pytest

from assay_lab.rails.x402 import X402Settings
from assay_lab.testing import LocalLab
from prefect_assay.archive import LocalStore
from prefect_assay.orders.ledger import Books
from prefect_assay.service.client import AssayClient
from support.runs import here
from support.runs.world import EGFR, UNPRICED, WALLET_KEY, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]

DESIGN = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"


@pytest.fixture
def lab():
    with LocalLab() as made:
        yield made


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    return here.template(tmp_path_factory.mktemp("homes") / "empty")


@pytest.fixture
def client(lab):
    with AssayClient(lab.base_url, lab.token) as made:
        yield made


def job(lab, campaign_id, archive, target, *, rail=True, base_url=None):
    rails = X402Settings()
    wallet = {
        "private_key": WALLET_KEY,
        "networks": [rails.network],
        "assets": [rails.asset],
        "pay_to": [rails.pay_to],
    }
    return {
        "base_url": base_url or lab.base_url,
        "token": lab.token,
        "archive": str(archive),
        "campaign_id": campaign_id,
        "wallet": wallet if rail else None,
        "looks": 60,  # a home waits longer for the other one's create than that is held back
        "designs": f">design\n{DESIGN}\n",
        "assay": {"experiment_type": "affinity", "method": "bli", "target": target},
    }


@pytest.fixture
def passing(lab):
    """The lab's days pass while the processes poll."""
    ended = threading.Event()

    def days():
        while not ended.wait(1.0):
            lab.advance(days=0.5)

    thread = threading.Thread(target=days)
    thread.start()
    yield
    ended.set()
    thread.join()


def orders_of(client, campaign_id):
    return sorted(client.experiments.iterate(search=campaign_id), key=lambda e: (e.created_at, e.code))


def paid_for(lab, order):
    return [s for s in lab.settlements() if s["experiment_id"] == order.id]


def state_of(lab, archive, key, campaign_id):
    books = Books(LocalStore(archive), "", lab.organization_id)
    return books.open_order(campaign_id, key).read()


@pytest.mark.parametrize("target", [EGFR, UNPRICED])
@pytest.mark.parametrize("shared", [True, False])
def test_two_homes_order_at_the_same_moment(lab, client, empty, tmp_path, passing, target, shared):
    name = f"homes-{shared}-{target == EGFR}".lower()
    # Each create is held back before it is handled: both have searched before either is listed.
    for _ in range(2):
        lab.fault("delay", method="POST", path="/api/v1/experiments", seconds=6)
    archives = [tmp_path / "archive", tmp_path / ("archive" if shared else "archive-2")]
    began = [
        here.start(tmp_path / f"home-{n}", empty, **job(lab, name, archive, target))
        for n, archive in enumerate(archives)
    ]
    answers = [here.said(process) for process in began]

    orders = orders_of(client, name)
    paid = [s for s in lab.settlements() if s["experiment_id"] in {o.id for o in orders}]
    assert all(answer.get("rows") for answer in answers), answers
    (only,) = paid
    key = orders[0].name.split()[-1].removeprefix("pa-")
    states = [state_of(lab, archive, key, name) for archive in archives]
    ended = {state.ordered.experiment_id for state in states}
    assert ended == {only["experiment_id"]}
    if not shared:
        assert ended == {orders[0].id}
    for other in orders:
        if other.id not in ended:
            assert any(other.id in state.surplus for state in states)
            invoice = client.invoices.find_for_experiment(other.id)
            assert invoice is None or (invoice.status != "paid" and target == EGFR)


def test_an_alias_of_the_address_is_the_same_order_and_payment(lab, client, empty, tmp_path, passing):
    alias = lab.base_url.replace("127.0.0.1", "localhost")
    archive = tmp_path / "archive"
    began = [
        here.start(tmp_path / f"home-{n}", empty, **job(lab, "alias", archive, EGFR, base_url=url))
        for n, url in enumerate([lab.base_url, alias])
    ]
    first, second = (here.said(process) for process in began)
    (order,) = orders_of(client, "alias")
    assert first.get("rows"), first
    # The challenge names the lab's own address, so that an alias may find the order paid and may not pay it.
    assert second.get("rows") or "resource.url" in second["message"], second
    assert len(paid_for(lab, order)) == 1


def test_a_renamed_experiment_is_still_the_order(lab, client, empty, tmp_path):
    archive = tmp_path / "archive"
    first = here.start(tmp_path / "home-0", empty, **job(lab, "renamed", archive, EGFR))
    order = eventually(lambda: orders_of(client, "renamed"), seconds=90, what="an order")[0]
    eventually(lambda: paid_for(lab, order), seconds=60, what="its payment")
    lab.event("stall_review", order.id)
    lab.advance(days=20)
    assert client.experiments.get(order.id).status == "in_review"
    here.kill(first)
    client.experiments.modify(order.id, name="what the laboratory calls it")
    again = here.start(tmp_path / "home-1", empty, **job(lab, "renamed", archive, EGFR))
    lab.event("release_review", order.id)
    lab.advance(days=20)
    assert here.said(again)["rows"]
    assert len(paid_for(lab, order)) == 1
    assert orders_of(client, "renamed") == []
    assert sum(e.name == "what the laboratory calls it" for e in client.experiments.iterate()) == 1


def test_a_hosted_order_without_an_answer_is_never_sent_again_in_a_script(lab, client, empty, tmp_path):
    archive = tmp_path / "archive"
    lab.fault("reset", method="POST", path="/api/v1/experiments")
    lost = here.said(here.start(tmp_path / "home-0", empty, **job(lab, "hosted", archive, EGFR, rail=False)))
    assert lost["error"] == "OrderOutcomeUnknown", lost
    again = here.said(here.start(tmp_path / "home-1", empty, **job(lab, "hosted", archive, EGFR, rail=False)))
    assert again["error"] == "OrderOutcomeUnknown"
    assert "Ask the laboratory" in again["message"]
    assert orders_of(client, "hosted") == []


def test_one_loop_in_two_homes_measures_each_file_of_a_folder_once_and_another_loop_again(
    lab, client, empty, tmp_path, passing
):
    folder = tmp_path / "designs"
    folder.mkdir()
    for n in (1, 2):
        (folder / f"monday-{n}.fasta").write_text(f">design-{n}\n{DESIGN[:-n]}\n")
    given = job(lab, "unused", tmp_path / "archive", EGFR)
    given |= {"source": str(folder)}
    began = [
        here.start(tmp_path / f"home-{n}", empty, **given | {"loop_id": loop_id})
        for n, loop_id in enumerate(["egfr", "egfr", "other"])
    ]
    for process in began:
        answer = here.said(process, seconds=280)
        assert len(answer.get("rounds", [])) == 2, answer
    for campaign_id in ("egfr-monday-1", "egfr-monday-2", "other-monday-1", "other-monday-2"):
        (order,) = orders_of(client, campaign_id)
        assert len(paid_for(lab, order)) == 1
