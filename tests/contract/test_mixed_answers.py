"""A gateway in front of a real lab mixes answers up: no design gets another's value, and nothing is confirmed or paid."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import SecretStr

from assay_lab.testing import LocalLab
from prefect_assay.blocks import AssayCredentials
from prefect_assay.campaigns.play import Campaign
from prefect_assay.errors import AssayError
from prefect_assay.orders.find import confirm_order
from prefect_assay.service.client import AssayClient
from prefect_assay.service.client.http.exchange import RetryPolicy
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import ExperimentStatus
from support.contract import campaign
from support.contract.campaign import StillWaiting, a_plan, a_setup, complete
from support.services.mixing_proxy import mixing_proxy

D1 = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
D2 = "MKTAYIAKQRQISFVKSHFSRQDILDLWIYHTQGYFPDWQNYTPGPGI"


@pytest.fixture(scope="module", params=["scaled:0.04"])
def lab(request):
    """A lab whose days are short; a quote expires there before it is read."""
    with LocalLab(clock=request.param) as made:
        yield made


slowly = pytest.mark.parametrize("lab", ["scaled:1"], indirect=True)  # a quote stays open for half a minute


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    """Between two tries of one request, and between two looks; how often it is tried stays."""
    monkeypatch.setattr(campaign, "LOOKS", 600)
    delay = RetryPolicy.delay
    monkeypatch.setattr(RetryPolicy, "delay", lambda *given: None if delay(*given) is None else 0.0)


@pytest.fixture
def proxy(lab):
    with mixing_proxy(lab.base_url) as made:
        yield made


@pytest.fixture
def service(lab):
    with AssayClient(lab.base_url, lab.token) as client:
        yield client


class Place:
    """Campaigns of one design each: `a` is ordered without the gateway, `b` through it."""

    def __init__(self, lab, proxy, folder, label):
        self.lab, self.proxy, self.folder, self.label = lab, proxy, folder, label
        with AssayClient(lab.base_url, lab.token) as client:
            self.target = next(one.id for one in client.targets.iterate(selfservice_only=True))

    def run(self, name, residues, *, direct=False, route="hosted"):
        base = a_setup(SimpleNamespace(base_url=self.proxy.base_url, provider="provider"), self.folder, route)
        url = self.lab.base_url if direct else self.proxy.base_url
        caps = {"per_experiment_cents": 10**7, "per_campaign_cents": 10**7}
        account = base.account.model_copy(
            update={
                "credentials": AssayCredentials(base_url=url, token=SecretStr(self.lab.token)),
                "policy": base.policy.model_copy(update=caps),
            }
        )
        setup = replace(base, account=account)
        spec = ExperimentSpec.model_validate(
            {
                "experiment_type": "affinity",
                "method": "bli",
                "target_id": self.target,
                "sequences": {"d1": {"aa_string": residues}},
            }
        )
        # Terms pin the service's address: the ledgers are opened at the lab's own, which the gateway stands for.
        return Run(setup, f"{self.label}-{name}", spec)


class Run:
    """A campaign of one experiment, as any execution finds it: by its plan and the archive."""

    def __init__(self, setup, campaign_id, spec):
        self.setup, self.campaign_id, self.spec = setup, campaign_id, spec

    def play(self):
        return complete(self.setup, a_plan(self.setup, campaign_id=self.campaign_id, spec=self.spec))

    @property
    def book(self):
        setup = replace(self.setup)
        plan = a_plan(setup, campaign_id=self.campaign_id, spec=self.spec)
        return Campaign(setup, plan, setup.log(self.campaign_id), setup.terms()).orders[0].book

    def ordered(self):
        """The experiment of the campaign's order, after playing it to its end."""
        self.play()
        return self.book.read().ordered.experiment_id


@pytest.fixture
def place(lab, proxy, tmp_path, request):
    return Place(
        lab, proxy, tmp_path / "archive", request.node.name.partition("[")[0][-20:] + str(id(request))
    )


def plays_until_confirmed(run, monkeypatch):
    """The run looks until its quote is confirmed; on a slow machine the results may be there by then."""
    with monkeypatch.context() as impatient:
        impatient.setattr(campaign, "LOOKS", 2)
        for _ in range(60):
            with suppress(AssayError, StillWaiting):
                run.play()
            if run.book.read().confirmed:
                return
    raise AssertionError("the quote was never confirmed")


def stays_open(run, monkeypatch, looks=2):
    """The run looks some times, and does not end."""
    with monkeypatch.context() as impatient:
        impatient.setattr(campaign, "LOOKS", looks)
        with pytest.raises((AssayError, StillWaiting)):
            run.play()


def values_of(kept):
    return {row.name: (row.experiment_code, row.aa_string) for row in kept[-1].rows if row.kd_M is not None}


def raw_text(place):
    return "".join(path.read_text(errors="replace") for path in Path(place.folder).rglob("raw/*.json"))


