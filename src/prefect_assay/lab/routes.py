"""The route table: which call answers which path, who may call it, and what its body looks like.

The web layer and `openapi.json` are both made from this table.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from prefect_assay.lab import acceptance, experiments, invoices, orders, payment, quotes, records, sequences
from prefect_assay.lab.core import Answer, Call
from prefect_assay.lab.schemas import (
    AddSequences,
    Body,
    ConfirmQuote,
    CreateExperiment,
    EstimateCost,
    ModifyExperiment,
    RejectQuote,
)

Access = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Route:
    """One call of the API. `path` is relative to /api/v1; `parameters` are those of a list."""

    method: str
    path: str
    handler: Callable[[Call], Answer]
    summary: str
    access: Access = "read"
    body: type[Body] | None = None
    parameters: tuple[str, ...] = ()
    statuses: tuple[int, ...] = (200,)


_PAGE: Final = ("limit", "offset", "filter", "search", "sort")

ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "/whoami", records.whoami, "Who the token is"),
    Route(
        "GET",
        "/targets",
        records.targets,
        "List catalog targets",
        parameters=(*_PAGE, "selfservice_only", "detailed", "show_conjugated", "name", "vendor_name"),
    ),
    Route("GET", "/targets/{target_id}", records.one_target, "Show a target"),
    Route(
        "GET",
        "/experiments",
        experiments.listing,
        "List experiments, newest first",
        parameters=(*_PAGE, "status", "state", "experiment_type", "results_status"),
    ),
    Route(
        "POST",
        "/experiments",
        orders.create,
        "Create an experiment",
        "write",
        CreateExperiment,
        statuses=(201, 200),
    ),
    # Reading permission is enough (contract 4.2, cost estimate rules).
    Route("POST", "/experiments/cost-estimate", orders.estimate, "Estimate the cost", "read", EstimateCost),
    Route("GET", "/experiments/{experiment_id}", experiments.detail, "Show an experiment"),
    Route(
        "PATCH",
        "/experiments/{experiment_id}",
        experiments.modify,
        "Change an experiment",
        "write",
        ModifyExperiment,
    ),
    Route("POST", "/experiments/{experiment_id}/submit", experiments.submit, "Submit a draft", "write"),
    Route("GET", "/experiments/{experiment_id}/quote", quotes.of_experiment, "Show the quote"),
    Route(
        "POST",
        "/experiments/{experiment_id}/quote/confirm",
        acceptance.confirm_of_experiment,
        "Accept the quote",
        "write",
        ConfirmQuote,
    ),
    Route("GET", "/experiments/{experiment_id}/invoice", invoices.of_experiment, "Show the invoice"),
    Route(
        "GET",
        "/experiments/{experiment_id}/results",
        records.results_of_experiment,
        "Results of an experiment",
        parameters=_PAGE,
    ),
    Route(
        "GET",
        "/experiments/{experiment_id}/sequences",
        sequences.of_experiment,
        "Sequences of an experiment",
        parameters=_PAGE,
    ),
    Route(
        "GET",
        "/experiments/{experiment_id}/updates",
        records.updates_of_experiment,
        "Updates of an experiment, oldest first",
        parameters=_PAGE,
    ),
    Route("GET", "/sequences", sequences.listing, "List sequences", parameters=(*_PAGE, "experiment_id")),
    Route(
        "POST",
        "/sequences",
        sequences.add,
        "Add sequences to a draft",
        "write",
        AddSequences,
        statuses=(201,),
    ),
    Route("GET", "/sequences/{sequence_id}", sequences.detail, "Show a sequence"),
    Route("GET", "/results", records.results, "List results", parameters=_PAGE),
    Route("GET", "/results/{result_id}", records.one_result, "Show a result"),
    Route("GET", "/updates", records.updates, "The updates feed, newest first", parameters=_PAGE),
    Route("GET", "/quotes", quotes.listing, "List quotes", parameters=(*_PAGE, "status")),
    Route("GET", "/quotes/{quote_id}", quotes.detail, "Show a quote"),
    Route("POST", "/quotes/{quote_id}/confirm", acceptance.confirm, "Accept a quote", "write", ConfirmQuote),
    Route(
        "POST", "/quotes/{quote_id}/reject", acceptance.reject_by_id, "Reject a quote", "write", RejectQuote
    ),
    Route("GET", "/invoices", invoices.listing, "List invoices", parameters=(*_PAGE, "status")),
    Route("GET", "/invoices/{invoice_id}", invoices.detail, "Show an invoice"),
    Route(
        "POST",
        "/invoices/{invoice_id}/pay",
        payment.pay,
        "Pay an invoice by machine",
        "write",
        statuses=(200, 402),
    ),
)
