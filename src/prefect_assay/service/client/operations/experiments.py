"""Operations on experiments (contract 4.2): price, create, list, read, submit and modify.

`modify` is PATCH, and the POST of the earlier interface variant (contract 9.4). POST is tried only after a 405: the path
exists and the method does not, so nothing was done. Both variants answer 404 for an experiment that does not exist.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final, Unpack

from prefect_assay.errors import AssayError, InvalidRequest, InvalidSpec, OrderOutcomeUnknown, PartialOrder
from prefect_assay.service.client.answers import about_experiment, about_record
from prefect_assay.service.client.checks import check_changes, check_creation, only_for_a_lab
from prefect_assay.service.client.decoding import (
    get,
    model,
    off_shape,
    once,
    parsed,
    unwrapped,
)
from prefect_assay.service.client.http.failures import problem_of
from prefect_assay.service.client.http.pagination import Pager
from prefect_assay.service.client.http.request import (
    UNSET,
    Answer,
    Operation,
    Request,
    Unset,
    segment,
)
from prefect_assay.service.client.lists import (
    Listing,
    PageOptions,
    WalkOptions,
    joined,
)
from prefect_assay.service.client.operations.sequences import entry
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.billing import CostEstimate
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
from prefect_assay.service.models.sequences import ProteinSequence, SequenceEntry
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.spec_rules import check_spec
from prefect_assay.service.models.vocabulary import (
    ExperimentStatus,
    ExperimentType,
    PaymentMethod,
    ResultsStatus,
    snake_case,
)

PAYMENT_HEADER: Final = "X-Service-Payment-Method"  # contract 4.2, create rule 2
_READ_AGAIN: Final = "Read the experiment before anything else"
_EXPERIMENTS: Final = Listing("/experiments", ExperimentSummary)
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


def estimate(spec: ExperimentSpec) -> Operation[CostEstimate]:
    """POST /experiments/cost-estimate. Creates nothing, so it may be repeated.

    Raises:
        InvalidSpec: with every finding; nothing was sent.
        RequestRefused: the target is unknown (422), or the service knows more rules.
    """
    if not isinstance(spec, ExperimentSpec):
        raise InvalidSpec(
            [
                f"spec: an ExperimentSpec is needed, not {type(spec).__name__}: ExperimentSpec.model_validate(...)"
            ]
        )
    InvalidSpec.check(check_spec(spec))
    return Operation(
        request=Request(
            method="POST",
            path="/experiments/cost-estimate",
            json={"experiment_spec": spec.wire()},
            repeatable=True,
        ),
        read=model(CostEstimate),
    )


def create(
    request: CreateRequest, *, payment_header: PaymentMethod | str | None = None
) -> Operation[Created | QuoteAcceptance]:
    """POST /experiments, once. 201 gives a `Created`, 200 (machine rail) a `QuoteAcceptance`.

    `payment_header` is the rail in `X-Service-Payment-Method`, equivalent to the field of the body.

    Raises:
        InvalidSpec: the specification breaks rules, with every finding; nothing was sent.
        InvalidRequest: the fields around it do, with every finding; nothing was sent.
        RequestRefused: with every message of the service; nothing was ordered.
        NotFound: the target is not in the catalog; nothing was ordered.
        PartialOrder: the service failed after it created the experiment: adopt it.
        OrderOutcomeUnknown: the answer was lost: search by the order key, never create again.
        ServiceUnavailable: there was no connection; nothing was sent.
    """
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
        read=_creation,
        failed=_partial_order,
    )


def _creation(answer: Answer) -> Created | QuoteAcceptance:
    """The acceptance has an id of its own (contract 2.6 and 4.2, create rules 3, 4)."""
    body = unwrapped(answer.json(), Created, QuoteAcceptance)
    names = body.keys() if isinstance(body, dict) else set[str]()
    accepted = {"id", "status"} <= names and (answer.status == HTTPStatus.OK or "experiment_id" not in names)
    if names & _OF_ACCEPTANCE or accepted:
        return parsed(QuoteAcceptance, body, answer)
    created = parsed(Created, body, answer)
    if not created.experiment_id:
        raise off_shape(answer, "experiment_id: empty")
    return created


def _partial_order(answer: Answer) -> AssayError | None:
    """Contract 4.2, create rule 6: an error body that names the experiment, or the invoice, that it has made."""
    problem = problem_of(answer)
    stated = _text(problem.fields.get("experiment_id"))
    experiment_id = normalize_id(stated) if stated else None
    made = [name for name in _OF_INVOICE if _text(problem.fields.get(name))]
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
        invoice_id=_text(problem.fields.get("provider_invoice_id")),
        hosted_invoice_url=_text(problem.fields.get("provider_hosted_invoice_url")),
        request_id=problem.request_id,
        status_code=answer.status,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def experiments(
    *,
    status: ExperimentStatus | str | None = None,
    state: str | None = None,
    experiment_type: ExperimentType | str | None = None,
    results_status: ResultsStatus | str | None = None,
    **options: Unpack[PageOptions],
) -> Operation[Page[ExperimentSummary]]:
    """GET /experiments: one page, newest first. `search` looks into names and codes.

    `results_status` joins the filter: the service names no parameter of its own for it (contract 4.1 and 4.2).
    """
    condition = joined(options.get("filter"), results_status=results_status)
    return _EXPERIMENTS.page(
        {**options, "filter": condition}, status=status, state=state, experiment_type=experiment_type
    )


def iter_experiments(
    *,
    status: ExperimentStatus | str | None = None,
    state: str | None = None,
    experiment_type: ExperimentType | str | None = None,
    results_status: ResultsStatus | str | None = None,
    **options: Unpack[WalkOptions],
) -> Pager[ExperimentSummary]:
    """All matching experiments."""
    condition = joined(options.get("filter"), results_status=results_status)
    return _EXPERIMENTS.rows(
        {**options, "filter": condition}, status=status, state=state, experiment_type=experiment_type
    )


def experiment(experiment_id: str) -> Operation[Experiment]:
    """GET /experiments/{id}: the detail record."""
    return about_experiment(get(f"/experiments/{segment(experiment_id)}", Experiment), experiment_id)


def submit(experiment_id: str) -> Operation[Submitted]:
    """POST /experiments/{id}/submit, once. Returns before the quote exists (contract 3).

    Raises:
        Conflict: it is no draft any more.
        OutcomeUnknown: the answer was lost: read the experiment.
    """
    operation = once("POST", f"/experiments/{segment(experiment_id)}/submit", Submitted, _READ_AGAIN)
    return about_experiment(operation, experiment_id)


def modify(
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
) -> Operation[Modified]:
    """PATCH /experiments/{id}, once; only the fields that are named. None clears the target or the webhook.

    `sequences` replaces the whole list. Leave the webhook of an experiment that was ordered with a secret in place: the
    organisation's webhook would get its updates under that secret (contract 6, rule 2). Only a service of the earlier
    variant can change `status`, so a POST is sent at once.

    Raises:
        InvalidRequest: with every finding; nothing was sent, or the earlier variant cannot change this.
        Conflict: the field cannot change any more in this status (contract 4.2, PATCH rule 1).
        OutcomeUnknown: the answer was lost: read the experiment.
    """
    designs = None if isinstance(sequences, Unset) else tuple(sequences)
    fields: dict[str, object] = {
        "name": name,
        "description": description,
        "target_id": target_id,
        "antigen_concentrations": antigen_concentrations
        if isinstance(antigen_concentrations, Unset)
        else list(antigen_concentrations),
        "n_replicates": n_replicates,
        "parameters": parameters if isinstance(parameters, Unset) else dict(parameters),
        "sequences": UNSET if designs is None else [entry(d) for d in designs],
        "webhook_url": webhook_url,
        "status": status if isinstance(status, Unset) else str(snake_case(status)),
    }
    # an empty object when nothing is named: the body is required (contract 4.2)
    named = {field: value for field, value in fields.items() if value is not UNSET}
    check_changes(named, designs)

    path = f"/experiments/{segment(experiment_id)}"
    if "status" in named:
        by_post = replace(_by_post(path, named, designs), failed=_not_by_post)
        return about_record(by_post, experiment_id)

    def instead(answer: Answer) -> Operation[Modified] | None:
        if answer.status != HTTPStatus.METHOD_NOT_ALLOWED:
            return None
        return about_record(_by_post(path, named, designs), experiment_id)

    only_local = only_for_a_lab(named.get("webhook_url"))
    patch = once("PATCH", path, Modified, _READ_AGAIN, named, unless_local=only_local)
    return replace(about_record(patch, experiment_id), instead=instead)


def _by_post(
    path: str, named: Mapping[str, object], designs: tuple[ProteinSequence | SequenceEntry, ...] | None
) -> Operation[Modified]:
    InvalidRequest.check(list(_unsupported(named, designs)))
    body = dict(named)
    if designs is not None:
        body["sequences"] = [{"fasta": f">{design.name}\n{design.aa_string}\n"} for design in designs]
    return once("POST", path, Modified, _READ_AGAIN, body)


def _not_by_post(answer: Answer) -> AssayError | None:
    if answer.status != HTTPStatus.METHOD_NOT_ALLOWED:
        return None
    return InvalidRequest(
        [
            "status: this service speaks the current interface, which cannot change it; use submit or confirm_quote"
        ]
    )


def _unsupported(
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
