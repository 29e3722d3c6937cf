"""What a campaign makes of checked designs: the batches of its experiments, and its default id. Pure.

Batches are cut from the designs sorted by name: the batch index is in the order key, and a re-sorted file must not
order anything twice. The id follows from the content: a second start of the same input is the same campaign.
"""

import hashlib
import json
from itertools import count
from typing import Final

from prefect_assay.errors import InvalidSpec
from prefect_assay.models.sequences import Batch, ProteinSequence, Sequences
from prefect_assay.models.spec import Assay
from prefect_assay.models.vocabulary import (
    ANTIGEN_CONCENTRATIONS_NM,
    BINNING_SEQUENCES_MAX,
    BINNING_SEQUENCES_MIN,
    BINNING_SEQUENCES_STEP,
    REPLICATES_DEFAULT,
    ExperimentType,
)


def split(sequences: Sequences, assay: Assay, per_experiment: int) -> tuple[Batch, ...]:
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
    if assay.experiment_type is ExperimentType.EPITOPE_BINNING:
        sizes = _binning_sizes(len(designs), len(controls), per_experiment)
    else:
        sizes = _sizes(len(designs), len(controls), per_experiment)
    return tuple(_batches(designs, controls, sizes))


def _sizes(designs: int, controls: int, per_experiment: int) -> list[int]:
    """Designs per batch, without controls."""
    room = per_experiment - controls
    if room < 1:
        raise InvalidSpec(
            [
                (
                    f"per_experiment: {per_experiment} leaves no room for designs beside the {controls} controls that go "
                    f"into every experiment; set at least {controls + 1}, or mark fewer sequences as controls"
                )
            ]
        )
    full, rest = divmod(designs, room)
    return [room] * full + ([rest] if rest else [])


def _binning_sizes(designs: int, controls: int, per_experiment: int) -> list[int]:
    """Designs per batch such that every batch with its controls has 4 to 28 sequences in multiples of 4."""
    step = BINNING_SEQUENCES_STEP
    largest = min(per_experiment, BINNING_SEQUENCES_MAX) // step * step
    smallest = max(BINNING_SEQUENCES_MIN, (controls // step + 1) * step)  # room for at least one design
    rule = f"epitope_binning takes {BINNING_SEQUENCES_MIN} to {BINNING_SEQUENCES_MAX} sequences in multiples of {step}"
    if largest < smallest:
        raise InvalidSpec(
            [
                (
                    f"per_experiment: {rule}; {per_experiment} per experiment with {controls} controls in each leaves no "
                    f"room; set at least {smallest}, or mark fewer sequences as controls"
                )
            ]
        )
    batches = _binning_count(designs, controls, smallest, largest)
    if batches is None:
        raise InvalidSpec([f"sequences: {rule}; {_advice(designs, controls, smallest, largest)}"])
    extra = designs + batches * controls - batches * smallest
    sizes = []
    for _ in range(batches):
        grown = min(extra, largest - smallest)
        sizes.append(smallest + grown - controls)
        extra -= grown
    return sizes


def _binning_count(designs: int, controls: int, smallest: int, largest: int) -> int | None:
    """The smallest number of batches that works, or None."""
    fewest = -(-designs // (largest - controls))
    # The remainder modulo 4 repeats after that.
    for batches in range(fewest, fewest + BINNING_SEQUENCES_STEP):
        total = designs + batches * controls
        if total % BINNING_SEQUENCES_STEP == 0 and batches * smallest <= total <= batches * largest:
            return batches
    return None


def _advice(designs: int, controls: int, smallest: int, largest: int) -> str:
    def fits(number: int) -> bool:
        return _binning_count(number, controls, smallest, largest) is not None

    more = next(number for number in count(designs + 1) if fits(number)) - designs
    fewer = next((designs - number for number in range(designs - 1, 0, -1) if fits(number)), None)
    beside = f" with {controls} controls in every experiment" if controls else ""
    leave = f", or leave out {fewer}" if fewer else ""
    return f"{designs} designs{beside} cannot be divided so; add {more}{leave}"


def _batches(
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
    designs = sorted(
        (sequence.model_dump(mode="json", exclude={"attributes"}) for sequence in sequences.items),
        key=lambda design: design["name"],
    )
    material = json.dumps([_assay(assay), designs], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(material.encode()).hexdigest()[:_DIGEST_LENGTH]


def _assay(assay: Assay) -> dict[str, object]:
    chosen: dict[str, object] = assay.model_dump(mode="json", exclude_none=True)
    if assay.effective_method:
        chosen["method"] = assay.effective_method.value
    if assay.experiment_type is not ExperimentType.EPITOPE_BINNING:  # contract 2.2: no replicates
        chosen.setdefault("n_replicates", REPLICATES_DEFAULT)
    if assay.experiment_type is ExperimentType.AFFINITY:
        chosen.setdefault("antigen_concentrations", list(ANTIGEN_CONCENTRATIONS_NM))
    return chosen
