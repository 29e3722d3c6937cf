"""Read designs, plan a campaign, and look at an experiment."""

from prefect import task

from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.blocks import AssayCredentials
from prefect_assay.blocks.campaign_plan import split_into_experiments
from prefect_assay.designs.options import AS_WRITTEN, ReadingOptions
from prefect_assay.designs.read import is_pasted, read_sequences
from prefect_assay.service.models.experiment import Experiment
from prefect_assay.service.models.sequences import Sequences
from prefect_assay.service.models.spec import Assay, Target
from prefect_assay.tasks.retry_policies import ONCE, READ


@task(name="read-designs", **ONCE)
def read_designs(source: str, reading: ReadingOptions = AS_WRITTEN) -> Sequences:
    """Read and check designs from a path, an s3:// URI or pasted text.

    Args:
        source: the path, the address or the text.
        reading: columns of a table, how FASTA records are named, and what pasted text is called in messages and
            artifacts.

    Raises:
        InvalidSequences: with every finding, each naming file, line or sequence.
    """
    if reading.designs_name and is_pasted(source):
        return read_sequences(reading.designs_name, text=source, reading=reading)
    return read_sequences(source, reading=reading)


@task(name="plan-campaign", **ONCE)
def plan_campaign(
    sequences: Sequences,
    assay: Assay,
    target: Target | None,
    *,
    campaign_id: str | None,
    per_experiment: int,
    reading: ReadingOptions = AS_WRITTEN,
) -> Plan:
    """Split designs into experiments and check every specification locally, before anything is sent.

    The default campaign id is a digest of designs and assay, so the same designs are ordered once. To measure them
    again, choose another campaign id.

    Raises:
        InvalidSequences: designs contain the target, and `reading.as_is` is not set.
        InvalidSpec: with every finding of every experiment.
    """
    return split_into_experiments(
        sequences, assay, target, campaign_id=campaign_id, per_experiment=per_experiment, reading=reading
    )


@task(name="read-experiment", task_run_name="read-experiment-{experiment_id}", **READ)
def read_experiment(credentials: AssayCredentials, experiment_id: str) -> Experiment:
    """Read the experiment's detail record, for your own flows."""
    with credentials.get_client() as client:
        return client.experiments.get(experiment_id)
