"""Logs of campaigns with the ledgers of their orders, written into an archive without any run."""

from datetime import UTC, datetime, timedelta

from prefect_assay.analysis.results import to_csv
from prefect_assay.archive import Document, archive_version
from prefect_assay.archive.campaign_plan import Plan, PlannedExperiment
from prefect_assay.archive.layout import TABLE_PATH
from prefect_assay.archive.plans import fix_plan
from prefect_assay.archive.store import Store
from prefect_assay.designs.campaign import split_into_batches
from prefect_assay.designs.read import read_sequences
from prefect_assay.orders.identity import order_key
from prefect_assay.orders.job import OrderRoute
from prefect_assay.orders.ledger import Ledgers, OrderLedger
from prefect_assay.orders.ledger.campaign_log import (
    CampaignLog,
    Started,
    StartedKind,
    Terms,
)
from prefect_assay.orders.ledger.log import (
    Approved,
    Delivered,
    Invoiced,
    Ordered,
    OrderRecord,
    Sending,
    Settled,
)
from prefect_assay.orders.question import Question, QuestionKind
from prefect_assay.service.models.spec import Assay, ExperimentSpec
from prefect_assay.service.models.vocabulary import PaymentMethod

SERVICE = "http://lab.test"
DESIGNS = ">a\nNSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR\n>b\nSESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"


def plan_of(campaign_id: str, *, designs: str = DESIGNS, per_experiment: int = 1) -> Plan:
    """A plan with an experiment for each design."""
    assay = Assay(experiment_type="thermostability")
    batches = split_into_batches(read_sequences(designs), assay, per_experiment)
    specs = [ExperimentSpec.of(assay, batch, None) for batch in batches]
    planned = tuple(
        PlannedExperiment(order_key=order_key(campaign_id, number, spec), batch_index=number, spec=spec)
        for number, spec in enumerate(specs)
    )
    return Plan(campaign_id=campaign_id, source="", assay=assay, experiments=planned)


class WrittenCampaign:
    """A campaign that was started; its orders are written record by record."""

    def __init__(
        self, store: Store, prefix: str, name: str, *, plan: Plan | None = None, service: str = SERVICE
    ) -> None:
        self.store, self.prefix, self.name = store, prefix, name
        self.ledgers = Ledgers.find_recorded(store, prefix, service) or Ledgers.open(
            store, prefix, service, "org-1"
        )
        self.service = service
        self.plan = plan or plan_of(name)
        fix_plan(store, prefix, self.plan)
        self.log = CampaignLog(store, prefix, name)
        self.start()

    def start(self) -> None:
        """Record a start, as a flow does."""
        self.log.start(
            started(self.ledgers, self.name, experiments=len(self.plan.experiments), service=self.service)
        )

    def ledger(self, number: int) -> OrderLedger:
        """The ledger of an order, from 1."""
        return self.ledgers.open_order(self.name, self.plan.experiments[number - 1].order_key)

    def write(self, number: int, *records: OrderRecord) -> OrderLedger:
        """Append records to the ledger of an order."""
        ledger = self.ledger(number)
        for record in records:
            ledger.record(lambda _, new=record: new)
        return ledger

    def order(self, number: int, *further: OrderRecord) -> str:
        """Record an order with its experiment."""
        experiment_id = f"exp-{self.name}-{number}"
        sending = Sending(attempt=1, route=OrderRoute.SELF_SERVICE, rail=PaymentMethod.ASYNC_INVOICE)
        approved = Approved(amount_cents=50_000, approver="the policy")
        self.write(number, approved, sending, Ordered(experiment_id=experiment_id), *further)
        return experiment_id

    def bill(self, number: int, cents: int) -> None:
        """Record an invoice."""
        self.write(number, Invoiced(invoice_id=f"inv-{number}", amount_cents=cents))

    def pay(self, number: int, cents: int) -> None:
        """Record that an invoice is paid."""
        self.write(number, Settled(invoice_id=f"inv-{number}", amount_cents=cents))

    def archive_results(self, number: int, code: str, status: str = "all") -> None:
        """Archive a version of an experiment."""
        archive_version(
            self.store,
            self.prefix,
            campaign_id=self.name,
            experiment_id=f"exp-{self.name}-{number}",
            experiment_code=code,
            results_status=status,
            documents=[Document(path=TABLE_PATH, content_type="text/csv", body=to_csv(()))],
            now=datetime.now(UTC),
        )

    def deliver(self, number: int, code: str) -> None:
        """Archive all results, and record it."""
        self.archive_results(number, code)
        self.write(number, Delivered(experiment_code=code))

    def ask(self, question_id: str, cents: int | None = None, *, number: int | None = None) -> None:
        """Record a question that is open for three days."""
        now = datetime.now(UTC)
        self.log.ask(
            question_id,
            question_of(cents),
            order_key=self.plan.experiments[number - 1].order_key if number else None,
            now=now,
            expires_at=now + timedelta(days=3),
        )


def question_of(cents: int | None = None) -> Question:
    """A question about an amount."""
    return Question.of(
        QuestionKind.SPENDING,
        subject="Experiment 1 was quoted over the cap.",
        reason="The policy allows less.",
        choices={"approve": "it is ordered", "reject": "nothing is ordered"},
        amount_cents=cents,
    )


def started(
    ledgers: Ledgers,
    name: str,
    what: StartedKind = StartedKind.CAMPAIGN,
    *,
    experiments: int | None = None,
    service: str = SERVICE,
    home: str | None = "home-1",
) -> Started:
    """The record of a start."""
    terms = Terms(
        service=service,
        organisation="org-1",
        simulated=True,
        archive_id=ledgers.archive_id,
        payment_method=PaymentMethod.ASYNC_INVOICE,
        per_experiment_cents=100_000,
        per_campaign_cents=200_000,
        accept_quotes=True,
        deadline_days=45,
    )
    return Started(
        what=what,
        name=name,
        terms=terms,
        deployment="campaign/assay-campaign",
        home=home,
        experiments=experiments,
        requester="ada",
    )
