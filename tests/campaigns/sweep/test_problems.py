"""The hourly look at orders, accounts and deployments: what is a problem, and what a failed look leaves open."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from prefect_assay.archive import LocalStore
from prefect_assay.blocks import LocalArchive
from prefect_assay.campaigns.problems import kinds
from prefect_assay.campaigns.sweep import problems as looking
from prefect_assay.campaigns.sweep.open_campaigns import OpenCampaign, SavedArchive
from prefect_assay.campaigns.sweep.problems import Problems
from prefect_assay.errors import NotFound, ServiceUnavailable, Unauthorized
from prefect_assay.orders.ledger.open_money import OpenMoney
from prefect_assay.service.models.experiment import ExperimentSummary
from support.campaign_logs import WrittenCampaign

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
ACCOUNT = "assay-account/mine"


class Service:
    """One account: its experiments as listed, and what goes wrong."""

    service_time = NOW

    def __init__(self):
        self.rows, self.fault, self.token = [], None, NOW + 90 * DAY
        self.tokens = SimpleNamespace(whoami=self._whoami)
        self.experiments = SimpleNamespace(iterate=self._iterate)

    def show(self, experiment, status, results="none", age=timedelta()):
        self.rows = [
            ExperimentSummary(
                id=experiment, code="LAB-1", status=status, results_status=results, created_at=NOW - age
            )
        ]

    def _whoami(self):
        if self.token is None:
            raise NotFound("no such path")
        return SimpleNamespace(token_expires_at=self.token)

    def _iterate(self, *, filter):  # noqa: A002 - the client's own name
        del filter
        if self.fault:
            raise self.fault
        return iter(self.rows)


@pytest.fixture
def service(monkeypatch):
    made = Service()
    monkeypatch.setattr(
        looking,
        "load_account",
        lambda *_: SimpleNamespace(credentials=SimpleNamespace(get_client=lambda: nullcontext(made))),
    )
    monkeypatch.setattr(looking, "cannot_start", lambda *_: [])
    return made


@pytest.fixture
def campaign(tmp_path):
    store = LocalStore(tmp_path)
    written = WrittenCampaign(store, "", "c-1")
    written.experiment = written.order(1)
    started = written.log.read().started
    written.log.append(
        type(started)(
            **started.model_dump(exclude={"id", "at", "by", "parameters"}),
            parameters={"account": {"$block": ACCOUNT}},
        )
    )
    archive = SavedArchive("assay-local-archive/a", LocalArchive(root=str(tmp_path)), store, "id" * 8)
    written.open = OpenCampaign(archive, written.log)
    return written


def check(campaign, before=()):
    """An hourly check; what it has found."""
    prefect = SimpleNamespace(read_block_documents_by_type=lambda *_, **__: [])
    made = Problems(NOW, unread_before=frozenset(before))
    made.note_campaign(campaign.open, None)
    made.check(prefect, [campaign.open], OpenMoney())
    return made


def list_kinds(made):
    return [problem.kind for problem in made.problems]


@pytest.mark.parametrize(("age", "overdue"), [(44 * DAY, False), (45 * DAY, True)])
def test_an_order_past_its_deadline_is_named_until_its_results_come(campaign, service, age, overdue):
    service.show(campaign.experiment, "in_production", age=age)
    made = check(campaign)
    assert list_kinds(made) == [kinds.ORDER_OVERDUE] * overdue
    campaign.deliver(1, "LAB-1")
    assert list_kinds(check(campaign)) == []


def test_a_canceled_experiment_is_not_overdue(campaign, service):
    service.show(campaign.experiment, "canceled", age=90 * DAY)
    assert list_kinds(check(campaign)) == []


def test_released_results_are_a_problem_if_nobody_has_read_them_an_hour_later(campaign, service):
    service.show(campaign.experiment, "done", "all", age=20 * DAY)
    first = check(campaign)
    assert (list_kinds(first), len(first.unread)) == ([], 1)
    second = check(campaign, before=first.unread)
    assert list_kinds(second) == [kinds.RESULTS_UNREAD]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [(ServiceUnavailable("503"), kinds.SERVICE_UNREACHABLE), (Unauthorized("401"), kinds.TOKEN_EXPIRING)],
)
def test_an_account_that_cannot_be_read_is_named_and_closes_nothing_behind_it(campaign, service, fault, kind):
    service.fault = fault
    made = check(campaign)
    assert list_kinds(made) == [kind]
    assert not made.looked & {kinds.ORDER_OVERDUE, kinds.RESULTS_UNREAD}
    assert (kinds.TOKEN_EXPIRING, ACCOUNT) in made.unclear


def test_a_token_near_its_end_is_named_and_an_unknown_end_closes_nothing(campaign, service):
    service.token = NOW + 13 * DAY
    assert list_kinds(check(campaign)) == [kinds.TOKEN_EXPIRING]
    service.token = None
    made = check(campaign)
    assert list_kinds(made) == []
    assert (kinds.TOKEN_EXPIRING, ACCOUNT) in made.unclear


def test_money_that_could_not_be_read_everywhere_closes_no_problem_of_money(campaign, service):
    made = Problems(NOW)
    made.check(
        SimpleNamespace(read_block_documents_by_type=lambda *_, **__: []), [], OpenMoney(complete=False)
    )
    assert kinds.INVOICE_UNPAID not in made.looked
    assert kinds.TOKEN_EXPIRING in made.looked


def test_an_archive_that_cannot_be_read_closes_nothing_of_its_campaigns():
    made = Problems(NOW)
    made.note_unreachable("assay-local-archive/a", ServiceUnavailable("away"))
    assert list_kinds(made) == [kinds.ARCHIVE_UNREACHABLE]
    assert not made.looked & {kinds.CAMPAIGN_WITHOUT_RUN, kinds.QUESTION_OPEN, kinds.HOME_SILENT}


def test_an_open_question_is_one_problem_of_its_campaign(campaign, service):
    campaign.ask("q-1", 500, number=1)
    service.show(campaign.experiment, "in_production")
    (problem,) = check(campaign).problems
    assert (problem.kind, problem.subject) == (kinds.QUESTION_OPEN, "c-1/q-1")
