"""Makes batches of experiments, the default campaign id and the plan's columns from checked designs. Pure.

Batches are cut from the designs sorted by name. The batch index is in the order key, and a re-sorted file must not
order anything twice. The id follows from the content: a second start of the same input is the same campaign.

The designer's own columns are in neither. A plan is read at every wake-up, so its size is bounded. Columns are
left out whole, because a column with gaps looks like missing measurements.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Final

from prefect_assay.errors import InvalidSpec
from prefect_assay.service.assays import ASSAY_TYPES, SequenceCounts
from prefect_assay.service.models.sequences import Batch, ProteinSequence, Sequences
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.words import many


def split_into_batches(sequences: Sequences, assay: Assay, per_experiment: int) -> tuple[Batch, ...]:
    """Divide designs over experiments of at most `per_experiment` sequences, controls included in each.

    Raises:
        InvalidSpec: the designs do not fit the assay's rule (contract 2.2); the message says what to add or leave out.
    """
    ordered = sorted(sequences.items, key=lambda sequence: sequence.name)
    controls = [sequence for sequence in ordered if sequence.control]
    designs = [sequence for sequence in ordered if not sequence.control]
    if not ordered:
        raise InvalidSpec(["sequences: none; an experiment needs at least one"])
    if per_experiment < 1:
        raise InvalidSpec([f"per_experiment: {per_experiment}; at least 1 is needed"])
    if not designs:  # a calibration run of controls alone is an experiment like any other
        designs, controls = controls, []
    if counts := ASSAY_TYPES[assay.experiment_type].sequence_counts:
        sizes = _counted_sizes(counts, assay, len(designs), len(controls), per_experiment)
    else:
        sizes = _compute_sizes(len(designs), len(controls), per_experiment)
    return tuple(_make_batches(designs, controls, sizes))


def _compute_sizes(designs: int, controls: int, per_experiment: int) -> list[int]:
    """Designs per batch, without controls."""
    room = per_experiment - controls
    if room < 1:
        raise InvalidSpec(
            [
                (
                    f"per_experiment: {per_experiment} leaves no room for designs next to the {controls} controls that go "
                    f"into every experiment; set at least {controls + 1}, or mark fewer sequences as controls"
                )
            ]
        )
    full, rest = divmod(designs, room)
    return [room] * full + ([rest] if rest else [])


def _counted_sizes(
    counts: SequenceCounts, assay: Assay, designs: int, controls: int, per_experiment: int
) -> list[int]:
    """Designs per batch such that every batch with its controls has a number of sequences that the assay takes."""
    step = counts.step
    largest = min(per_experiment, counts.most) // step * step
    smallest = max(counts.least, (controls // step + 1) * step)  # room for at least one design
    rule = f"{assay.experiment_type} takes {counts.least} to {counts.most} sequences in multiples of {step}"
    if largest < smallest:
        raise InvalidSpec(
            [
                (
                    f"per_experiment: {rule}; {per_experiment} per experiment with {controls} controls in each leaves no "
                    f"room; set at least {smallest}, or mark fewer sequences as controls"
                )
            ]
        )
    batch = SequenceCounts(smallest, largest, step)
    batches = _count_batches(batch, designs, controls)
    if batches is None:
        raise InvalidSpec([f"sequences: {rule}; {_give_advice(batch, designs, controls)}"])
    extra = designs + batches * controls - batches * smallest
    sizes = []
    for _ in range(batches):
        grown = min(extra, largest - smallest)
        sizes.append(smallest + grown - controls)
        extra -= grown
    return sizes


def _count_batches(batch: SequenceCounts, designs: int, controls: int) -> int | None:
    """The smallest number of batches that works, or None."""
    fewest = -(-designs // (batch.most - controls))
    # The remainder modulo the step repeats after that.
    for batches in range(fewest, fewest + batch.step):
        total = designs + batches * controls
        if total % batch.step == 0 and batches * batch.least <= total <= batches * batch.most:
            return batches
    return None


def _give_advice(batch: SequenceCounts, designs: int, controls: int) -> str:
    def fits(number: int) -> bool:
        return _count_batches(batch, number, controls) is not None

    more = next(number for number in count(designs + 1) if fits(number)) - designs
    fewer = next((designs - number for number in range(designs - 1, 0, -1) if fits(number)), None)
    beside = f" with {many(controls, 'control')} in every experiment" if controls else ""
    leave = f", or leave out {fewer}" if fewer else ""
    return f"{many(designs, 'design')}{beside} cannot be divided so; add {more}{leave}"


def _make_batches(
    designs: list[ProteinSequence], controls: list[ProteinSequence], sizes: list[int]
) -> list[Batch]:
    batches = []
    start = 0
    for index, size in enumerate(sizes):
        items = (*designs[start : start + size], *controls)
        batches.append(Batch(index=index, count=len(sizes), items=items))
        start += size
    return batches


_DIGEST_LENGTH: Final = 16  # hex digits: 64 bits


def campaign_digest(sequences: Sequences, assay: Assay) -> str:
    """16 hex digits over names, residues, control flags, metadata and the assay with its defaults filled in."""
    designs = [
        {"name": s.name, "aa_string": s.aa_string, "control": s.control, "metadata": s.metadata}
        for s in sorted(sequences.items, key=lambda sequence: sequence.name)
    ]
    material = json.dumps(
        [_describe_assay(assay), designs], sort_keys=True, separators=(",", ":"), ensure_ascii=True
    )
    return hashlib.sha256(material.encode()).hexdigest()[:_DIGEST_LENGTH]


def _describe_assay(assay: Assay) -> dict[str, object]:
    chosen: dict[str, object] = assay.model_dump(mode="json", exclude_none=True)
    if assay.effective_method:
        chosen["method"] = assay.effective_method.value
    ASSAY_TYPES[assay.experiment_type].fill_defaults(chosen)
    return chosen


PLAN_BYTES: Final = 4 * 1024 * 1024
_JSON_OVERHEAD: Final = 20  # quotes, colon, comma, line end and indentation of one value in the plan


@dataclass(frozen=True, slots=True)
class KeptAttributes:
    """`{design name: {title: value}}` of the columns that fit, and the titles of the others."""

    by_design: dict[str, dict[str, str]]
    left_out: tuple[str, ...]


def kept_attributes(sequences: Iterable[ProteinSequence], limit: int = PLAN_BYTES) -> KeptAttributes:
    """The columns of the designs that fit into `limit` bytes of JSON, in the order of the file.

    The smallest are kept first, so that scores and labels go before structures and long text.
    """
    designs = [sequence for sequence in sequences if sequence.attributes]
    bytes_by_title: Counter[str] = Counter()
    for sequence in designs:
        for title, value in sequence.attributes.items():
            bytes_by_title[title] += len(title.encode()) + len(value.encode()) + _JSON_OVERHEAD
    kept: set[str] = set()
    room = limit
    for title, size in sorted(bytes_by_title.items(), key=lambda item: item[1]):
        room -= size
        if room >= 0:
            kept.add(title)
    by_design = {
        sequence.name: chosen
        for sequence in designs
        if (chosen := {title: value for title, value in sequence.attributes.items() if title in kept})
    }
    return KeptAttributes(by_design, tuple(title for title in bytes_by_title if title not in kept))
