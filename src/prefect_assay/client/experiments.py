"""Operations on experiments: price, create, list, read, submit, modify (contract 4.2)."""

from collections.abc import Mapping, Sequence
from enum import Enum
from http import HTTPStatus
from typing import Any, Final

from prefect_assay.client.filters import Filter, Ordering
from prefect_assay.client.problem import problem_of
from prefect_assay.client.read import model, off_shape, page, parsed
from prefect_assay.client.request import Answer, Operation, Request, query, segment
from prefect_assay.client.walking import Pager
from prefect_assay.errors import AssayError, OrderOutcomeUnknown, OutcomeUnknown, PartialOrder
from prefect_assay.models.estimate import CostEstimate
from prefect_assay.models.experiment import (
    Created,
    CreateRequest,
    Experiment,
    ExperimentSummary,
    Modified,
    QuoteAcceptance,
    Submitted,
)
from prefect_assay.models.page import Page
from prefect_assay.models.sequences import Sequence as Design
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import PAGE_LIMIT_MAX, ExperimentStatus

_READ_AGAIN: Final = "Read the experiment before anything else"


class Unset(Enum):
    """A field of a modification that is not named; None would clear it."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET


def estimate(spec: ExperimentSpec) -> Operation[CostEstimate]:
    """POST /experiments/cost-estimate. Creates nothing, so it may be repeated.

    Raises:
        RequestRefused: the specification is invalid, or the target is unknown (422).
    """
    return Operation(
        request=Request(
            method="POST",
            path="/experiments/cost-estimate",
            json={"experiment_spec": spec.wire()},
            repeatable=True,
        ),
        read=model(CostEstimate),
    )


def create(request: CreateRequest) -> Operation[Created | QuoteAcceptance]:
    """POST /experiments, once. 201 gives a `Created`, 200 (machine rail) a `QuoteAcceptance`.

    Raises:
        RequestRefused: with every message of the service; nothing was ordered.
        NotFound: the target is not in the catalog; nothing was ordered.
        PartialOrder: the service failed after it created the experiment: adopt it.
        OrderOutcomeUnknown: the answer was lost: search by the order key, never create again.
        ServiceUnavailable: there was no connection; nothing was sent.
    """
    secret = request.webhook_secret.get_secret_value() if request.webhook_secret else ""
    return Operation(
        request=Request(
            method="POST",
            path="/experiments",
            json=request.wire(),
            lost=OrderOutcomeUnknown,
            after_loss="Search for the experiment by its name before ordering again",
            secrets=(secret,),
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
    filter: Filter | str | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Ordering | str | None = None,
    status: ExperimentStatus | str | None = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Operation[Page[ExperimentSummary]]:
    """GET /experiments: one page, newest first. `search` looks into names and codes."""
    params = query(filter=filter, search=search, sort=sort, status=status, limit=limit, offset=offset)
    return Operation(
        request=Request(method="GET", path="/experiments", params=params, repeatable=True),
        read=page(ExperimentSummary),
    )


def iter_experiments(
    *,
    filter: Filter | str | None = None,  # noqa: A002 - the contract's parameter name
    search: str | None = None,
    sort: Ordering | str | None = None,
    status: ExperimentStatus | str | None = None,
    page_size: int = PAGE_LIMIT_MAX,
) -> Pager[ExperimentSummary]:
    """All matching experiments, page by page as they are asked for."""
    return Pager(
        lambda limit, offset: experiments(
            filter=filter, search=search, sort=sort, status=status, limit=limit, offset=offset
        ),
        lambda experiment: experiment.id,
        limit=page_size,
    )


def experiment(experiment_id: str) -> Operation[Experiment]:
    """GET /experiments/{id}: the detail record.

    Raises:
        NotFound: it does not exist, or this token may not see it.
    """
    return Operation(
        request=Request(method="GET", path=f"/experiments/{segment(experiment_id)}", repeatable=True),
        read=model(Experiment),
    )


def submit(experiment_id: str) -> Operation[Submitted]:
    """POST /experiments/{id}/submit, once. Returns before the quote exists (contract 3).

    Raises:
        Conflict: it is no draft any more.
        OutcomeUnknown: the answer was lost: read the experiment.
    """
    return Operation(
        request=Request(
            method="POST",
            path=f"/experiments/{segment(experiment_id)}/submit",
            lost=OutcomeUnknown,
            after_loss=_READ_AGAIN,
        ),
        read=model(Submitted),
    )


def modify(
    experiment_id: str,
    *,
    name: str | Unset = UNSET,
    description: str | Unset = UNSET,
    target_id: str | Unset | None = UNSET,
    antigen_concentrations: Sequence[float] | Unset = UNSET,
    n_replicates: int | Unset = UNSET,
    parameters: Mapping[str, Any] | Unset = UNSET,
    sequences: Sequence[Design] | Unset = UNSET,
    webhook_url: str | Unset | None = UNSET,
) -> Operation[Modified]:
    """PATCH /experiments/{id}, once; only the fields that are named. None clears the target or the webhook.

    `sequences` replaces the whole list.

    Raises:
        Conflict: the field cannot change any more in this status (contract 4.2, PATCH rule 1).
        OutcomeUnknown: the answer was lost: read the experiment.
    """
    fields: dict[str, object] = {
        "name": name,
        "description": description,
        "target_id": target_id,
        "antigen_concentrations": antigen_concentrations
        if isinstance(antigen_concentrations, Unset)
        else list(antigen_concentrations),
        "n_replicates": n_replicates,
        "parameters": parameters if isinstance(parameters, Unset) else dict(parameters),
        "sequences": sequences if isinstance(sequences, Unset) else [entry(s) for s in sequences],
        "webhook_url": webhook_url,
    }
    return Operation(
        request=Request(
            method="PATCH",
            path=f"/experiments/{segment(experiment_id)}",
            # an empty object when nothing is named: the body is required (contract 4.2)
            json={field: value for field, value in fields.items() if value is not UNSET},
            lost=OutcomeUnknown,
            after_loss=_READ_AGAIN,
        ),
        read=model(Modified),
    )


def entry(design: Design) -> dict[str, object]:
    """A sequence as the list forms take it (contract 2.4)."""
    fields: dict[str, object] = {
        "name": design.name,
        "aa_string": design.aa_string,
        "control": design.control,
    }
    return fields | ({"metadata": design.metadata} if design.metadata else {})
