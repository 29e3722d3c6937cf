"""Turns a file of designs into checked sequences, the batches of single experiments and a default campaign id.

Knows neither the service nor Prefect.
"""

from prefect_assay.designs.campaign import campaign_digest, kept_attributes, split_into_batches
from prefect_assay.designs.chains import refuse_target
from prefect_assay.designs.liabilities import design_warnings
from prefect_assay.designs.proposed import choices_csv, pool_of
from prefect_assay.designs.read import is_pasted, read_pool, read_sequences
from prefect_assay.designs.report import order_lines
from prefect_assay.service.models.spec_rules import check_spec

__all__ = [
    "campaign_digest",
    "check_spec",
    "choices_csv",
    "design_warnings",
    "is_pasted",
    "kept_attributes",
    "order_lines",
    "pool_of",
    "read_pool",
    "read_sequences",
    "refuse_target",
    "split_into_batches",
]
