"""The lake: results and candidates of an archive as Parquet files, made from its records and never changed.

Knows neither Prefect, orders nor loops. Everything here needs the extra `parquet`.
"""

from prefect_assay.analysis.lake.candidates import (
    ProposedCandidate,
    ProposedRound,
    add_candidates,
    candidates_location,
    proposals,
    sequence_digest,
)
from prefect_assay.analysis.lake.designs import MeasuredDesigns, Unanswered, measured_designs
from prefect_assay.analysis.lake.parts import (
    SUMMARY_PATH,
    Rebuilt,
    add,
    rebuild,
)
from prefect_assay.analysis.lake.query import Query, earlier_replicates, query
from prefect_assay.analysis.lake.reread import (
    RereadExperiment,
    archived_mapping,
    describe_measurement,
    mapping_document,
    reread,
)
from prefect_assay.analysis.lake.summary import (
    SummaryTable,
    read_designs,
    reported_designs,
    summary_table,
)

__all__ = [
    "SUMMARY_PATH",
    "MeasuredDesigns",
    "ProposedCandidate",
    "ProposedRound",
    "Query",
    "Rebuilt",
    "RereadExperiment",
    "SummaryTable",
    "Unanswered",
    "add",
    "add_candidates",
    "archived_mapping",
    "candidates_location",
    "describe_measurement",
    "earlier_replicates",
    "mapping_document",
    "measured_designs",
    "proposals",
    "query",
    "read_designs",
    "rebuild",
    "reported_designs",
    "reread",
    "sequence_digest",
    "summary_table",
]
