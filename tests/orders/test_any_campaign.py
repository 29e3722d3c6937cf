"""Any story of a campaign: runs that die, stand still or lose answers at any call, persons, and the laboratory's moods.

Each run is `check_orders` as a deployed run plays it, at a lab in this process. The lab's database, what has arrived
there and the ledgers are the judge: one experiment counts per order, it is paid once and with the approved amount, caps
hold, and once the faults stop everything ends, or waits for a person.
"""

from contextlib import suppress
from datetime import timedelta
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from assay_lab.kernel.refusals import Refusal
from prefect_assay.campaigns import advance as advancing
from prefect_assay.errors import AssayError
from prefect_assay.orders.ledger.log import ACTIONS
from prefect_assay.orders.ledger.open_money import OpenKind
from prefect_assay.orders.next_action import next_action
from prefect_assay.orders.question import REJECT, QuestionKind
from prefect_assay.orders.stages import OVER, Stage
from support.lab.campaign import PlayedCampaign
from support.lab.in_process import Fate, Killed
from support.next_actions import find_violation

METHODS = ("x402-exact", "mpp-spt", "async_invoice")
CALLS = st.integers(1, 75)
ACTS = st.builds(
    Fate, st.integers(1, 3), st.sampled_from(["kill", "lose"]), st.booleans(), st.just(value=True)
)
FATES = st.builds(Fate, CALLS, st.sampled_from(["kill", "kill", "lose", "leave"]), st.booleans()) | ACTS
SKEWS = st.sampled_from([timedelta(), timedelta(minutes=-4), timedelta(minutes=4), timedelta(days=40)])
EVENTS = [
    *((name, {}) for name in ("cancel", "expire_quote", "reject_quote", "void_invoice", "pay_invoice")),
    ("partial_results", {}),
    ("force_status", {"status": "canceled"}),
]
ROUNDS = 14  # of checks without faults, after which an order is over or waits for a person


def checked_next_action(state, seen, limits):
    action = next_action(state, seen, limits)
    assert find_violation(state, seen, action) is None, (find_violation(state, seen, action), action, state)
    return action


def attempt(campaign, fate=None):
    """The stages after one execution; None if it died or could not read the service."""
    with suppress(Killed, AssayError), patch.object(advancing, "next_action", checked_next_action):
        return campaign.look(fate)


