"""What a loop has measured and ordered, from the archive: what its designers and its selection learn from."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from prefect_assay.blocks import Archive
from prefect_assay.looping.book import Round
from prefect_assay.models.spec import Plan
from prefect_assay.results import DesignSummary, Outcome, summarize
from prefect_assay.tasks.collate import kept_plan, kept_table

# Whether the laboratory has an order, or may have it: by the campaign's id and the order key.
Placed = Callable[[str, str], bool]


def loop_history(archive: Archive, rounds: Sequence[Round], placed: Placed) -> tuple[DesignSummary, ...]:
    """One entry per design that the loop has measured or ordered, with the designer's columns and the column `round`.

    An ordered design without a row is `pending`, also once its run has given up on it or its round has failed: it is
    paid, or may be, and must not be bought again. What was refused, withdrawn or never sent has no entry.
    """
    found: list[DesignSummary] = []
    for entry in rounds:
        plan = kept_plan(archive, entry.fixed.campaign_id)
        if plan is None:
            continue
        table = kept_table(archive, entry.fixed.campaign_id)
        rows = table.rows if table else ()
        planned = plan.sequences
        names = {row.name for row in rows}
        attributes = {
            name: plan.attributes.get(name, {}) | {"round": str(entry.fixed.number)}
            for name in names | planned.keys()
        }
        measured = summarize(
            rows,
            attributes=attributes,
            targets={row.experiment_code: plan.target_name for row in rows},
        )
        for design in measured:
            if not design.aa_string and design.name in planned:  # some results come without residues
                own = {"aa_string": planned[design.name].aa_string}
                found.append(design.model_copy(update=own))
            else:
                found.append(design)
        found += _open(plan, names, attributes, placed)
    return tuple(found)


def _open(
    plan: Plan, names: set[str], attributes: Mapping[str, dict[str, str]], placed: Placed
) -> Iterator[DesignSummary]:
    """The designs without a row whose order was placed, by its log."""
    for each in plan.experiments:
        absent = {name: value for name, value in each.spec.sequences.items() if name not in names}
        if absent and placed(plan.campaign_id, each.order_key):
            for name, value in absent.items():
                yield DesignSummary(
                    name=name,
                    experiment_code="",
                    result_type=plan.assay.experiment_type.value,
                    target=plan.target_name,
                    control=value.control,
                    outcome=Outcome.PENDING,
                    aa_string=value.aa_string,
                    attributes=attributes[name],
                )
