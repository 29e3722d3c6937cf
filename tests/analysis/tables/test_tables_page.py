"""The examples of docs/results.md are run as they are: pandas, Polars and DuckDB on a folder, and on a bucket."""

import re
from functools import partial
from pathlib import Path
from types import ModuleType

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from prefect_assay.analysis.results import COLUMNS, DesignSummary
from prefect_assay.analysis.tables.files import make_designs_schema, make_results_schema, update_tables
from prefect_assay.archive import LocalStore
from prefect_assay.archive.s3 import S3Store
from prefect_assay.campaigns.loops.candidates import update_candidates
from support.archive.campaigns import archive_two_campaigns
from support.archive.loops import archive_measured_round, selected_round
from support.archive.swift_server import ACCESS_KEY, SECRET_KEY, s3_client

PAGE = (Path(__file__).parents[3] / "docs" / "results.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"```python\n# (\w+)\n(.*?)```", PAGE, re.DOTALL))
NAMED = set(re.findall(r"`(\w+)`", PAGE))
BEST = [
    ("round-1", "d1", pytest.approx(4.5e-9)),
    ("round-1", "=d3", 2e-8),
]  # of a third design only T_m is known


def run(code):
    module = ModuleType("example")
    exec(compile(code, "docs/results.md", "exec"), module.__dict__)
    return module


def rows_of(best):
    columns = ("campaign_id", "name", "kd_M")
    if hasattr(best, "fetchall"):
        return best.select(*columns).fetchall()
    if hasattr(best, "rows"):
        return best.select(columns).rows()
    frame = best[[*columns]].astype(object)
    return [tuple(row) for row in frame.where(frame.notna(), None).itertuples(index=False)]


@pytest.mark.parametrize("program", ["pandas", "Polars", "DuckDB"])
def test_a_folder(tmp_path, monkeypatch, program):
    store = LocalStore(tmp_path / "assay-archive")
    archive_two_campaigns(store, "")
    update_tables(store, "")
    monkeypatch.chdir(tmp_path)
    assert rows_of(run(BLOCKS[program]).best) == BEST
    assert len(BLOCKS[program].strip().splitlines()) <= 3


def test_an_archive_is_read_and_verified(tmp_path, monkeypatch):
    archive_two_campaigns(LocalStore(tmp_path / "assay-archive"), "")
    monkeypatch.chdir(tmp_path)
    assert b"d1" in run(BLOCKS["Archive"]).table


def test_candidates(tmp_path, monkeypatch):
    store = LocalStore(tmp_path / "assay-archive")
    fixed = selected_round(store, "")
    archive_measured_round(store, "", fixed, residues=True)
    update_tables(store, "")
    update_candidates(store, "")
    monkeypatch.chdir(tmp_path)
    assert run(BLOCKS["Candidates"]).bought.fetchall() == [
        ("binders-round-001", "d0", "rfd", 0.9, "measured", None, 5e-9),
        ("binders-round-001", "d1", "rfd", 0.8, "measured", None, 8e-8),
        ("binders-round-001", "d3", "old", 0.6, "measured", None, 4e-7),
        ("binders-round-001", "d2", "old", 0.7, "no_binding", None, None),
    ]
    (file, *_) = (tmp_path / "assay-archive/TABLES/candidates").rglob("*.parquet")
    assert {*pq.read_schema(file).names} <= NAMED


def test_a_bucket(moto_endpoint, monkeypatch):
    client = s3_client(moto_endpoint)
    client.create_bucket(Bucket="my-bucket")
    store = S3Store("my-bucket", client)
    archive_two_campaigns(store, "lab")
    update_tables(store, "lab")
    monkeypatch.setattr(fs, "S3FileSystem", partial(fs.S3FileSystem, endpoint_override=moto_endpoint))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    assert rows_of(run(BLOCKS["S3"]).best) == BEST


def test_the_page_names_every_column():
    extra_columns = {*make_results_schema().names, *make_designs_schema().names} - {
        *COLUMNS,
        *DesignSummary.model_fields,
    }
    assert extra_columns <= NAMED
