"""From a file of designs to checked sequences, the batches of single experiments and a default campaign id.

Knows neither the service nor Prefect.
"""

from prefect_assay.designs.attributes import kept_attributes
from prefect_assay.designs.campaign import campaign_digest, split
from prefect_assay.designs.read import read_sequences
from prefect_assay.models.spec_rules import check_spec

__all__ = ["campaign_digest", "check_spec", "kept_attributes", "read_sequences", "split"]
