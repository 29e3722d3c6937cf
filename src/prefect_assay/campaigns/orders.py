"""One order of a campaign: its place in the plan, its ledger, and what it may cost."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from prefect_assay.archive.campaign_plan import Plan, PlannedExperiment
from prefect_assay.campaigns import artifacts
from prefect_assay.campaigns.approval.terms import account_in
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.foreign_text import quote_markdown
from prefect_assay.orders.identity import experiment_name
from prefect_assay.orders.job import Order
from prefect_assay.orders.ledger import OrderLedger
from prefect_assay.orders.ledger.campaign_log import CampaignLog
from prefect_assay.orders.next_action import OrderLimits, Seen
from prefect_assay.orders.question import UNNAMED
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import MACHINE_RAILS, PaymentMethod
from prefect_assay.tasks.pay import choose_rail

EXPERIMENT_CAP: Final = "policy's cap per experiment"
CAMPAIGN_CAP: Final = "amount that the campaign may spend without asking"
TWO_PERSONS: Final = "amount above which the policy asks for two persons"


@dataclass(frozen=True)
class PlannedOrder:
    """An experiment of a plan, with everything that is needed to advance its order."""

    setup: CampaignSetup
    plan: Plan
    planned: PlannedExperiment
    log: CampaignLog

    @property
    def key(self) -> str:
        """The order key."""
        return self.planned.order_key

    @property
    def spec(self) -> ExperimentSpec:
        """What is measured."""
        return self.planned.spec

    @property
    def name(self) -> str:
        """The experiment's name at the service."""
        return experiment_name(
            self.plan.campaign_id, self.planned.batch_index, len(self.plan.experiments), self.key
        )

    @property
    def label(self) -> str:
        """The end of the artifacts' keys."""
        return artifacts.label_of(self.plan.campaign_id, self.planned.batch_index)

    @property
    def account(self) -> str:
        """The account, for people, by the campaign's terms."""
        return account_in(self.log)

    @cached_property
    def ledger(self) -> OrderLedger:
        """The ledger of the order."""
        return self.setup.ledgers.open_order(self.plan.campaign_id, self.key)

    @property
    def campaign_cap_cents(self) -> int:
        """What all orders of the campaign may cost, in US cents, by its terms or by what a person has approved."""
        raised = self.setup.ledgers.budget.read().caps.get(self.plan.campaign_id, 0)
        return max(self.setup.unasked_cents, raised)

    def with_chosen_rail(self) -> "PlannedOrder":
        """The order, with the payment method that the service has accepted it for.

        Raises:
            PaymentsDisabled: the wallet or the policy does not allow any of the methods that the service names.
        """
        setup = self.setup
        method = choose_rail(self.ledger, setup.payment_method, setup.policy, setup.wallet)
        if method == setup.payment_method:
            return self
        return replace(self, setup=setup.paying_by(method))

    @property
    def payment_method(self) -> PaymentMethod:
        """How the order is paid."""
        return self.setup.payment_method

    def limits(self) -> OrderLimits:
        """What the order may do without asking a person: by the policy, the campaign's start and the payment method."""
        setup, started = self.setup, self.log.state.started or self.log.read().started
        cap_cents, two_above_cents = setup.policy.per_experiment_cents, setup.policy.second_person_above_cents
        one_person_suffices = two_above_cents is None or cap_cents <= two_above_cents
        requester = started.requester if started else None
        return OrderLimits(
            name=self.name,
            experiment_cap_cents=cap_cents if one_person_suffices else two_above_cents or 0,
            cap_name=EXPERIMENT_CAP if one_person_suffices else TWO_PERSONS,
            accept_quotes=setup.policy.accept_quotes,
            by_quote=setup.options.spending.request_quote or not self.spec.takes_target,
            by_machine=self.payment_method in MACHINE_RAILS,
            patience=setup.patience,
            bought=self.bought(),
            second_person_above_cents=two_above_cents,
            requester=requester,
            # Who has named an amount before the price was known; without one every approval is an answer's.
            approver=(requester or UNNAMED) if setup.unasked_cents else None,
            how=_join_names(started.approved_by, started.requester_known_by)
            if started and setup.unasked_cents
            else None,
        )

    def bought(self) -> dict[str, str]:
        """What is bought and how it is paid, for a question."""
        lines = artifacts.describe_purchase(self.plan.campaign_id, [self.spec], self.plan.target_name)
        # Without the run: the same question is asked by whichever run carries the campaign.
        return {**lines, "campaign": quote_markdown(self.plan.campaign_id), "paid": self.setup.how_paid}

    def known_order(self, seen: Seen) -> Order:
        """The experiment as this execution knows it: found or placed by it, or by its row in the list.

        Raises:
            LookupError: it has neither.
        """
        if seen.order is not None:
            return seen.order
        if seen.row is None:
            raise LookupError(f"the experiment of order {self.key} was not read")
        return Order(
            order_key=self.key,
            experiment_id=seen.row.id,
            experiment_code=seen.row.code,
            experiment_url=seen.row.experiment_url,
            status=seen.row.status,
            adopted=True,
            surplus=self.ledger.state.surplus,
        )


def _join_names(*parts: str | None) -> str | None:
    return "; ".join(part for part in parts if part) or None
