"""Read designs and plan a campaign."""

from prefect import task

from prefect_assay.designs import campaign_digest, check_spec, read_sequences, split
from prefect_assay.errors import InvalidSpec
from prefect_assay.models.plan import Plan, PlannedExperiment
from prefect_assay.models.sequences import Sequences
from prefect_assay.models.spec import Assay, ExperimentSpec
from prefect_assay.models.target import Target
from prefect_assay.ordering import order_key
from prefect_assay.runs.task_policy import ONCE

__all__ = ["plan_campaign", "read_designs"]


@task(name="read-designs", **ONCE)
def read_designs(source: str) -> Sequences:
    """Read and check designs from a path, an s3:// URI or pasted FASTA text.

    Raises:
        InvalidSequences: with every finding, each naming file, line or sequence.
    """
    return read_sequences(source)


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
    for batch in split(sequences, assay, per_experiment):
        spec = ExperimentSpec.of(assay, batch, target_id)
        findings += [f"experiment {batch.index + 1} of {batch.count}: {f}" for f in check_spec(spec)]
        planned.append(
            PlannedExperiment(
                order_key=order_key(campaign, batch.index, spec), batch_index=batch.index, spec=spec
            )
        )
    InvalidSpec.check(findings)
    return Plan(
        campaign_id=campaign,
        source=sequences.source,
        assay=named,
        target_name=target.name if target else None,
        experiments=tuple(planned),
        duplicates=sequences.duplicates,
    )