def is_untouched(service, experiment_id):
    """Neither confirmed nor paid by any run of ours."""
    found = service.invoices.find_for_experiment(experiment_id)
    return found is None or not found.ended


@pytest.mark.parametrize("form", ["created", "partial"])
def test_an_order_whose_create_is_answered_with_another_s_experiment_keeps_its_own(
    place, proxy, service, form
):
    a = place.run("a", D2, direct=True).ordered()
    wrong = {"experiment_id": a, "provider_hosted_invoice_url": "https://pay.example/a"}
    if form == "partial":
        proxy.answer_with("POST", "/experiments", 500, {**wrong, "error": "the invoice failed"})
    else:
        proxy.answer_with("POST", "/experiments", 201, wrong)
    run = place.run("b", D1)
    kept = run.play().kept
    own = proxy.created()[0]["experiment_id"]
    state = run.book.read()
    assert state.ordered.experiment_id == own != a
    assert state.named == (a,)
    assert (state.surplus, state.others) == ((), ())
    assert {residues for _, residues in values_of(kept).values()} <= {D1}
    assert service.experiments.get(own).status == ExperimentStatus.DONE
    first = place.run("a", D2, direct=True)
    book = first.book
    book.read()
    assert confirm_order(service, first.spec, book) == a
    assert book.state.surplus == ()


BEFORE_RESULTS = {"", "/quote", "/invoice"}


@pytest.mark.parametrize(
    "what",
    ["", "/quote", "/invoice", "/results", "/sequences", "/updates"],
    ids=lambda path: path[1:] or "detail",
)
def test_no_answer_about_another_experiment_is_used_or_archived(
    place, proxy, service, lab, what, monkeypatch
):
    a = place.run("a", D2, direct=True).ordered()
    run = place.run("b", D1)
    # The order is placed, and every later answer of this kind is another's.
    proxy.answer_with_that_of(
        rf"/experiments/(?!{a})[0-9a-f-]{{36}}{what}", f"/experiments/{a}{what}", lab.token
    )
    stays_open(run, monkeypatch, looks=2 if what in BEFORE_RESULTS else 20)
    own = proxy.created()[0]["experiment_id"]
    newest = [path for path in Path(place.folder).rglob("raw/*.json") if run.campaign_id in str(path)]
    assert not [path for path in newest if a in path.read_text(errors="replace")]
    state = run.book.read()
    assert state.ordered is None or state.ordered.experiment_id == own
    assert (state.settled, state.payment, state.surplus) == (None, None, ())
    assert is_untouched(service, own)
    proxy.pass_everything()
    kept = run.play().kept
    assert run.book.read().ordered.experiment_id == own
    assert {residues for _, residues in values_of(kept).values()} <= {D1}


@slowly
def test_a_quote_is_not_confirmed_while_the_record_read_is_another_s(place, proxy, service, lab, monkeypatch):
    first = place.run("a", D2, direct=True, route="quoted")
    stays_open(first, monkeypatch)
    a = first.book.read().ordered.experiment_id
    run = place.run("b", D1, route="quoted")
    proxy.answer_with_that_of(rf"/experiments/(?!{a})[0-9a-f-]{{36}}", f"/experiments/{a}", lab.token)
    stays_open(run, monkeypatch)
    own = proxy.created()[0]["experiment_id"]
    assert not [one for one in proxy.seen if one[0] == "POST" and one[1].endswith("/confirm")]
    assert service.invoices.find_for_experiment(own) is None
    proxy.pass_everything()
    plays_until_confirmed(run, monkeypatch)
    assert run.book.read().ordered.experiment_id == own
    assert service.invoices.find_for_experiment(own) is not None


IN_CAPITALS = pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/experiments"), ("GET", "/experiments"), ("GET", "/experiments/[^/]*(/.*)?")],
)


@IN_CAPITALS
def test_upper_case_ids_in_some_answers_are_the_same_ids(place, proxy, service, method, path):
    proxy.shout_ids(method, path)
    run = place.run("b", D1)
    kept = run.play().kept
    own = proxy.created()[0]["experiment_id"]
    state = run.book.read()
    assert (state.ordered.experiment_id, state.surplus) == (own, ())
    assert kept
    assert service.experiments.get(own).status == ExperimentStatus.DONE


@slowly
@IN_CAPITALS
def test_a_quote_is_confirmed_and_not_rejected_whatever_the_case_of_ids(
    place, proxy, service, method, path, monkeypatch
):
    proxy.shout_ids(method, path)
    run = place.run("b", D1, route="quoted")
    plays_until_confirmed(run, monkeypatch)
    own = proxy.created()[0]["experiment_id"]
    state = run.book.read()
    assert (state.ordered.experiment_id, state.surplus, state.confirmed) == (own, (), True)
    assert not [one for one in proxy.seen if one[1].endswith("/reject")]
    assert service.invoices.find_for_experiment(own) is not None
