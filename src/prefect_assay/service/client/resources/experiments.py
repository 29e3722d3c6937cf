"""Experiments (contract 4.2): price, create, list, read, submit, modify, and what belongs to one of them.

`modify` is PATCH, and the POST of the earlier interface variant (contract 9.4). POST is tried only after a 405: the path
exists and the method does not, so nothing was done. Both variants answer 404 for an experiment that does not exist.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final, TypeVar

from prefect_assay.errors import (
    AssayError,
    InvalidRequest,
    InvalidSpec,
    NotReady,
    OrderOutcomeUnknown,
    PartialOrder,
)
from prefect_assay.service.client.answers import require_experiment, require_record
from prefect_assay.service.client.checks import check_changes, check_creation, only_for_a_lab
from prefect_assay.service.client.decoding import (
    build_act,
    build_read,
    make_model_reader,
    make_shape_error,
    parse_model,
)
from prefect_assay.service.client.filters import Condition, Sorting
from prefect_assay.service.client.http.failures import problem_of
from prefect_assay.service.client.http.request import (
    UNSET,
    Answer,
    Operation,
    Request,
    Unset,
    quote_segment,
)
from prefect_assay.service.client.parameters import FieldTest
from prefect_assay.service.client.resources.documents import download_pdf
from prefect_assay.service.client.resources.quotes import build_confirmation
from prefect_assay.service.client.resources.resource import ListQuery, Resource, join_conditions
from prefect_assay.service.client.resources.sequences import encode_entry
from prefect_assay.service.client.resources.states import read_states
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.billing import CostEstimate, ExperimentInvoice, Quote
from prefect_assay.service.models.experiment import (
    Created,
    CreateRequest,
    Experiment,
    ExperimentSummary,
    Modified,
    QuoteAcceptance,
    Submitted,
)
from prefect_assay.service.models.identifiers import normalize_id
from prefect_assay.service.models.result import Result
from prefect_assay.service.models.sequences import ProteinSequence, SequenceEntry, StoredSequence
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.spec_rules import check_spec
from prefect_assay.service.models.update import Update
from prefect_assay.service.models.vocabulary import (
    PAGE_LIMIT_MAX,
    ExperimentStatus,
    ExperimentType,
    PaymentMethod,
    ResultsStatus,
    snake_case,
)

Part = TypeVar("Part", Result, StoredSequence, Update)

_EXPERIMENTS: Final = ListQuery(path="/experiments", row=ExperimentSummary)
PAYMENT_HEADER: Final = "X-Service-Payment-Method"  # contract 4.2, create rule 2
_READ_AGAIN: Final = "Read the experiment before anything else"
_OF_INVOICE: Final = (
    "provider_invoice_id",
    "provider_hosted_invoice_url",
    "invoice_id",
    "hosted_invoice_url",
)
# contract 2.6; no other answer to a create has these
_OF_ACCEPTANCE: Final = frozenset({"invoice_id", "hosted_invoice_url", "payment"})
# contract 9.4: what the earlier variant can change
_EARLIER: Final = frozenset(
    {"description", "n_replicates", "name", "parameters", "sequences", "status", "target_id"}
)


class Experiments(Resource):
    """Ordering experiments and following them (contract 4.2)."""

    def estimate_cost(self, spec: ExperimentSpec) -> CostEstimate:
        """Price a specification: POST /experiments/cost-estimate (contract 2.5 and 4.2).

        Nothing is created, so the request may be repeated. The total is in US cents without VAT; it is None where the
        target has no self-service price.

        Raises:
            InvalidSpec: with every finding; nothing was sent.
            RequestRefused: the target is unknown (422), or the service knows more rules.

        Example:
            ```python
            print(usd(client.experiments.estimate_cost(spec).total_cents))
            ```
        """
        if not isinstance(spec, ExperimentSpec):
            raise InvalidSpec(
                [
                    f"spec: an ExperimentSpec is needed, not {type(spec).__name__}: ExperimentSpec.model_validate(...)"
                ]
            )
        InvalidSpec.check(check_spec(spec))
        request = Request(
            method="POST",
            path="/experiments/cost-estimate",
            json={"experiment_spec": spec.wire()},
            repeatable=True,
        )
        return self._sender.run(Operation(request=request, read=make_model_reader(CostEstimate)))

    def create(
        self, request: CreateRequest, *, payment_header: PaymentMethod | str | None = None
    ) -> Created | QuoteAcceptance:
        """Create an experiment, sent once: POST /experiments (contract 4.2).

        This may order: `skip_draft` submits it, `auto_accept_quote` accepts its price. A machine rail answers with a
        `QuoteAcceptance` (200), everything else with a `Created` (201). `payment_header` is the rail in
        `X-Service-Payment-Method`, equivalent to the field of the body.

        Raises:
            InvalidSpec: the specification breaks rules, with every finding; nothing was sent.
            InvalidRequest: the fields around it do, with every finding; nothing was sent.
            RequestRefused: with every message of the service; nothing was ordered.
            NotFound: the target is not in the catalog; nothing was ordered.
            PartialOrder: the service failed after it created the experiment: adopt it.
            OrderOutcomeUnknown: the answer was lost: search by the order key, never create again.
            ServiceUnavailable: there was no connection; nothing was sent.

        Example:
            ```python
            created = client.experiments.create(CreateRequest(experiment_spec=spec, name="egfr-1"))
            print(created.experiment_id)
            ```
        """
        return self._sender.run(_build_creation(request, payment_header))

    def list(
        self,
        *,
        status: ExperimentStatus | str | None = None,
        state: ExperimentStatus | str | None = None,
        experiment_type: ExperimentType | str | None = None,
        results_status: ResultsStatus | str | None = None,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        limit: int | None = None,
        offset: int | None = None,
    ) -> Page[ExperimentSummary]:
        """List one page, newest first: GET /experiments (contract 2.1, 4.1 and 4.2).

        Args:
            status: only those in this status; `state` is the service's other name for it.
            state: see `status`.
            experiment_type: only those of this type.
            results_status: only those with `none`, `partial` or `all` results; it joins the filter, because the service
                names no parameter of its own for it.
            filter: a condition of the filter language, see `prefect_assay.service.client.filters`.
            search: a text in names and codes.
            sort: 1 to 8 columns, such as `desc(created_at)`.
            where: tests of single fields, see `prefect_assay.service.client.parameters`.
            limit: 1 to 100 rows; the service's default is 50.
            offset: rows to skip.

        Example:
            ```python
            page = client.experiments.list(status="done", sort=f.desc("created_at"), limit=10)
            print(page.total, [row.code for row in page.items])
            ```
        """
        fields = {"status": status, "state": state, "experiment_type": experiment_type}
        condition = join_conditions(filter, results_status=snake_case(results_status))
        query = _EXPERIMENTS.select(condition, search, sort, where, fields=fields)
        return self._sender.run(query.build_page(limit, offset))

    def iterate(
        self,
        *,
        status: ExperimentStatus | str | None = None,
        state: ExperimentStatus | str | None = None,
        experiment_type: ExperimentType | str | None = None,
        results_status: ResultsStatus | str | None = None,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        page_size: int = PAGE_LIMIT_MAX,
    ) -> Iterator[ExperimentSummary]:
        """Yield all matching experiments, page by page; parameters as in `list` (contract 4.1 and 4.2).

        Example:
            ```python
            for row in client.experiments.iterate(search="egfr", results_status="all"):
                print(row.code, row.status)
            ```
        """
        fields = {"status": status, "state": state, "experiment_type": experiment_type}
        condition = join_conditions(filter, results_status=snake_case(results_status))
        return _EXPERIMENTS.select(condition, search, sort, where, fields=fields).iterate(
            self._sender, page_size
        )

    def list_states(self, ids: Iterable[str], *, search: str | None = None) -> dict[str, ExperimentSummary]:
        """Read the list's rows of many experiments, by the ids as you name them: GET /experiments (contract 2.1).

        A row shows `status` and `results_status`, which the contract does not show in the detail record. The filter
        `in(id,...)` asks for some forty in one request. An experiment without a row is left out: it is not visible yet,
        or not to this token. `search` is a text that the names of all of them contain, such as the campaign's id: what
        the filter does not show is searched for by it.

        Raises:
            RequestRefused: the service refuses the filter, and there is no `search`.
            UnexpectedAnswer: the row of one of the experiments has no status, or no results status.

        Example:
            ```python
            for experiment_id, row in client.experiments.list_states([experiment_id]).items():
                print(experiment_id, row.status)
            ```
        """
        return read_states(self._sender, ids, search)

    def get(self, experiment_id: str) -> Experiment:
        """Read one experiment in full: GET /experiments/{id} (contract 2.1 and 4.2).

        Raises:
            NotFound: it does not exist, or this token may not see it.

        Example:
            ```python
            print(client.experiments.get(experiment_id).status)
            ```
        """
        return self._sender.run(
            require_experiment(build_read(_path(experiment_id), Experiment), experiment_id)
        )

    def submit(self, experiment_id: str) -> Submitted:
        """Submit a draft, sent once: POST /experiments/{id}/submit (contract 3 and 4.2).

        It returns before the quote exists.

        Raises:
            Conflict: it is not a draft any more.
            OutcomeUnknown: the answer was lost: read the experiment.

        Example:
            ```python
            client.experiments.submit(experiment_id)
            ```
        """
        operation = build_act("POST", f"{_path(experiment_id)}/submit", Submitted, _READ_AGAIN)
        return self._sender.run(require_experiment(operation, experiment_id))

    def modify(
        self,
        experiment_id: str,
        *,
        name: str | Unset = UNSET,
        description: str | Unset = UNSET,
        target_id: str | Unset | None = UNSET,
        antigen_concentrations: Sequence[float] | Unset = UNSET,
        n_replicates: int | Unset = UNSET,
        parameters: Mapping[str, Any] | Unset = UNSET,
        sequences: Sequence[ProteinSequence | SequenceEntry] | Unset = UNSET,
        webhook_url: str | Unset | None = UNSET,
        status: ExperimentStatus | str | Unset = UNSET,
    ) -> Modified:
        """Change the fields that you name, sent once: PATCH /experiments/{id} (contract 4.2).

        None clears the target or the webhook. `sequences` replaces the whole list. Leave the webhook of an experiment
        that was ordered with a secret in place: the organization's webhook would get its updates under that secret
        (contract 6, rule 2). Only a service of the earlier variant (contract 9.4) can change `status`, so a POST is sent
        at once.

        Raises:
            InvalidRequest: with every finding; nothing was sent, or the earlier variant cannot change this.
            Conflict: the field cannot change any more in this status (contract 4.2, PATCH rule 1).
            OutcomeUnknown: the answer was lost: read the experiment.

        Example:
            ```python
            client.experiments.modify(experiment_id, name="egfr-1, second try", n_replicates=2)
            ```
        """
        designs = None if isinstance(sequences, Unset) else tuple(sequences)
        fields: dict[str, object] = {
            "name": name,
            "description": description,
            "target_id": target_id,
            "antigen_concentrations": antigen_concentrations
            if isinstance(antigen_concentrations, Unset)
            else [*antigen_concentrations],
            "n_replicates": n_replicates,
            "parameters": parameters if isinstance(parameters, Unset) else dict(parameters),
            "sequences": UNSET if designs is None else [encode_entry(design) for design in designs],
            "webhook_url": webhook_url,
            "status": status if isinstance(status, Unset) else str(snake_case(status)),
        }
        # an empty object when nothing is named: the body is required (contract 4.2)
        named = {field: value for field, value in fields.items() if value is not UNSET}
        check_changes(named, designs)
        return self._sender.run(_build_change(experiment_id, named, designs))

    def get_quote(self, experiment_id: str) -> Quote:
        """Read the quote: GET /experiments/{id}/quote (contract 2.7 and 4.2).

        Raises:
            NotReady: it does not exist yet; ask again later.

        Example:
            ```python
            print(client.experiments.get_quote(experiment_id).total)
            ```
        """
        operation = build_read(f"{_path(experiment_id)}/quote", Quote, NotReady)
        return self._sender.run(require_experiment(operation, experiment_id))

    def download_quote_pdf(self, experiment_id: str) -> bytes:
        """Fetch the quote as a PDF: GET /experiments/{id}/quote/pdf (published with contract 4.2).

        Raises:
            NotReady: the quote does not exist yet.
            UnexpectedAnswer: the answer is not a PDF.

        Example:
            ```python
            Path("quote.pdf").write_bytes(client.experiments.download_quote_pdf(experiment_id))
            ```
        """
        return download_pdf(self._sender, f"{_path(experiment_id)}/quote/pdf", absent=NotReady)

    def confirm_quote(
        self, experiment_id: str, purchase_order_number: str | None = None, notes: str | None = None
    ) -> QuoteAcceptance:
        """Accept the quote, sent once: POST /experiments/{id}/quote/confirm (contract 2.6 and 4.2).

        This orders: an invoice exists from then on.

        Raises:
            Conflict: it is accepted already, expired or rejected.
            OutcomeUnknown: the answer was lost: read the quote.

        Example:
            ```python
            acceptance = client.experiments.confirm_quote(experiment_id)
            print(acceptance.hosted_invoice_url)
            ```
        """
        operation = build_confirmation(f"{_path(experiment_id)}/quote", purchase_order_number, notes)
        return self._sender.run(require_experiment(operation, experiment_id))

    def get_invoice(self, experiment_id: str) -> ExperimentInvoice:
        """Read the status and page of the invoice: GET /experiments/{id}/invoice (contract 2.8 and 4.2).

        `invoices.find_for_experiment` also shows its amount.

        Raises:
            NotReady: the quote is not accepted yet; the message names the next call.

        Example:
            ```python
            print(client.experiments.get_invoice(experiment_id).provider_invoice_url)
            ```
        """
        operation = build_read(f"{_path(experiment_id)}/invoice", ExperimentInvoice, NotReady)
        return self._sender.run(require_experiment(operation, experiment_id))

    def iterate_results(self, experiment_id: str) -> Iterator[Result]:
        """Yield all results of one experiment: GET /experiments/{id}/results (contract 2.10 and 4.2).

        There are none before the lab has released any.

        Example:
            ```python
            for result in client.experiments.iterate_results(experiment_id):
                print(result.title, len(result.summary))
            ```
        """
        return _select_part(experiment_id, "results", Result).iterate(self._sender, PAGE_LIMIT_MAX)

    def iterate_sequences(self, experiment_id: str) -> Iterator[StoredSequence]:
        """Yield all sequences of one experiment: GET /experiments/{id}/sequences (published with contract 4.3).

        Example:
            ```python
            names = {row.id: row.name for row in client.experiments.iterate_sequences(experiment_id)}
            ```
        """
        return _select_part(experiment_id, "sequences", StoredSequence).iterate(self._sender, PAGE_LIMIT_MAX)

    def iterate_updates(self, experiment_id: str) -> Iterator[Update]:
        """Yield all updates of one experiment, oldest first: GET /experiments/{id}/updates (published with contract 2.9).

        Example:
            ```python
            for update in client.experiments.iterate_updates(experiment_id):
                print(update.timestamp, update.name)
            ```
        """
        return _select_part(experiment_id, "updates", Update).iterate(self._sender, PAGE_LIMIT_MAX)


def _path(experiment_id: str) -> str:
    return f"/experiments/{quote_segment(experiment_id)}"


def _select_part(experiment_id: str, name: str, row: type[Part]) -> ListQuery[Part]:
    return ListQuery(path=f"{_path(experiment_id)}/{name}", row=row, experiment_id=experiment_id)


def _build_creation(
    request: CreateRequest, payment_header: str | None
) -> Operation[Created | QuoteAcceptance]:
    check_creation(request, payment_header)
    secret = request.webhook_secret.get_secret_value() if request.webhook_secret else ""
    return Operation(
        request=Request(
            method="POST",
            path="/experiments",
            json=request.wire(),
            headers={PAYMENT_HEADER: str(payment_header)} if payment_header is not None else {},
            lost=OrderOutcomeUnknown,
            after_loss="Search for the experiment by its name before ordering again",
            secrets=(secret,),
            unless_local=only_for_a_lab(request.webhook_url),
        ),
        read=_read_creation,
        failed=_find_partial_order,
    )


def _read_creation(answer: Answer) -> Created | QuoteAcceptance:
    """The acceptance has an id of its own (contract 2.6 and 4.2, create rules 3, 4)."""
    body = answer.json()
    names = body.keys() if isinstance(body, dict) else set[str]()
    is_accepted = {"id", "status"} <= names and (
        answer.status == HTTPStatus.OK or "experiment_id" not in names
    )
    if names & _OF_ACCEPTANCE or is_accepted:
        return parse_model(QuoteAcceptance, body, answer)
    created = parse_model(Created, body, answer)
    if not created.experiment_id:
        raise make_shape_error(answer, "experiment_id: empty")
    return created


def _find_partial_order(answer: Answer) -> AssayError | None:
    """Contract 4.2, create rule 6: an error body that names the experiment, or the invoice, that it has made."""
    problem = problem_of(answer)
    stated = _read_text(problem.fields.get("experiment_id"))
    experiment_id = normalize_id(stated) if stated else None
    made = [name for name in _OF_INVOICE if _read_text(problem.fields.get(name))]
    if experiment_id is None and made:
        return OrderOutcomeUnknown(
            f"POST /experiments: the service answered {answer.status} after it made an invoice ({made[0]}): {problem.text}. "
            "Search for the experiment by its name before ordering again",
            request_id=problem.request_id,
        )
    if experiment_id is None:
        return None
    return PartialOrder(
        f"POST /experiments: the service answered {answer.status} after it created experiment {experiment_id}: "
        f"{problem.text}. The experiment exists; go on with it instead of ordering again",
        experiment_id=experiment_id,
        invoice_id=_read_text(problem.fields.get("provider_invoice_id")),
        hosted_invoice_url=_read_text(problem.fields.get("provider_hosted_invoice_url")),
        request_id=problem.request_id,
        status_code=answer.status,
    )


def _read_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _build_change(
    experiment_id: str,
    named: Mapping[str, object],
    designs: tuple[ProteinSequence | SequenceEntry, ...] | None,
) -> Operation[Modified]:
    path = _path(experiment_id)
    if "status" in named:
        by_post = replace(_build_post(path, named, designs), failed=_refuse_status)
        return require_record(by_post, experiment_id)

    def instead(answer: Answer) -> Operation[Modified] | None:
        if answer.status != HTTPStatus.METHOD_NOT_ALLOWED:
            return None
        return require_record(_build_post(path, named, designs), experiment_id)

    unless_local = only_for_a_lab(named.get("webhook_url"))
    patch = build_act("PATCH", path, Modified, _READ_AGAIN, named, unless_local=unless_local)
    return replace(require_record(patch, experiment_id), instead=instead)


def _build_post(
    path: str, named: Mapping[str, object], designs: tuple[ProteinSequence | SequenceEntry, ...] | None
) -> Operation[Modified]:
    InvalidRequest.check([*_list_unsupported(named, designs)])
    body = dict(named)
    if designs is not None:
        body["sequences"] = [{"fasta": f">{design.name}\n{design.aa_string}\n"} for design in designs]
    return build_act("POST", path, Modified, _READ_AGAIN, body)


def _refuse_status(answer: Answer) -> AssayError | None:
    if answer.status != HTTPStatus.METHOD_NOT_ALLOWED:
        return None
    return InvalidRequest(
        [
            "status: this service speaks the current interface, which cannot change it; use submit or confirm_quote"
        ]
    )


def _list_unsupported(
    named: Mapping[str, object], designs: tuple[ProteinSequence | SequenceEntry, ...] | None
) -> Iterator[str]:
    """Better no change than half of one."""
    for field in named.keys() - _EARLIER:
        yield f"{field}: this service speaks the earlier interface, which cannot change it"
    for design in designs or ():
        if design.control or design.metadata:
            yield (
                f"sequences[{design.name!r}]: this service speaks the earlier interface, which takes neither controls "
                "nor metadata"
            )
