"""Look at an experiment. Waits use the plain functions: they look often, and each task call would be a task run."""

from datetime import UTC, datetime, timedelta
from typing import assert_never

from prefect import task

from prefect_assay.blocks import AssayCredentials
from prefect_assay.client import AssayClient
from prefect_assay.models.experiment import Experiment
from prefect_assay.models.job import Outcome, OutcomeKind
from prefect_assay.runs.task_policy import READ
from prefect_assay.waiting import Decision, Failed, PastDeadline, Ready, decide

__all__ = ["EndOfWait", "check_experiment", "look", "outcome_of"]

EndOfWait = Ready | Failed | PastDeadline  # the decisions that end a wait


def look(client: AssayClient, experiment_id: str, patience: timedelta) -> tuple[Experiment, Decision]:
    """Read an experiment and decide. The deadline counts from the order, not from the run's start."""
    experiment = client.experiment(experiment_id)
    deadline = experiment.created_at + patience
    return experiment, decide(experiment.status, experiment.results_status, datetime.now(UTC), deadline)


def outcome_of(experiment: Experiment, decision: EndOfWait) -> Outcome:
    """The outcome of an experiment, from its last read."""
    match decision:
        case Ready():
            kind = OutcomeKind.DONE
        case Failed():
            kind = OutcomeKind.CANCELED
        case PastDeadline():
            kind = OutcomeKind.OVERDUE
        case never:
            assert_never(never)
    return Outcome(
        kind=kind,
        experiment_id=experiment.id,
        experiment_code=experiment.code,
        status=experiment.status,
        results_status=experiment.results_status,
        checked_at=datetime.now(UTC),
    )


@task(name="check-experiment", **READ)
def check_experiment(credentials: AssayCredentials, experiment_id: str) -> Experiment:
    """The experiment's detail record, for your own flows."""
    with credentials.get_client() as client:
        return client.experiment(experiment_id)
