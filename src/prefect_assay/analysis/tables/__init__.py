"""The all-campaign tables: designs, results and candidates of an archive as Parquet files, made from its versions and logs.

Knows neither Prefect, orders nor loops. Everything here needs the extra `parquet`.
"""

from prefect_assay.analysis.tables.candidates import (
    ProposedCandidate,
    ProposedRound,
    check_candidates,
    proposals,
    sequence_digest,
    write_candidates,
)
from prefect_assay.analysis.tables.designs import MeasuredDesigns, Unanswered, measured_designs
from prefect_assay.analysis.tables.files import (
    SUMMARY_PATH,
    UpdatedTables,
    check_tables,
    update_tables,
    write_newest_table,
)
from prefect_assay.analysis.tables.reread import (
    RereadExperiment,
    archived_mapping,
    describe_measurement,
    mapping_document,
    reread_experiments,
)
from prefect_assay.analysis.tables.rows import Query, query_rows, read_earlier_replicates
from prefect_assay.analysis.tables.summary import (
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
    "RereadExperiment",
    "SummaryTable",
    "Unanswered",
    "UpdatedTables",
    "archived_mapping",
    "check_candidates",
    "check_tables",
    "describe_measurement",
    "mapping_document",
    "measured_designs",
    "proposals",
    "query_rows",
    "read_designs",
    "read_earlier_replicates",
    "reported_designs",
    "reread_experiments",
    "sequence_digest",
    "summary_table",
    "update_tables",
    "write_candidates",
    "write_newest_table",
]