class AnyCampaign(RuleBasedStateMachine):
    """Runs, faults, persons and time, in any order."""

    campaign = None

    @initialize(
        method=st.sampled_from(METHODS),
        is_priced=st.booleans(),
        by_quote=st.booleans(),
        accept_quotes=st.sampled_from([True, True, False]),
        rolling_cents=st.sampled_from([10**9, 30_000]),  # enough for one of the two
        orders=st.integers(1, 2),
    )
    def begin(self, orders, **options):
        self.campaign = PlayedCampaign(orders=orders, **options)
        self.again = {
            key: set() for key in self.campaign.keys
        }  # revisions in which a person let it be sent again
        self.is_cap_raised = False

    @rule(fate=FATES, skew=SKEWS)
    def look(self, fate, skew):
        before, stopped = len(self.campaign.acting()), self.are_all_stopped()
        self.campaign.machine = skew
        attempt(self.campaign, fate)
        self.campaign.machine = timedelta()
        assert not stopped or len(self.campaign.acting()) == before, "of a stopped order nothing leaves"

    @rule(fate=ACTS, is_listed=st.booleans())
    def lose_an_act(self, fate, is_listed):
        self.campaign.transport.is_lagging = not is_listed
        attempt(self.campaign, fate)

    @rule()
    def look_undisturbed(self):
        attempt(self.campaign)

    @rule(call=CALLS, after=st.booleans(), other=FATES)
    def look_while_another_run_looks(self, call, after, other):
        pause = Fate(call, "pause", after, meanwhile=lambda: attempt(self.campaign, other))
        attempt(self.campaign, pause)

    @rule(call=CALLS, after=st.booleans())
    def look_while_a_person_cancels(self, call, after):
        attempt(self.campaign, Fate(call, "pause", after, meanwhile=self.stop))

    @rule(fault=st.sampled_from(["fail_before_writing", "lose_answer"]), puts=st.integers(0, 15))
    def look_at_a_failing_archive(self, fault, puts):
        self.campaign.store.pass_puts(puts)
        getattr(self.campaign.store, fault)(6)
        attempt(self.campaign)
        self.campaign.store._puts.clear()

    @rule(is_lagging=st.booleans())
    def list_late(self, is_lagging):
        self.campaign.transport.is_lagging = is_lagging
        if not is_lagging:
            self.campaign.transport.unlisted.clear()

    @rule(hours=st.sampled_from([1, 30, 24 * 8, 24 * 40]))
    def pass_time(self, hours):
        self.campaign.pass_time(hours=hours)

    @rule(number=st.integers(0, 1), event=st.sampled_from(EVENTS))
    def happen(self, number, event):
        with suppress(Refusal):
            name, details = event
            self.campaign.happen(name, self.campaign.keys[number % len(self.campaign.keys)], **details)

    def stop(self):
        for key in self.campaign.keys:
            self.campaign.ledger(key).stop("ada", "cancel")

    def reopen(self):
        for key in self.campaign.keys:
            self.campaign.ledger(key).reopen("ada")

    @rule(what=st.sampled_from(["answer", "answer", "stop", "reopen"]), number=st.integers(0, 3))
    def ask_a_person(self, what, number):
        if what != "answer":
            getattr(self, what)()
            return
        self.campaign.answer(lambda question: question.decisions[number % len(question.decisions)])
        for asked, answered in self.campaign.log().read().decisions.values():
            if answered.decision != REJECT and asked.question.kind is QuestionKind.ORDER_AGAIN:
                self.again[asked.order_key].add(asked.revision)
            if answered.decision != REJECT and asked.question.kind is QuestionKind.SPENDING:
                self.is_cap_raised = True

    def are_all_stopped(self):
        return all(state.stopped for state in self.campaign.states())

    @invariant()
    def one_experiment_counts_and_is_paid_once_as_approved(self):
        for key in self.campaign.keys:
            records = list(self.campaign.ledger(key).records())
            kinds = [record.kind for record in records]
            assert kinds.count("ordered") <= 1
            assert kinds.count("settled") <= 1
            assert len(self.campaign.bills(key)) <= 1 + len(self.again[key]), "a second experiment is billed"
            by_machine = [
                one for one in self.campaign.settlements(key) if one["payment_method"] in METHODS[:2]
            ]
            assert len(by_machine) <= 1
            state = self.campaign.ledger(key).read()
            for one in by_machine:
                assert one["amount_cents"] == state.approved.amount_cents
            is_stopped = False
            for record in records:
                assert not (is_stopped and isinstance(record, ACTIONS))
                is_stopped = record.kind == "stopped" or (is_stopped and record.kind != "reopened")

    @invariant()
    def no_second_credential_could_settle(self):
        refused = sum(
            record.kind == "not_settled"
            for key in self.campaign.keys
            for record in self.campaign.ledger(key).records()
        )
        for count in self.campaign.credentials_by_invoice().values():
            assert count <= 1 + refused

    @invariant()
    def caps_hold(self):
        paid = sum(
            one["amount_cents"]
            for key in self.campaign.keys
            for one in self.campaign.settlements(key)
            if one["nonce"] or one["reference"]
        )
        assert self.is_cap_raised or paid <= 100 * self.campaign.policy["rolling_usd"]

    def the_lists_and_the_labs_ledgers_agree_to_the_cent(self):
        money = self.campaign.list_open_money().open_money
        assert {kind: money.sum_cents(kind) for kind in OpenKind} == self.campaign.booked_money()

    def teardown(self):
        if self.campaign is None:
            return
        try:
            self.end()
        finally:
            self.campaign.close()

    def end(self):
        """Without faults everything ends; a person rejects what is asked, and pays what a machine may not."""
        self.campaign.transport.is_lagging = False
        self.campaign.transport.unlisted.clear()
        stages = None
        self.the_lists_and_the_labs_ledgers_agree_to_the_cent()
        for number in range(ROUNDS):
            stages = attempt(self.campaign)
            assert stages is not None, "without faults a look fails"
            if all(stage in OVER for stage in stages):
                break
            self.campaign.answer(lambda _: REJECT)
            self.campaign.pass_time(days=6)
            if number > 2:
                for key in self.campaign.keys:
                    with suppress(Refusal):
                        self.campaign.happen("pay_invoice", key)
        self.one_experiment_counts_and_is_paid_once_as_approved()
        self.the_lists_and_the_labs_ledgers_agree_to_the_cent()
        # No machine can pay a void invoice: its order waits for another one, until its deadline, which is not reached here.
        is_void = any(one["status"] == "void" for one in self.campaign.rows("SELECT status FROM invoices"))
        rests = {*OVER, Stage.ASKS} | ({Stage.PAYMENT} if is_void else set())
        assert all(stage in rests for stage in stages), stages


AnyCampaign.TestCase.settings = settings(
    max_examples=20,
    stateful_step_count=8,
    phases=[
        Phase.explicit,
        Phase.reuse,
        Phase.generate,
    ],  # a story takes seconds, and shrinking plays hundreds
    suppress_health_check=list(HealthCheck),
)
TestAnyCampaign = pytest.mark.timeout(600)(AnyCampaign.TestCase)


@pytest.mark.parametrize("by_quote", [False, True])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("what", "after"), [("kill", False), ("lose", True)])
@pytest.mark.parametrize("act", [1, 2, 3])
def test_no_act_whose_answer_is_missing_is_followed_by_one_that_counts_too(
    method, by_quote, what, after, act
):
    """The create, the confirmation and the credential of one order; no list shows what was created meanwhile."""
    story, fate = AnyCampaign(), Fate(act, what, after, only_acts=True)
    options = {"method": method, "by_quote": by_quote, "is_priced": True}
    story.begin(**options, accept_quotes=True, rolling_cents=10**9, orders=1)
    for _ in range(4):
        story.lose_an_act(fate=fate, is_listed=False)
        story.campaign.pass_time(hours=2)
        story.one_experiment_counts_and_is_paid_once_as_approved()
        story.no_second_credential_could_settle()
    story.campaign.close()
