"""Operations on experiments: price, create, list, read, submit (contract 4.2). Changing stands in `modifying`."""

from functools import partial
from http import HTTPStatus
from typing import Final, Unpack

from prefect_assay.client.checks import check_creation, check_estimate, only_for_a_lab
from prefect_assay.client.decoding import get, model, off_shape, once, parsed
from prefect_assay.client.http.pagination import Pager
from prefect_assay.client.http.problem import problem_of
from prefect_assay.client.http.request import Answer, Operation, Request, segment
from prefect_assay.client.lists import PageOptions, WalkOptions, listed, walked
from prefect_assay.errors import AssayError, OrderOutcomeUnknown, PartialOrder
from prefect_assay.models.estimate import CostEstimate
from prefect_assay.models.experiment import (
    Created,
    CreateRequest,
    Experiment,
    ExperimentSummary,
    QuoteAcceptance,
    Submitted,
)
from prefect_assay.models.page import Page
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import ExperimentStatus, ExperimentType, PaymentMethod, ResultsStatus

PAYMENT_HEADER: Final = "X-Service-Payment-Method"  # contract 4.2, create rule 2
_READ_AGAIN: Final = "Read the experiment before anything else"


def estimate(spec: ExperimentSpec) -> Operation[CostEstimate]:
    """POST /experiments/cost-estimate. Creates nothing, so it may be repeated.

    Raises:
        InvalidSpec: with every finding; nothing was sent.
        RequestRefused: the target is unknown (422), or the service knows more rules.
    """
    check_estimate(spec)
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

    Args:
        request: what to order.
        payment_header: the rail in `X-Service-Payment-Method`, which means the same as the field of the body.

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
    """Which of the two it is: the acceptance has an id of its own (contract 2.6 and 4.2, create rules 3, 4)."""
    body = answer.json()
    names = body if isinstance(body, dict) else {}
    if "id" in names and (answer.status == HTTPStatus.OK or "experiment_id" not in names):
        return parsed(QuoteAcceptance, body, answer)
    created = parsed(Created, body, answer)
    if not created.experiment_id:
        raise off_shape(answer, "experiment_id: empty")
    return created


def _partial_order(answer: Answer) -> AssayError | None:
    """Contract 4.2, create rule 6: an error body that names the experiment it has made."""
    problem = problem_of(answer)
    experiment_id = problem.fields.get("experiment_id")
    if not isinstance(experiment_id, str) or not experiment_id:
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
    **chosen: Unpack[PageOptions],
) -> Operation[Page[ExperimentSummary]]:
    """GET /experiments: one page, newest first. `search` looks into names and codes."""
    return listed(
        "/experiments",
        ExperimentSummary,
        {
            "status": status,
            "state": state,
            "experiment_type": experiment_type,
            "results_status": results_status,
        },
        **chosen,
    )


def iter_experiments(
    *,
    status: ExperimentStatus | str | None = None,
    state: str | None = None,
    experiment_type: ExperimentType | str | None = None,
    results_status: ResultsStatus | str | None = None,
    **chosen: Unpack[WalkOptions],
) -> Pager[ExperimentSummary]:
    """All matching experiments, page by page as they are asked for."""
    return walked(
        partial(
            experiments,
            status=status,
            state=state,
            experiment_type=experiment_type,
            results_status=results_status,
        ),
        **chosen,
    )


def experiment(experiment_id: str) -> Operation[Experiment]:
    """GET /experiments/{id}: the detail record.

    Raises:
        NotFound: it does not exist, or this token may not see it.
    """
    return get(f"/experiments/{segment(experiment_id)}", Experiment)


def submit(experiment_id: str) -> Operation[Submitted]:
    """POST /experiments/{id}/submit, once. Returns before the quote exists (contract 3).

    Raises:
        Conflict: it is no draft any more.
        OutcomeUnknown: the answer was lost: read the experiment.
    """
    return once("POST", f"/experiments/{segment(experiment_id)}/submit", Submitted, _READ_AGAIN)
