"""Experiments and their sequences (contract 4.2 and 4.3)."""

from typing import Final

from prefect_assay.lab.experiments import experiments, orders, records, sequences
from prefect_assay.lab.requests.schemas import AddSequences, CreateExperiment, EstimateCost, ModifyExperiment
from prefect_assay.lab.routing.route import Route, listed, shown
from prefect_assay.lab.shapes.billing import ConfirmedQuote
from prefect_assay.lab.shapes.costs import CostEstimate
from prefect_assay.lab.shapes.errors import Error, OrderError, SubmitError
from prefect_assay.lab.shapes.experiments import (
    CreatedExperiment,
    Experiment,
    ExperimentPage,
    ModifiedExperiment,
    SubmittedExperiment,
)
from prefect_assay.lab.shapes.records import UpdatePage
from prefect_assay.lab.shapes.results import ResultPage
from prefect_assay.lab.shapes.sequences import AddedSequences, Sequence, SequencePage

_ONE: Final = "/experiments/{experiment_id}"

EXPERIMENTS: Final = (
    listed(
        "/experiments",
        experiments.listing,
        "List experiments, newest first",
        "experiment",
        ExperimentPage,
        experiments.LISTING,
    ),
    Route(
        "POST",
        "/experiments",
        orders.create,
        "Create an experiment",
        "create",
        "experiment",
        CreateExperiment,
        answers={201: CreatedExperiment, 200: ConfirmedQuote},
        refuses={404: Error, 422: Error, 500: OrderError},
        headers=("X-Service-Payment-Method",),
        description="A draft, unless `skip_draft` submits it at once or `auto_accept_quote` also accepts its"
        " price. With `auto_accept_quote` on a machine rail the answer is 200, and `payment` points to the pay"
        " call; otherwise it is 201. The rail is named in `payment.method` or in the header"
        " `X-Service-Payment-Method`; both must agree. All findings of a bad order come in one answer."
        " `auto_accept_quote` also needs `quote:update`.",
    ),
    # Reading permission is enough (contract 4.2, cost estimate rules).
    Route(
        "POST",
        "/experiments/cost-estimate",
        orders.estimate,
        "Estimate the cost",
        "read",
        "experiment",
        EstimateCost,
        answers={200: CostEstimate},
        refuses={422: Error},
        description="Creates nothing. A target without self-service pricing gives an incomplete estimate, which"
        " is no price. 422 for a body off its schema and for an unknown target, 400 for rules it breaks.",
    ),
    shown(_ONE, experiments.detail, "Show an experiment", "experiment", Experiment),
    Route(
        "PATCH",
        _ONE,
        experiments.modify,
        "Change an experiment",
        "update",
        "experiment",
        ModifyExperiment,
        answers={200: ModifiedExperiment},
        refuses={409: Error, 422: Error},
        description="Every field is optional; send `{}` to change nothing. Most fields change in `draft` and"
        " `in_review` only (409 otherwise), `webhook_url` always. `sequences` replaces the whole list.",
    ),
    Route(
        "POST",
        f"{_ONE}/submit",
        experiments.submit,
        "Submit a draft",
        "update",
        "experiment",
        answers={200: SubmittedExperiment},
        refuses={400: Error, 409: SubmitError},
        description="Takes no body, and returns before the quote exists.",
    ),
    listed(
        f"{_ONE}/results",
        records.results_of_experiment,
        "Results of an experiment",
        "result",
        ResultPage,
        records.RESULTS_IN_ORDER,
        description="Whole records; an empty list until something is released.",
    ),
    listed(
        f"{_ONE}/sequences",
        sequences.of_experiment,
        "Sequences of an experiment",
        "sequence",
        SequencePage,
        sequences.IN_ORDER,
    ),
    listed(
        f"{_ONE}/updates",
        records.updates_of_experiment,
        "Updates of an experiment, oldest first",
        "update",
        UpdatePage,
        records.UPDATES_IN_ORDER,
    ),
)

SEQUENCES: Final = (
    listed("/sequences", sequences.listing, "List sequences", "sequence", SequencePage, sequences.LISTING),
    Route(
        "POST",
        "/sequences",
        sequences.add,
        "Add sequences to a draft",
        "create",
        "sequence",
        AddSequences,
        answers={201: AddedSequences},
        refuses={404: Error, 409: Error, 422: Error},
        description="Only a draft takes sequences (409 otherwise).",
    ),
    shown("/sequences/{sequence_id}", sequences.detail, "Show a sequence", "sequence", Sequence),
)
