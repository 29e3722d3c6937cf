"""Archived experiments with measured rows, for the tables and the commands that read it."""

import json
from datetime import UTC, datetime

from prefect_assay.analysis.results import ResultRow, summarize, to_csv
from prefect_assay.analysis.results.tables import write_summary_json
from prefect_assay.archive import Document, archive_version

TARGET = {
    "name": "Human EGFR, extracellular domain",
    "target_catalog_id": "11111111-1111-1111-1111-111111111111",
}


def row(name, code, **fields):
    values = {"experiment_code": code, "result_id": "r-1", "result_type": "affinity", "level": "summary"}
    return ResultRow.model_validate({**values, "name": name, "outcome": "measured", **fields})


def archive_rows(store, prefix, campaign, code, rows, *, target=TARGET, day=1):
    """Archive a version of an experiment with these rows; its record."""
    spec = {"experiment_spec": {"experiment_type": "affinity", "target": target}}
    return archive_version(
        store,
        prefix,
        campaign_id=campaign,
        experiment_id=f"id-{code}",
        experiment_code=code,
        results_status="all",
        documents=[
            Document(path="results.csv", content_type="text/csv", body=to_csv(rows)),
            Document(
                path="raw/experiment.json", content_type="application/json", body=json.dumps(spec).encode()
            ),
        ],
        now=datetime(2026, 3, day, 12, tzinfo=UTC),
    )


def archive_report(store, prefix, campaign, designs, *, day=3):
    """Archive a report with this summary table; its record."""
    return archive_version(
        store,
        prefix,
        campaign_id=campaign,
        experiment_id=campaign,
        experiment_code="REPORT",
        results_status="all",
        documents=[
            Document(path="summary.json", content_type="application/json", body=write_summary_json(designs))
        ],
        now=datetime(2026, 3, day, tzinfo=UTC),
    )


def archive_two_campaigns(store, prefix):
    """Two campaigns with four experiments and their reports.

    LAB-001 has a partial and a complete version, and in LAB-004 a second version withdraws the value of the first.
    """
    first = row("d1", "LAB-001", kd_M=5e-9, binding="true")
    archive_rows(store, prefix, "round-1", "LAB-001", [first, row("d2", "LAB-001", outcome="pending")])
    complete = [
        first,
        row("d1", "LAB-001", level="replicate", replicate=1, kd_M=4.5e-9),
        row("d2", "LAB-001", outcome="no_binding", kd_M=1e-12, binding="false"),
    ]
    archive_rows(store, prefix, "round-1", "LAB-001", complete, day=2)
    other = [row("=d3", "LAB-002", kd_M=2e-8, extra='{"a": 1}')]
    archive_rows(store, prefix, "round-1", "LAB-002", other)
    archive_rows(store, prefix, "round-1", "LAB-004", [row("d5", "LAB-004", kd_M=1e-9)])
    withdrawn = [row("d5", "LAB-004", outcome="no_binding")]
    archive_rows(store, prefix, "round-1", "LAB-004", withdrawn, day=2)
    melts = [row("d4", "LAB-003", tm_C=61.5, result_type="thermostability")]
    archive_rows(store, prefix, "Round 2", "LAB-003", melts, target=None)
    targets = dict.fromkeys(("LAB-001", "LAB-002", "LAB-004"), TARGET["name"])
    designs = summarize([*complete, *other, *withdrawn], targets=targets, campaign_id="round-1")
    archive_report(store, prefix, "round-1", designs)
    archive_report(store, prefix, "Round 2", summarize(melts, campaign_id="Round 2"))
    archive_version(
        store,
        prefix,
        campaign_id="round-1",
        experiment_id="round-1",
        experiment_code="TABLE",
        results_status="all",
        documents=[Document(path="results.csv", content_type="text/csv", body=to_csv([first]))],
        now=datetime(2026, 3, 3, tzinfo=UTC),
    )


def archive_odd_answer(store, prefix="", *, campaign="round-1", code="LAB-001"):
    """Archive a fluorescence experiment whose answer has its number in a field that no shape describes."""
    entry = {"sequence": {"name": "d1", "aa_string": "MKV"}, "brightness": 12.5}
    answer = {"items": [{"id": "r-1", "result_type": "fluorescence", "summary": [entry]}]}
    bodies = {
        "raw/results-0001.json": json.dumps(answer).encode(),
        "raw/experiment.json": b"{}",
        "packages/r-1.zip": b"PK raw curves",
        "spec.json": json.dumps(
            {"experiment_type": "fluorescence", "sequences": {"d1": "MKV", "d2": "MKL"}}
        ).encode(),
        "results.csv": b"as another version wrote it",
    }
    return archive_version(
        store,
        prefix,
        campaign_id=campaign,
        experiment_id=f"id-{code}",
        experiment_code=code,
        results_status="all",
        documents=[
            Document(path=path, content_type="application/octet-stream", body=body, links=("a",))
            for path, body in bodies.items()
        ],
        now=datetime(2026, 4, 1, tzinfo=UTC),
    )
