"""When the price of a campaign is asked, what is recorded of an approval, and who may give it; against a real lab."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from prefect.logging import disable_run_logger

from prefect_assay.campaigns.approval import price as price_module
from prefect_assay.campaigns.approval.price import approve_orders
from prefect_assay.campaigns.orders import PlannedOrder
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.designs.read import read_sequences
from prefect_assay.errors import ApprovalRejected, BudgetExceeded, ConfigurationError
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger.campaign_log import CLOSED, Started, StartedKind
from prefect_assay.orders.ledger.log import (
    Approved,
    Delivered,
    Ordered,
    Sending,
)
from prefect_assay.orders.next_action import APPROVE
from prefect_assay.orders.targets import resolve_target
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.models.vocabulary import PaymentMethod
from prefect_assay.tasks.read import plan_campaign
from support.accounts import make_account
from support.runs.world import EGFR


@pytest.fixture(autouse=True)
def without_prefect(monkeypatch):
    """No artifacts and no events; the form is answered by `Form`."""
    monkeypatch.setattr(price_module.artifacts, "show_purchase", lambda *_: None)
    monkeypatch.setattr(price_module, "show_question", lambda *_, **__: "details")
    monkeypatch.setattr(price_module, "emit_fact", lambda *_: None)
    monkeypatch.setattr(price_module, "report_answer", lambda *_: None)
    monkeypatch.setattr(price_module, "report_budget", lambda *_: None)
    with disable_run_logger():
        yield


class Form:
    """A deployed run whose form gets these answers: decision and name."""

    def __init__(self, monkeypatch, *answers):
        self.answers = list(answers)
        self.texts = []
        self.keys = []
        monkeypatch.setattr(price_module, "can_suspend", lambda: True)
        monkeypatch.setattr(price_module, "this_run", lambda: SimpleNamespace(name="crane"))
        monkeypatch.setattr(price_module, "suspend_flow_run", self.suspend)

    def suspend(self, *, wait_for_input, timeout, key):
        assert timeout > 0
        self.texts.append(wait_for_input._description)
        self.keys.append(key)
        decision, name = self.answers.pop(0)
        return SimpleNamespace(decision=decision, decided_by=name)


def orders(lab, folder, *, unasked_cents=0, designs=2, requester="Ada", **policy):
    """The orders of a campaign that has begun, one design in each."""
    account = make_account(base_url=lab.base_url, token=lab.token, archive=folder, policy=policy)
    setup = CampaignSetup(account)
    text = "".join(f">d{n}\nMKVLAAGICDE{'ACDEFGHIKL'[n]}\n" for n in range(designs))
    assay = Assay(experiment_type="affinity", method="bli", target=EGFR)
    with setup.credentials.get_client() as client:
        target = resolve_target(client, assay)
    plan = plan_campaign.fn(
        read_sequences("designs", text=text), assay, target, campaign_id="c", per_experiment=1
    )
    log = setup.log("c")
    terms = setup.terms(unasked_cents)
    log.read()
    log.start(
        Started(
            what=StartedKind.CAMPAIGN,
            name="c",
            terms=terms,
            requester=requester,
            requester_known_by="the name given",
            approved_by="--yes --max-usd",
        )
    )
    return [PlannedOrder(setup.under(terms), plan, planned, log) for planned in plan.experiments]


PRICE_CENTS = 43_800  # of two designs in experiments of their own


def test_amount_that_was_said_is_the_approval_and_one_cent_less_is_a_question(lab, tmp_path):
    placed = orders(lab, tmp_path, unasked_cents=PRICE_CENTS)
    before = lab.journal()[-1]["number"]
    estimates, purchase = approve_orders(placed, "lab")
    assert purchase.due_cents == sum(one.total_cents for one in estimates.values()) == PRICE_CENTS
    with pytest.raises(BudgetExceeded, match=r"pass `spend_up_to_usd=438.00` \(`--max-usd`\)"):
        approve_orders(orders(lab, tmp_path / "other", unasked_cents=PRICE_CENTS - 1), "lab")
    assert lab.journal(after=before, method="POST", path="/experiments") == []


def test_nothing_said_is_a_question_however_high_the_policys_caps_are(lab, tmp_path):
    with pytest.raises(BudgetExceeded, match="may be spent without asking; nothing was ordered"):
        approve_orders(orders(lab, tmp_path), "lab")


def test_what_was_shown_is_in_the_log_once_before_anything_is_ordered(lab, tmp_path):
    placed = orders(lab, tmp_path, unasked_cents=PRICE_CENTS)
    _, purchase = approve_orders(placed, "lab")
    approve_orders(placed, "lab")
    shown = [record for record in placed[0].log.records() if record.kind == "offered"]
    assert [record.purchase for record in shown] == [purchase]
    assert (purchase.requester, purchase.simulated, purchase.account_name) == ("Ada", True, None)


def test_answer_in_the_form_is_recorded_in_every_ledger_with_who_asked_and_how(lab, tmp_path, monkeypatch):
    Form(monkeypatch, (APPROVE, "Grace"))
    placed = orders(lab, tmp_path)
    _, purchase = approve_orders(placed, "lab")
    for order, one in zip(placed, purchase.experiments, strict=True):
        approved = order.ledger.read().approved
        assert (approved.amount_cents, approved.approver, approved.by_person) == (one.cents, "Grace", True)
        assert (approved.requester, approved.how) == ("Ada", "the form of flow run crane; the name was typed")
    assert placed[0].campaign_cap_cents == PRICE_CENTS


def test_rejection_ends_it_with_nothing_ordered(lab, tmp_path, monkeypatch):
    Form(monkeypatch, ("reject", ""))
    with pytest.raises(ApprovalRejected, match="a person who gave no name has not approved"):
        approve_orders(orders(lab, tmp_path), "lab")


def test_what_was_said_before_is_recorded_as_that(lab, tmp_path):
    limits = orders(lab, tmp_path, unasked_cents=PRICE_CENTS)[0].limits()
    assert (limits.approver, limits.requester) == ("Ada", "Ada")
    assert limits.how == "--yes --max-usd; the name given"
    assert orders(lab, tmp_path / "other")[0].limits().approver is None


def test_above_an_amount_whoever_asks_is_refused_and_another_person_is_not(lab, tmp_path, monkeypatch):
    form = Form(monkeypatch, (APPROVE, "ada "), (APPROVE, ""), (APPROVE, "Grace"))
    placed = orders(
        lab, tmp_path, unasked_cents=10 * PRICE_CENTS, second_person_above_usd=(PRICE_CENTS - 1) / 100
    )
    approve_orders(placed, "lab")
    assert placed[0].ledger.read().approved.approver == "Grace"
    assert len(set(form.keys)) == 3, "each answer has a form of its own"
    assert "Your answer was refused" not in form.texts[0]
    assert "Ada has asked for it; nothing was recorded" in form.texts[1]
    assert "you gave no name" in form.texts[2]
    decisions = [one.decision for one in placed[0].log.records() if one.kind == "answered"]
    assert decisions == [CLOSED, CLOSED, APPROVE]


def test_below_that_amount_one_person_is_enough(lab, tmp_path):
    placed = orders(lab, tmp_path, unasked_cents=10 * PRICE_CENTS, second_person_above_usd=PRICE_CENTS / 100)
    approve_orders(placed, "lab")
    assert placed[0].log.read().open_questions == {}


def test_two_persons_need_a_name_and_a_run_that_can_ask(lab, tmp_path):
    rule = {"second_person_above_usd": 0.01, "unasked_cents": 10 * PRICE_CENTS}
    with pytest.raises(ConfigurationError, match="who asks for it is not known, and nothing was ordered"):
        approve_orders(orders(lab, tmp_path, requester=None, **rule), "lab")
    with pytest.raises(BudgetExceeded, match="so that another person is asked"):
        approve_orders(orders(lab, tmp_path / "other", **rule), "lab")


def test_no_answer_may_approve_more_than_the_ceiling(lab, tmp_path):
    placed = orders(lab, tmp_path, answer_ceiling_usd=0.02)
    with pytest.raises(BudgetExceeded, match="answer_ceiling_usd"):
        approve_orders(placed, "lab")
    assert placed[0].log.read().open_questions == {}


def place(order, *, delivered):
    ledger = order.ledger
    ledger.record(
        lambda _: Sending(attempt=1, route=OrderRoute.SELF_SERVICE, rail=PaymentMethod.ASYNC_INVOICE)
    )
    ledger.record(lambda _: Ordered(experiment_id="e"))
    if delivered:
        ledger.record(lambda _: Delivered(experiment_code="SIM-1"))


def test_once_an_order_is_placed_the_others_ask_for_themselves(lab, tmp_path):
    first, second = orders(lab, tmp_path, unasked_cents=PRICE_CENTS)
    first.ledger.record(lambda _: Approved(amount_cents=PRICE_CENTS // 2, approver="Ada"))
    place(first, delivered=True)
    estimates, purchase = approve_orders([first, second], "lab")
    assert list(estimates) == [second.key]
    assert (purchase.committed_cents, purchase.due_cents) == (PRICE_CENTS // 2, PRICE_CENTS // 2)
    low = [replace(one, setup=replace(one.setup, unasked_cents=PRICE_CENTS - 1)) for one in (first, second)]
    assert list(approve_orders(low, "lab")[0]) == [second.key]
    assert first.log.read().open_questions == {}


def test_finished_campaign_is_run_again_without_a_question_and_without_a_request(lab, tmp_path):
    placed = orders(lab, tmp_path)
    for order in placed:
        place(order, delivered=True)
    before = lab.journal()[-1]["number"]
    estimates, purchase = approve_orders(placed, "lab")
    assert (estimates, purchase.due) == ({}, "nothing more to order: 0.00 USD")
    assert [one for one in lab.journal(after=before) if "whoami" not in one["path"]] == []
    assert placed[0].log.read().offered is None
