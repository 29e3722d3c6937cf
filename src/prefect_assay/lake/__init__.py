"""The lake: results and candidates of an archive as Parquet files, made from its records and never changed.

Knows neither Prefect, orders nor loops. Everything here needs the extra `parquet`.
"""

from prefect_assay.lake.candidates import (
    ProposedCandidate,
    ProposedRound,
    add_candidates,
    candidates_location,
    proposals,
    sequence_digest,
)
from prefect_assay.lake.designs import MeasuredDesigns, Unanswered, measured_designs, reported_designs
from prefect_assay.lake.parts import Rebuilt, add, rebuild
from prefect_assay.lake.query import Query, earlier_replicates, query

__all__ = [
    "MeasuredDesigns",
    "ProposedCandidate",
    "ProposedRound",
    "Query",
    "Rebuilt",
    "Unanswered",
    "add",
    "add_candidates",
    "candidates_location",
    "earlier_replicates",
    "measured_designs",
    "proposals",
    "query",
    "rebuild",
    "reported_designs",
    "sequence_digest",
]
