"""The order key: what makes two orders the same order. Pure."""

import hashlib
import json
import re
from typing import Any, Final

from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import ANTIGEN_CONCENTRATIONS_NM, REPLICATES_DEFAULT, ExperimentType

KEY_LENGTH: Final = 20  # hex digits: 80 bits
_WORD_PREFIX: Final = "pa-"
_LABEL_LENGTH: Final = 60
_FORGED: Final = re.compile(rf"(pa)-(?=[0-9a-f]{{{KEY_LENGTH}}})", re.IGNORECASE | re.ASCII)


def order_key(campaign_id: str, batch_index: int, spec: ExperimentSpec) -> str:
    """Digest of campaign id, batch index and normalised specification; 20 hex digits.

    Two specifications that the service treats alike have the same key. Names and residues count, their order
    does not; a default that is spelled out equals the default left away.
    """
    material = json.dumps(
        [campaign_id, batch_index, normalised(spec)],
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=True,
    )
    return hashlib.sha256(material.encode()).hexdigest()[:KEY_LENGTH]


def normalised(spec: ExperimentSpec) -> dict[str, Any]:
    """The JSON body with its defaults filled in, ids and residues in the case the service stores, nothing empty.

    A body that is normal already must not change: the keys of existing orders depend on it.
    """
    wire = spec.wire()
    if not wire.get("parameters"):
        wire.pop("parameters", None)
    if spec.target_id is not None:
        wire["target_id"] = spec.target_id.lower()
    for sequence in wire["sequences"].values():
        if sequence["aa_string"].isascii():  # upper() turns some other letters into amino acids
            sequence["aa_string"] = sequence["aa_string"].upper()
        if not sequence.get("metadata"):
            sequence.pop("metadata", None)
    if spec.experiment_type != ExperimentType.EPITOPE_BINNING:  # contract 2.2: binning takes no replicates
        wire.setdefault("n_replicates", REPLICATES_DEFAULT)
    if spec.experiment_type == ExperimentType.AFFINITY:
        wire.setdefault("antigen_concentrations", list(ANTIGEN_CONCENTRATIONS_NM))
    return wire


def search_token(key: str) -> str:
    """The word that stands in the experiment's name and that `search` finds (contract 4.1)."""
    return f"{_WORD_PREFIX}{key}"


def experiment_name(label: str, batch_index: int, batch_count: int, key: str) -> str:
    """A name that a person can read and a search can find: `<label> 1/4 pa-<key>`.

    A search token in the label loses its dash, or a search for that other key would find this experiment.
    """
    readable = re.sub(r"\s+", " ", label).strip()[:_LABEL_LENGTH] or "campaign"
    readable = _FORGED.sub(r"\1_", readable)
    return f"{readable} {batch_index + 1}/{batch_count} {search_token(key)}"
