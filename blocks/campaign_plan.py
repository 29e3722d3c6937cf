"""The plan of a campaign from checked designs, for flows, commands and the job block. Pure."""

from prefect_assay.archive.campaign_plan import Plan, PlannedExperiment
from prefect_assay.designs.campaign import campaign_digest, kept_attributes, split_into_batches
from prefect_assay.designs.chains import refuse_target
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.report import order_lines
from prefect_assay.errors import InvalidSpec
from prefect_assay.orders.identity import order_key
from prefect_assay.service.models.sequences import Sequences
from prefect_assay.service.models.spec import Assay, ExperimentSpec, Target
from prefect_assay.service.models.spec_rules import check_spec


def split_into_experiments(
    sequences: Sequences,
    assay: Assay,
    target: Target | None,
    *,
    campaign_id: str | None,
    per_experiment: int,
    reading: ReadingOptions,
) -> Plan:
    """Split designs into experiments and check every specification locally, before anything is sent.

    Without `campaign_id` it is a digest of designs and assay, so the same designs are ordered once.

    Raises:
        InvalidSequences: designs contain the target whose residues the catalog gives, and `reading` does not keep them.
        InvalidSpec: with every finding of every experiment.
    """
    remarks = refuse_target(sequences, target.sequence if target else None, reading)
    # By the target's id, so that its name and its catalog number give the same campaign.
    assay = assay.model_copy(update={"target": target.id if target else None})
    campaign = campaign_id or f"c-{campaign_digest(sequences, assay)}"
    planned = []
    findings: list[str] = []
    for batch in split_into_batches(sequences, assay, per_experiment):
        spec = ExperimentSpec.of(assay, batch, assay.target)
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
        assay=assay,
        target_name=target.name if target else None,
        experiments=tuple(planned),
        duplicates=sequences.duplicates,
        reading=(*order_lines(sequences), *remarks),
        doubts=(*sequences.report.doubts, *remarks),
        attributes=attributes.by_design,
        attributes_left_out=attributes.left_out,
    )
