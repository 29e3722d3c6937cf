"""The all-campaign tables: designs, results and candidates of an archive as Parquet files, made from its versions and logs.

Knows neither Prefect, orders nor loops. Everything here needs the extra `parquet`.
"""

from prefect_assay.analysis.tables.candidates import (
    ProposedCandidate,
    ProposedRound,
    check_candidates,
    digest_sequence,
    read_proposals,
    write_candidates,
)
from prefect_assay.analysis.tables.designs import MeasuredDesigns, Unanswered, read_measured_designs
from prefect_assay.analysis.tables.files import (
    SUMMARY_PATH,
    UpdatedTables,
    check_tables,
    update_tables,
    write_newest_table,
)
from prefect_assay.analysis.tables.reread import (
    RereadExperiment,
    describe_measurement,
    make_mapping_document,
    read_archived_mapping,
    reread_experiments,
)
from prefect_assay.analysis.tables.rows import Query, query_rows, read_earlier_replicates
from prefect_assay.analysis.tables.summary import (
    SummaryTable,
    read_designs,
    read_reported_designs,
    read_summary_table,
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
    "check_candidates",
    "check_tables",
    "describe_measurement",
    "digest_sequence",
    "make_mapping_document",
    "query_rows",
    "read_archived_mapping",
    "read_designs",
    "read_earlier_replicates",
    "read_measured_designs",
    "read_proposals",
    "read_reported_designs",
    "read_summary_table",
    "reread_experiments",
    "update_tables",
    "write_candidates",
    "write_newest_table",
]
