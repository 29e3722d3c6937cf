"""Read designs, plan a campaign, and look at an experiment."""

from prefect import task

from prefect_assay.archive.campaign_plan import Plan, PlannedExperiment
from prefect_assay.blocks import AssayCredentials
from prefect_assay.designs import (
    campaign_digest,
    check_spec,
    is_pasted,
    kept_attributes,
    order_lines,
    read_sequences,
    split_into_batches,
)
from prefect_assay.designs.options import AS_WRITTEN, ReadingOptions
from prefect_assay.errors import InvalidSpec
from prefect_assay.orders.identity import order_key
from prefect_assay.service.models.experiment import Experiment
from prefect_assay.service.models.sequences import Sequences
from prefect_assay.service.models.spec import Assay, ExperimentSpec, Target
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
) -> Plan:
    """Split designs into experiments and check every specification locally, before anything is sent.

    The default campaign id is a digest of designs and assay, so the same designs are ordered once. To measure them
    again, choose another campaign id.

    Raises:
        InvalidSpec: with every finding of every experiment.
    """
    target_id = target.id if target else None
    # By the target's id, so that its name and its catalog number give the same campaign.
    named = assay.model_copy(update={"target": target_id})
    campaign = campaign_id or f"c-{campaign_digest(sequences, named)}"
    planned = []
    findings: list[str] = []
    for batch in split_into_batches(sequences, assay, per_experiment):
        spec = ExperimentSpec.of(assay, batch, target_id)
        findings += [f"experiment {batch.index + 1} of {batch.count}: {f}" for f in check_spec(spec)]
        planned.append(
            PlannedExperiment(
                order_key=order_key(campaign, batch.index, spec), batch_index=batch.index, spec=spec
            )
        )
    InvalidSpec.check(findings)
    attributes = kept_attributes(sequences.items)
    return Plan(
        campaign_id=campaign,
        source=sequences.source,
        assay=named,
        target_name=target.name if target else None,
        experiments=tuple(planned),
        duplicates=sequences.duplicates,
        reading=order_lines(sequences),
        doubts=sequences.report.doubts,
        attributes=attributes.by_design,
        attributes_left_out=attributes.left_out,
    )


@task(name="check-experiment", task_run_name="check-experiment-{experiment_id}", **READ)
def check_experiment(credentials: AssayCredentials, experiment_id: str) -> Experiment:
    """Read the experiment's detail record, for your own flows."""
    with credentials.get_client() as client:
        return client.experiments.get(experiment_id)
