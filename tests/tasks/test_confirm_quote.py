"""A quote is confirmed after its record, and again after a crash; of two experiments see test_moved_order."""

from contextlib import contextmanager
from datetime import UTC, datetime

from prefect_assay.books.log import Confirming
from prefect_assay.errors import NotReady
from prefect_assay.models.billing import ExperimentInvoice, Quote
from prefect_assay.models.experiment import Experiment
from prefect_assay.tasks.quote import BillingStage, confirm_quote
from support.archive.memory_store import a_book

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Service:
    """Open quotes, and what was confirmed; credentials of its own."""

    def __init__(self):
        self.confirmed = []

    @contextmanager
    def get_client(self):
        yield self

    def invoice(self, experiment_id):
        if experiment_id in self.confirmed:
            return ExperimentInvoice(experiment_id=experiment_id, status="open")
        raise NotReady("no invoice")

    def experiment(self, experiment_id):
        return Experiment(id=experiment_id, code="X", status="waiting_for_confirmation", created_at=NOW)

    def quote(self, _experiment_id):
        return Quote.model_validate({"status": "open", "amount_total": 500, "currency": "usd"})

    def confirm_quote(self, experiment_id):
        self.confirmed.append(experiment_id)


def confirm(service, book, experiment_id):
    return confirm_quote.fn(service, experiment_id, book=book, approved_cents=500, campaign_cap_cents=500)


def test_a_quote_is_confirmed_after_its_record_and_again_after_a_crash():
    service, book = Service(), a_book()
    book.record(lambda _: Confirming(amount_cents=500))
    assert confirm(service, a_book(book.books.store), "exp_1").stage is BillingStage.INVOICED
    assert service.confirmed == ["exp_1"]
    assert a_book(book.books.store).read().confirmed
