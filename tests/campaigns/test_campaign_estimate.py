"""The estimate of a campaign warns of what is worth a second look, once per design."""

import pytest

from prefect_assay.blocks import SpendingPolicy
from prefect_assay.campaigns import artifacts
from prefect_assay.campaigns.approval.purchase import OrderPrice, PurchaseFacts, summarize_purchase
from prefect_assay.campaigns.approval.terms import AccountIdentity
from prefect_assay.orders.purchase import PurchaseState
from prefect_assay.service.models.sequences import Duplicate, ProteinSequence, Sequences
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.models.vocabulary import ExperimentType, PaymentMethod
from prefect_assay.tasks.read import plan_campaign

PLAIN = "MKVLAAEIEKWLEEAKKLIEEAKKLAEEGRLE"


@pytest.fixture
def shown(monkeypatch):
    lines = []
    monkeypatch.setattr(artifacts, "show_once", lambda artifact: lines.extend(artifact.markdown.split("\n")))
    return lines


def show(campaign):
    """The artifact of a campaign that has no price yet."""
    prices = {key: OrderPrice(PurchaseState.NEW) for key in campaign.order_keys}
    account = AccountIdentity(service="http://lab", organisation="org", simulated=True)
    policy = SpendingPolicy(per_experiment_usd=0.01, per_campaign_usd=0.01)
    facts = PurchaseFacts(
        plan=campaign,
        account=account,
        policy=policy,
        payment_method=PaymentMethod.ASYNC_INVOICE,
        prices=prices,
    )
    artifacts.show_purchase(campaign, summarize_purchase(facts))


def plan(*designs: ProteinSequence):
    assay = Assay(experiment_type=ExperimentType.EXPRESSION)
    sequences = Sequences(source="designs.fasta", items=designs)
    return plan_campaign.fn(sequences, assay, None, campaign_id="c", per_experiment=2)


def test_a_control_of_every_experiment_is_counted_once(shown):
    control = ProteinSequence("control", PLAIN + "C", control=True)
    designs = [ProteinSequence(f"d{n}", PLAIN + "A" * (n + 1)) for n in range(3)]
    show(plan(control, *designs))
    assert any("of designs.fasta" in line for line in shown)
    warning = "- `1 of 4 designs has an odd number of cysteines, so at least one is unpaired: 'control'`"
    assert shown[-4:] == ["", "Worth a second look:", "", warning]


def test_a_name_in_the_list_of_duplicates_is_no_markup(shown):
    campaign_plan = plan(ProteinSequence("d", PLAIN))
    name = "<img src=x>"
    odd = campaign_plan.model_copy(update={"duplicates": (Duplicate(name=name, same_as="[d](http://y)"),)})
    show(odd)
    assert [line for line in shown if "img" in line] == [f"- `{name}` (same as `[d](http://y)`)"]


def test_plain_designs_have_no_such_section(shown):
    show(plan(ProteinSequence("d", PLAIN)))
    assert "Worth a second look:" not in shown


def test_how_the_designs_were_read_is_in_the_artifact(shown):
    campaign_plan = plan(ProteinSequence("d|1", PLAIN), ProteinSequence("d2", f"{PLAIN}A:{PLAIN}"))
    show(campaign_plan)
    assert "- `2 designs: 32 to 65 residues, median 48.5; 1 with 1 chain; 1 with 2 chains`" in shown


def test_the_price_and_what_cannot_be_undone_are_in_the_artifact(shown):
    show(plan(ProteinSequence("d", PLAIN)))
    assert any(line.startswith("- **due now**: by quote") for line in shown)
    assert any("An order cannot be withdrawn." in line for line in shown)
    assert "| experiment | designs | USD without VAT |  |" in shown
