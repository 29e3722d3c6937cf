"""What is bought, what was bought before, what is due, who is asked: one summary, and its words at 80 columns."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from prefect_assay.blocks import LocalArchive, SpendingPolicy
from prefect_assay.campaigns.approval import purchase as purchase_module
from prefect_assay.campaigns.approval.purchase import (
    Earlier,
    OrderPrice,
    PurchaseFacts,
    find_earlier,
    price_orders,
    summarize_purchase,
)
from prefect_assay.campaigns.approval.purchase_text import (
    price_markdown,
    price_table,
    purchase_markdown,
    purchase_rows,
)
from prefect_assay.campaigns.approval.terms import AccountIdentity
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.log import (
    Delivered,
    Ordered,
    Sending,
    Withdrawn,
)
from prefect_assay.orders.purchase import PAID_AGAIN, EarlierPurchase, PurchaseState, PurchaseSummary
from prefect_assay.service.models.billing import CostEstimate
from prefect_assay.service.models.sequences import ProteinSequence, Sequences
from prefect_assay.service.models.spec import Assay, Target
from prefect_assay.service.models.vocabulary import Method, PaymentMethod
from prefect_assay.tasks.collate import save_plan
from prefect_assay.tasks.read import plan_campaign

CORE = "MKVLAAEIEKWLEEAKKLIEEAKKLAEEGRLE"
TARGET = Target(id="11111111-1111-4111-8111-111111111111", name="PD-L1")
POLICY = SpendingPolicy(per_experiment_usd=5_000, per_campaign_usd=20_000)


def design(number, **changes):
    return ProteinSequence(f"d{number}", CORE + "ACDEFGHIKL"[number], **changes)


CONTROL = ProteinSequence("reference", CORE, control=True)


def plan(*designs, campaign_id="c", per_experiment=96, target=TARGET, **assay):
    spec = Assay(**{"experiment_type": "affinity", "target": "PD-L1", **assay})
    sequences = Sequences(source="designs.fasta", items=designs or (CONTROL, design(1), design(2)))
    return plan_campaign.fn(sequences, spec, target, campaign_id=campaign_id, per_experiment=per_experiment)


def estimate(total=4500, **parts):
    assay = {"name": "affinity", "base_cents": 3000, "replicate_addon_cents": 1000, "subtotal_cents": 4000}
    materials = {"price_per_sequence_cents": 250, "subtotal_cents": 500}
    body = {
        "pricing_version": "v1_2026",
        "assay": assay,
        "materials": materials,
        "total_cents": total,
        **parts,
    }
    return CostEstimate.model_validate({"breakdown": body})


def new(answer=None):
    answer = answer or estimate()
    return OrderPrice(PurchaseState.NEW, answer.total_cents, estimate=answer)


def summary(campaign=None, prices=None, policy=POLICY, **facts):
    campaign = campaign or plan()
    made = {key: new() for key in campaign.order_keys} if prices is None else prices
    identity = AccountIdentity(
        service="https://lab.example", organisation="org", simulated=False, account_name="main"
    )
    return summarize_purchase(
        PurchaseFacts(
            **{
                "plan": campaign,
                "account": identity,
                "policy": policy,
                "payment_method": PaymentMethod.ASYNC_INVOICE,
                "prices": made,
                **facts,
            }
        )
    )


def test_price_has_exactly_the_lines_of_the_estimate():
    made = summary(plan(CONTROL, design(1), design(2), design(3), per_experiment=3))
    assert [line.cents for line in made.experiments[0].lines] == [3000, 1000, 500]
    assert (made.due_cents, made.total_cents, made.unpriced) == (9000, 9000, 0)
    row = purchase_rows(made)["price"]
    assert (
        row == "assay 60.00 + replicates 20.00 + materials 10.00 (2.50 USD per sequence), for 2 experiments"
    )
    headings, rows = price_table(made)
    assert headings[2:6] == ("assay", "replicates", "materials", "USD without VAT")
    assert rows[0] == ("1", "3", "30.00", "10.00", "5.00", "45.00", "")
    assert rows[-1][:6] == ("all", "4", "60.00", "20.00", "10.00", "90.00")


def test_line_that_the_estimate_does_not_show_is_not_guessed_and_one_that_is_not_read_is_named():
    answer = estimate(4500, assay={"name": "affinity", "subtotal_cents": 4000}, handling_cents=7)
    made = summary(prices={plan().order_keys[0]: new(answer)})
    row = purchase_rows(made)["price"]
    assert "assay not shown + replicates not shown + materials 5.00" in row
    assert "the estimate shows no amount for assay and replicates" in row
    assert "the estimate also shows handling_cents, which is not read" in row
    assert made.due_cents == 4500


def test_incomplete_estimate_is_no_price():
    answer = CostEstimate.model_validate({"incomplete": {"materials_unavailable": {"reason": "ask us"}}})
    made = summary(prices={plan().order_keys[0]: new(answer)})
    assert (made.due_cents, made.unpriced, made.due) == (0, 1, "by quote")
    assert "by quote: ask us" in purchase_rows(made)["price"]
    assert made.asked.endswith("a person, about each quote, before it is accepted")


def test_finished_campaign_has_nothing_more_to_order():
    keys = plan().order_keys
    made = summary(prices={keys[0]: OrderPrice(PurchaseState.MEASURED, 4500, is_committed=True)})
    assert made.due == "nothing more to order: 0.00 USD"
    assert (made.due_cents, made.committed_cents) == (0, 4500)
    rows = purchase_rows(made)
    assert (
        rows["already"]
        == "1 experiment of this campaign with 3 designs ordered, 1 of them measured: 45.00 USD"
    )
    assert rows["asked"] == "nobody: there is nothing to order."
    assert "warning" not in rows


@pytest.mark.parametrize(
    ("unasked", "words"),
    [
        (None, "you, before anything is ordered"),
        (0, "a person, with this price, before anything is ordered: nothing is approved so far"),
        (4499, "a person, with this price, before anything is ordered: 44.99 USD is approved so far"),
        (4500, "no further approval: 45.00 USD is within the approved amount"),
    ],
)
def test_amount_that_was_said_is_the_approval_to_the_cent(unasked, words):
    assert summary(unasked_cents=unasked).asked == words


def test_caps_two_persons_and_ceiling_are_named_before_the_price_is_asked():
    two = POLICY.model_copy(update={"second_person_above_usd": 44.99})
    assert "another person than Ada" in summary(policy=two, requester="Ada", unasked_cents=9000).asked
    assert "two persons above 44.99 USD" in purchase_rows(summary(policy=two))["caps"]
    low = POLICY.model_copy(update={"per_campaign_usd": 44.99})
    assert "over the cap per campaign, 44.99 USD" in summary(policy=low, unasked_cents=9000).asked
    single = POLICY.model_copy(update={"per_experiment_usd": 44.99})
    assert (
        "before the order of experiment 1: over the cap per experiment"
        in summary(policy=single, unasked_cents=4500).asked
    )
    none = POLICY.model_copy(update={"answer_ceiling_usd": 44.99})
    assert summary(policy=none).asked.startswith("nothing is ordered: no answer may approve more than 44.99")


def test_what_a_person_has_raised_the_cap_to_is_not_asked_again():
    assert summary(unasked_cents=0, raised_cents=4500).asked.startswith("no further approval")
    assert summary(unasked_cents=0, raised_cents=4499).asked.startswith("a person")


def test_warnings_come_before_money():
    doubted = plan(design(1), design(2)).model_copy(update={"doubts": ("kept: chain 2 is the same in both",)})
    warnings = summary(doubted).warnings
    assert warnings[0].startswith("no control: nothing will show that the assay worked")
    assert warnings[-1] == "kept: chain 2 is the same in both"
    assert not any("no control" in line for line in summary().warnings)


@pytest.mark.parametrize("title", ["expected_kd_nM", "Predicted KD (nM)", "KD (nM)"])
def test_expected_kd_outside_the_concentrations_is_named_with_its_column(title):
    columns = [{title: "0.5"}, {title: "50"}, {title: "5000"}]
    designs = [CONTROL, *(design(n, attributes=one) for n, one in enumerate(columns))]
    (line,) = summary(plan(*designs)).warnings
    assert line == (
        f"the concentrations, 31.6 to 1000 nM, the service's default, do not bracket the K_D that column {title!r} gives "
        "for 2 designs: d0 0.5 nM, d2 5e+03 nM"
    )
    wide = plan(*designs, antigen_concentrations=(0.1, 10_000, 0))
    assert summary(wide).warnings == ()


@pytest.mark.parametrize("columns", [{}, {"ipTM": "0.5"}, {"kd_nM": "<0.5"}, {"expected_kd": "0.5 foo"}])
def test_kd_that_nobody_states_is_not_invented(columns):
    assert summary(plan(CONTROL, design(1, attributes=columns))).warnings == ()


@pytest.mark.parametrize("changes", [{"simulated": True}, {"simulated": False}])
def test_every_text_says_live_or_simulated(changes):
    identity = AccountIdentity(service="http://lab", organisation=None, account_name="main", **changes)
    made = summary(account=identity)
    word = "simulated" if made.simulated else "LIVE"
    assert f"account main ({word})" in made.account
    assert any(word in line for line in purchase_markdown(made))


def test_markdown_of_foreign_names_is_text():
    made = summary(plan(campaign_id="c").model_copy(update={"source": "<img src=x>|.csv"}))
    lines = [*purchase_markdown(made), *price_markdown(made)]
    assert any("3 of &lt;img src=x>\\|.csv" in line for line in lines)
    assert "An order cannot be withdrawn." in "\n".join(lines)


def test_summary_is_json_and_back():
    made = summary(earlier=Earlier((EarlierPurchase(campaign_id="a", designs=("d1",)),)))
    assert PurchaseSummary.model_validate_json(made.model_dump_json()) == made


def test_designs_that_another_campaign_has_bought_are_a_warning_and_not_twice_in_a_sum():
    earlier = Earlier(
        (
            EarlierPurchase(campaign_id="b", designs=("d1",)),
            EarlierPurchase(campaign_id="a", designs=("d1", "d2")),
        )
    )
    made = summary(unasked_cents=9000, earlier=earlier)
    rows = purchase_rows(made)
    assert made.asked.startswith("no further approval"), "an amount that was said stays an approval"
    assert "warning" not in rows, "it is a row of its own, and is said once"
    assert list(rows)[:2] == ["due now", "bought again"]
    assert rows["bought again"].startswith(
        "2 of the 3 designs were ordered before for the same assay and target (d1, d2), in b"
    )
    assert rows["bought again"].endswith(f"in b (1 of them), in a (2 of them). {PAID_AGAIN}")
    (key,) = plan().order_keys
    ordered = {key: OrderPrice(PurchaseState.ORDERED, 4500, is_committed=True)}
    assert "bought again" not in purchase_rows(summary(prices=ordered, earlier=earlier)), "nothing is bought"


# -- earlier campaigns of an archive


class History:
    """An archive with campaigns, and a setup that reads it."""

    def __init__(self, folder):
        self.archive = LocalArchive(root=str(folder))
        self.ledgers = Ledgers(self.archive.get_store(), self.archive.prefix, "org")
        self.setup = SimpleNamespace(archive=self.archive, credentials=None)

    def plan(self, campaign):
        save_plan.fn(self.archive, campaign)
        return campaign

    def order(self, campaign, *, delivered=False):
        self.plan(campaign)
        for key in campaign.order_keys:
            ledger = self.ledgers.open_order(campaign.campaign_id, key)
            ledger.record(
                lambda _: Sending(attempt=1, route=OrderRoute.QUOTED, rail=PaymentMethod.ASYNC_INVOICE)
            )
            ledger.record(lambda _: Ordered(experiment_id="e"))
            if delivered:
                ledger.deliver("SIM-1")
        return campaign

    def find(self, campaign):
        return find_earlier(self.setup, [campaign], self.ledgers)


@pytest.fixture
def history(tmp_path):
    return History(tmp_path)


def test_same_protein_for_the_same_assay_method_and_target_is_found(history):
    history.order(plan(CONTROL, design(1), design(2), campaign_id="old"), delivered=True)
    renamed = ProteinSequence("other-name", design(1).aa_string)
    (one,) = history.find(plan(CONTROL, renamed, design(3))).purchases
    assert (one.campaign_id, one.designs, one.measured) == ("old", ("other-name",), True)
    assert one.ordered_at is not None
    assert datetime.now(UTC) >= one.ordered_at
    words = purchase_rows(summary(plan(CONTROL, renamed, design(3)), earlier=Earlier((one,))))["bought again"]
    assert words.startswith(
        "1 of the 3 designs was ordered before for the same assay and target (other-name), in old (1 of them on "
    )
    assert words.endswith(f"UTC, measured). {PAID_AGAIN}")


def test_other_measurements_controls_and_unsent_plans_do_not_count(history):
    history.plan(plan(CONTROL, design(1), campaign_id="planned"))
    history.order(plan(CONTROL, design(1), campaign_id="spr", method=Method.SPR))
    other = Target(id="22222222-2222-4222-8222-222222222222", name="EGFR")
    history.order(plan(CONTROL, design(1), campaign_id="egfr", target=other))
    history.order(plan(CONTROL, design(9), campaign_id="control-only"))
    tagged = design(1, metadata={"tag_location": "N"})
    history.order(plan(CONTROL, tagged, campaign_id="tagged"))
    assert history.find(plan(CONTROL, design(1))) == Earlier()


def test_own_campaign_and_an_order_that_came_to_nothing_are_not_earlier_ones(history):
    mine = history.order(plan(CONTROL, design(1)))
    gone = history.order(plan(CONTROL, design(1), campaign_id="gone"))
    history.ledgers.open_order("gone", gone.order_keys[0]).record(
        lambda _: Withdrawn(reason="its quote expired")
    )
    assert history.find(mine) == Earlier()


def test_many_campaigns_cost_a_bounded_number_of_requests(history, monkeypatch):
    for number in range(6):
        history.order(plan(CONTROL, design(number), campaign_id=f"old-{number}"))
    monkeypatch.setattr(purchase_module, "CAMPAIGNS_COMPARED", 2)
    read = []
    find = purchase_module.find_plan
    monkeypatch.setattr(purchase_module, "find_plan", lambda *args: read.append(args[2]) or find(*args))
    earlier = history.find(plan(CONTROL, *(design(n) for n in range(6))))
    assert sorted(read) == ["old-4", "old-5"], "the newest"
    assert [one.campaign_id for one in earlier.purchases] == ["old-5", "old-4"]
    assert earlier.unread == "compared with the newest 2 of 6 campaigns"


def test_several_plans_cost_one_reading_of_each_earlier_campaign(history, monkeypatch):
    history.order(plan(CONTROL, design(1), design(2), campaign_id="old"))
    read = []
    find = purchase_module.find_plan
    monkeypatch.setattr(purchase_module, "find_plan", lambda *args: read.append(args[2]) or find(*args))
    again = ProteinSequence("one-again", design(1).aa_string)
    plans = [plan(CONTROL, design(1), campaign_id="a"), plan(CONTROL, again, design(2), campaign_id="b")]
    (one,) = find_earlier(history.setup, plans, history.ledgers).purchases
    assert sorted(one.designs) == sorted([design(1).name, "one-again", design(2).name])
    assert read == ["old"]


def test_archive_that_cannot_be_compared_leaves_the_summary_true(history, monkeypatch):
    history.order(plan(CONTROL, design(1), campaign_id="old"))

    def fail(*_):
        raise OSError("no route")

    monkeypatch.setattr(purchase_module, "find_plan", fail)
    earlier = history.find(plan(CONTROL, design(1)))
    assert earlier == Earlier(unread="not compared with earlier campaigns: no route")
    assert summary(earlier=earlier).due_cents == 4500


def test_placed_orders_are_priced_by_their_ledgers_alone(history):
    campaign = history.order(plan(CONTROL, design(1)))
    key = campaign.order_keys[0]
    payment_ledger = history.ledgers.open_order("c", key)
    assert price_orders(history.setup, campaign, {key: payment_ledger})[key].state is PurchaseState.QUOTED
    payment_ledger.record(lambda _: Delivered(experiment_code="SIM-1"))
    price = price_orders(history.setup, campaign, {key: payment_ledger})[key]
    assert (price.state, price.is_committed) == (PurchaseState.MEASURED, True)


def test_order_that_ended_without_an_experiment_is_not_due(history):
    campaign = plan(CONTROL, design(1))
    key = campaign.order_keys[0]
    payment_ledger = history.ledgers.open_order("c", key)
    payment_ledger.stop("Ada", "prefect-assay cancel")
    price = price_orders(history.setup, campaign, {key: payment_ledger})[key]
    assert price == OrderPrice(PurchaseState.ENDED, 0, is_committed=True)
    assert summary(campaign, {key: price}).due == "nothing more to order: 0.00 USD"
