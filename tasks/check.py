"""Look at an experiment. Plain functions, because a wait looks often and must not make a task run each time."""

from datetime import UTC, datetime, timedelta

from prefect import task

from prefect_assay.blocks import AssayCredentials
from prefect_assay.client import AssayClient
from prefect_assay.models.experiment import Experiment
from prefect_assay.models.job import Outcome, OutcomeKind
from prefect_assay.runs.task_policy import READ
from prefect_assay.waiting import Decision, Failed, Overdue, Ready, decide


def look(client: AssayClient, experiment_id: str, patience: timedelta) -> tuple[Experiment, Decision]:
    """Read an experiment and decide. The deadline counts from the order, not from the run."""
    experiment = client.experiment(experiment_id)
    deadline = experiment.created_at + patience
    return experiment, decide(experiment.status, experiment.results_status, datetime.now(UTC), deadline)


def outcome_of(experiment: Experiment, decision: Decision) -> Outcome:
    """The final word on an experiment, as the service last told it."""
    match decision:
        case Ready():
            kind = OutcomeKind.DONE
        case Failed():
            kind = OutcomeKind.CANCELED
        case Overdue():
            kind = OutcomeKind.OVERDUE
        case _:
            raise ValueError(f"experiment {experiment.code} is still going on: {decision}")
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
    """The experiment's detail record, for flows of your own."""
    with credentials.get_client() as client:
        return client.experiment(experiment_id)
