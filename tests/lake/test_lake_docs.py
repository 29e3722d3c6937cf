"""The examples of docs/lake.md are run as they are: pandas, Polars and DuckDB on a folder, and on a bucket."""

import re
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from pyarrow import fs

from prefect_assay import lake
from prefect_assay.archive import LocalStore
from prefect_assay.archive.s3 import S3Store
from prefect_assay.results import COLUMNS
from support.archive.campaigns import archive_two_campaigns
from support.archive.swift_server import ACCESS_KEY, SECRET_KEY, s3_client

PAGE = (Path(__file__).parents[2] / "docs" / "lake.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"```python\n# (\w+)\n(.*?)```", PAGE, re.DOTALL))
BEST = [("round-1", "d1", 5e-9), ("round-1", "=d3", 2e-8), ("Round 2", "d4", None)]


def run(code):
    module = ModuleType("example")
    exec(compile(code, "docs/lake.md", "exec"), module.__dict__)
    return module


def rows_of(best):
    columns = ("campaign_id", "name", "kd_M")
    if hasattr(best, "fetchall"):
        return best.select(*columns).fetchall()
    if hasattr(best, "rows"):
        return best.select(columns).rows()
    found = best[[*columns]].astype(object)
    return [tuple(row) for row in found.where(found.notna(), None).itertuples(index=False)]


@pytest.mark.parametrize("program", ["pandas", "Polars", "DuckDB"])
def test_a_folder(tmp_path, monkeypatch, program):
    store = LocalStore(tmp_path / "assay-archive")
    archive_two_campaigns(store, "")
    lake.rebuild(store, "")
    monkeypatch.chdir(tmp_path)
    assert rows_of(run(BLOCKS[program]).best) == BEST
    assert len(BLOCKS[program].strip().splitlines()) == 5


def test_a_bucket(moto_endpoint, monkeypatch):
    client = s3_client(moto_endpoint)
    client.create_bucket(Bucket="my-bucket")
    store = S3Store("my-bucket", client)
    archive_two_campaigns(store, "lab")
    lake.rebuild(store, "lab")
    monkeypatch.setattr(fs, "S3FileSystem", partial(fs.S3FileSystem, endpoint_override=moto_endpoint))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    assert rows_of(run(BLOCKS["S3"]).best) == BEST
    assert len(BLOCKS["S3"].strip().splitlines()) == 5


def test_the_example_in_python(tmp_path, monkeypatch):
    store = LocalStore(tmp_path / "assay-archive")
    archive_two_campaigns(store, "")
    lake.rebuild(store, "")
    monkeypatch.chdir(tmp_path)
    (example,) = (code for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "Query(" in code)
    table = run(example).table
    assert table.column("name").to_pylist() == ["d1", "=d3", "d2", "d5"]
    # and the page names every column of a file that results.md does not
    assert {name for name in table.column_names if name not in COLUMNS} <= set(re.findall(r"`(\w+)`", PAGE))
