"""A service that only takes orders, and a store and a killer to break runs at any call. In memory, and it counts."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from prefect_assay.archive import LocalStore
from prefect_assay.errors import NotFound
from prefect_assay.orders.identity import experiment_name, order_key
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.service.models.billing import Invoice
from prefect_assay.service.models.experiment import Created, CreateRequest, Experiment, QuoteAcceptance
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import PaymentMethod
from support.contract.forms import page, refuse
from support.contract.service import ContractService

START = datetime(2026, 1, 1, tzinfo=UTC)

# The order of the tests: by quote, by an accepted quote, and by a machine rail.
SPEC = ExperimentSpec.model_validate(
    {"experiment_type": "expression", "sequences": {"a": {"aa_string": "ACD"}}}
)
KEY = order_key("camp", 0, SPEC)
REQUEST = CreateRequest(experiment_spec=SPEC, name=experiment_name("camp", 0, 1, KEY), skip_draft=True)
HOSTED = REQUEST.model_copy(update={"auto_accept_quote": True})
MACHINE = HOSTED.model_copy(update={"payment_method": PaymentMethod.X402_EXACT})


class Killed(BaseException):
    """The process is gone."""


class Killer:
    """Ends the process at one call: before it takes effect, or when its answer is on the way."""

    def __init__(self, call_number=0, *, after=False):
        self.at, self.after, self.calls = call_number, after, 0

    def around(self, call, *arguments, **options):
        self.calls += 1
        now = self.calls == self.at
        if now and not self.after:
            raise Killed
        result = call(*arguments, **options)
        if now:
            raise Killed
        return result


class KillingStore:
    """A store whose calls go through a killer."""

    def __init__(self, store, killer):
        self._store, self.killer = store, killer

    def __getattr__(self, name):
        attribute = getattr(self._store, name)
        if name not in {"put_if_absent", "find", "stat", "read"}:
            return attribute
        return lambda *arguments, **options: self.killer.around(attribute, *arguments, **options)


class OrderService(ContractService):
    """The contract's stand-in in the test's process, read by a real client; it lists experiments newest first.

    Creates are taken as they are: the client would refuse the short orders of these tests.

    Args:
        lag: how many looks a new experiment stays out of the list.
        answer: `created` (201), or `accepted` (200 of a machine rail, which names no experiment).
        trouble: raised by a create after the experiment exists; before it with `refuses`.
        unread: raised by every reading of one experiment.
        unlisted: raised by every search.
        standing: all experiments have one creation time, and later ones smaller ids.
    """

    def __init__(
        self,
        *,
        lag=0,
        answer="created",
        trouble=None,
        refuses=False,
        unread=None,
        unlisted=None,
        standing=False,
    ):
        super().__init__(base_url="https://lab.example", is_compared=False)
        self.orders, self.hidden = [], {}
        self.creates = self.looks = 0
        self.lag, self.form_of_create, self.trouble, self.refuses = lag, answer, trouble, refuses
        self.unread, self.unlisted, self.standing = unread, unlisted, standing
        self.billed, self.killer = {}, Killer()
        self.before_answer = lambda made: None
        client = self.client()
        self.experiments = SimpleNamespace(
            iterate=client.experiments.iterate,
            get=client.experiments.get,
            create=lambda request: self.killer.around(self._create, request),
        )
        self.invoices = SimpleNamespace(get=client.invoices.get)

    def add(self, name, spec, *, days=None, status="waiting_for_confirmation"):
        number = len(self.orders) + 1
        age = timedelta(days=days) if days is not None else timedelta(seconds=number)
        made = Experiment(
            id=f"id-{99 - number if self.standing else number}",
            code=f"ORG-001-{number:03d}",
            name=name,
            status=status,
            created_at=START if self.standing else START + age,
            experiment_type=spec.experiment_type,
            experiment_spec=spec.wire(),
        )
        self.orders.append(made)
        return made

    def change(self, experiment_id, **changes):
        index = next(i for i, e in enumerate(self.orders) if e.id == experiment_id)
        self.orders[index] = self.orders[index].model_copy(update=changes)

    def experiments_list(self, *, query, **_):
        return page(
            [row.model_dump(mode="json") for row in self.killer.around(self._listed, query["search"][0])]
        )

    def experiments_get(self, experiment_id, **_):
        try:
            return self.killer.around(self._read, experiment_id).model_dump(mode="json")
        except NotFound:
            return refuse(404, "experiment not found")

    def invoices_get(self, invoice_id, **_):
        try:
            return self.killer.around(self._invoice, invoice_id).model_dump(mode="json")
        except NotFound:
            return refuse(404, "invoice not found")

    def _listed(self, search):
        if self.unlisted:
            raise self.unlisted
        self.looks += 1
        seen = [e for e in self.orders if search in (e.name or "") and self.hidden.get(e.id, 0) < self.looks]
        return sorted(seen, key=lambda e: e.created_at, reverse=True)

    def _read(self, experiment_id):
        if self.unread:
            raise self.unread
        matches = [e for e in self.orders if e.id == experiment_id]
        if not matches:
            raise NotFound(experiment_id)
        return matches[0]

    def _create(self, request):
        self.creates += 1
        if self.refuses:
            raise self.trouble
        made = self.add(request.name, request.experiment_spec)
        self.hidden[made.id] = self.looks + self.lag
        self.before_answer(made)
        if self.trouble:
            raise self.trouble
        if self.form_of_create == "created":
            return Created(experiment_id=made.id, provider_hosted_invoice_url="https://pay.example/inv")
        invoice = f"inv-{made.id}"
        self.billed.setdefault(invoice, made.id)
        return QuoteAcceptance(id=f"q-{made.id}", status="accepted", invoice_id=invoice)

    def _invoice(self, invoice_id):
        if invoice_id not in self.billed:
            raise NotFound(invoice_id)
        return Invoice(id=invoice_id, status="open", amount=21_900, experiment_id=self.billed[invoice_id])


class ScheduledService:
    """An `OrderService` whose calls are wrapped, such as in a lock."""

    def __init__(self, service, wrap):
        self.base_url = service.base_url
        for resource in ("experiments", "invoices"):
            calls = vars(getattr(service, resource))
            setattr(self, resource, SimpleNamespace(**{verb: wrap(call) for verb, call in calls.items()}))


def ledgers(folder, killer=None, account="account"):
    """The ledgers of one account in a folder."""
    store = LocalStore(folder)
    return Ledgers(KillingStore(store, killer) if killer else store, "", account)
