"""`campaign_digest`: the default name of a campaign, made from its content. Pure.

Same designs and same assay, same campaign: wherever the file lies, however it is called, sorted or written. A
second start of the same input is therefore the same campaign, and finds its orders instead of repeating them.
"""

import hashlib
import json
from typing import Final

from prefect_assay.models.sequences import Sequences
from prefect_assay.models.spec import Assay
from prefect_assay.models.vocabulary import ANTIGEN_CONCENTRATIONS_NM, REPLICATES_DEFAULT, ExperimentType

LENGTH: Final = 16  # hex digits: 64 bits


def campaign_digest(sequences: Sequences, assay: Assay) -> str:
    """16 hex digits over names, residues, control flags, metadata and the assay.

    A default that is spelled out (3 replicates, `bli`) gives the same digest as the default left away.
    """
    designs = sorted(
        (sequence.model_dump(mode="json") for sequence in sequences.items), key=lambda design: design["name"]
    )
    material = json.dumps([_assay(assay), designs], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(material.encode()).hexdigest()[:LENGTH]


def _assay(assay: Assay) -> dict[str, object]:
    chosen: dict[str, object] = assay.model_dump(mode="json", exclude_none=True)
    if assay.effective_method:
        chosen["method"] = assay.effective_method.value
    if (
        assay.experiment_type is not ExperimentType.EPITOPE_BINNING
    ):  # contract 2.2: binning takes no replicates
        chosen.setdefault("n_replicates", REPLICATES_DEFAULT)
    if assay.experiment_type is ExperimentType.AFFINITY:
        chosen.setdefault("antigen_concentrations", list(ANTIGEN_CONCENTRATIONS_NM))
    return chosen
