"""From a file of designs to checked sequences, and from those to the batches of single experiments.

`read_sequences` accepts what pipelines write, `split` cuts it into experiments, `campaign_digest` names the
whole. Nothing here knows the service, a token or Prefect.
"""

from prefect_assay.designs.campaign import campaign_digest, split
from prefect_assay.designs.read import read_sequences
from prefect_assay.models.spec_rules import check_spec

__all__ = ["campaign_digest", "check_spec", "read_sequences", "split"]
