"""Format numbers: each kind of stored file carries one, and what a later version wrote is refused and left as it is."""

import io
import json

import pytest
from pyarrow import parquet

from prefect_assay.analysis.tables.files import check_tables, update_tables
from prefect_assay.analysis.tables.rows import Query, query_rows
from prefect_assay.archive import LocalStore, archive_version, read_latest, safe_name, verify_versions
from prefect_assay.archive.read import chosen_version, read_plan
from prefect_assay.campaigns.loops.check import check_loops
from prefect_assay.campaigns.loops.loop_log import LoopLog
from prefect_assay.errors import NewerFormat
from prefect_assay.orders.ledger import Ledgers, check_campaigns, check_orders
from prefect_assay.orders.ledger.log import Ordered
from prefect_assay.service.models.sequences import ProteinSequence
from support.archive import archive_writer, campaign_records
from support.archive.campaigns import archive_rows, row
from support.archive.loops import LOOP, archive_plan, selected_round

DESIGNS = [ProteinSequence(name="d1", aa_string="ACDEFGHIKLMNPQRSTVWY")]


@pytest.fixture
def store(tmp_path):
    """An archive with a plan, an experiment, its table, and the logs of an order, of a campaign and of a loop."""
    made = LocalStore(tmp_path / "archive")
    archive_plan(made, "lab", "c", DESIGNS)
    archive_rows(made, "lab", "c", "E-1", [row("d1", "E-1", kd_M=1e-9)])
    update_tables(made, "lab")
    Ledgers(made, "lab", "org-1").open_order("c", "k1").record(lambda _: Ordered(experiment_id="id-E-1"))
    Ledgers(made, "lab", "org-1").budget.reserve("k1", "c", 5)
    campaign_records.a_log(made, "c").start(campaign_records.started("c"))
    selected_round(made, "lab")
    return made


def of(store, end):
    return next(key for key in store.keys("lab") if key.endswith(end))


def rewrite(store, key, **fields):
    """As a later version writes the file."""
    path = store.root / key
    path.chmod(0o600)
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def read_rows(store):
    return query_rows(store, "lab", Query())


def write_newer_table(store):
    key = of(store, ".parquet")
    table = parquet.read_table(store.root / key)
    sink = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata({"table_schema": "2"}), sink)
    store.replace(key, sink.getvalue(), "application/vnd.apache.parquet")


def read_loop(store):
    return LoopLog(store, "lab", LOOP).read()


def read_budget(store):
    return Ledgers(store, "lab", "org-1").budget.read()


def read_id(store):
    return Ledgers(store, "lab", "org-1").archive_id


STORED = {
    "manifest": ("c/E-1/v001/manifest.json", "manifest_schema", lambda s: read_latest(s, "lab", "c", "E-1")),
    "budget": ("BUDGET/000001.json", "record_schema", read_budget),
    "loop": (f"LOOPS/{safe_name(LOOP)}/000001.json", "record_schema", read_loop),
    "campaign": (
        "CAMPAIGNS/c/000001.json",
        "record_schema",
        lambda s: campaign_records.a_log(s, "c").read().started,
    ),
    "the archive's id": ("LEDGERS/ARCHIVE.json", "record_schema", read_id),
}


@pytest.mark.parametrize("kind", STORED)
def test_a_file_of_a_later_version_is_named_with_both_numbers_and_the_step(store, kind):
    end, field, read = STORED[kind]
    assert read(store)
    assert json.loads(store.read(of(store, end)))[field] == 1
    rewrite(store, of(store, end), **{field: 2})
    with pytest.raises(NewerFormat, match=r"has format 2, .* up to 1: .*upgrade prefect-assay") as caught:
        read(store)
    assert str(caught.value).startswith(store.location(of(store, end)))


def test_a_plan_of_a_later_version_is_refused(tmp_path):
    store = LocalStore(tmp_path)
    plan = archive_plan(store, "", "first", DESIGNS)
    assert plan.plan_schema == 1
    body = plan.model_copy(update={"plan_schema": 2, "campaign_id": "c"}).model_dump_json().encode()
    archive_version(
        store,
        "",
        campaign_id="c",
        experiment_id="c",
        experiment_code="PLAN",
        results_status="none",
        documents=[archive_writer.Document(path="plan.json", content_type="application/json", body=body)],
        now=archive_writer.datetime.now(archive_writer.UTC),
    )
    assert read_plan(chosen_version(store, "first/PLAN")) == plan
    with pytest.raises(NewerFormat, match=r"plan\.json has format 2"):
        read_plan(chosen_version(store, "c/PLAN"))
    assert ("newer", "c") in {(f.kind, f.key) for f in check_orders(store)}


def test_a_table_of_a_later_version_is_refused(store):
    assert read_rows(store).num_rows == 1
    write_newer_table(store)
    with pytest.raises(NewerFormat, match=r"\.parquet has format 2"):
        read_rows(store)
    assert [finding.kind for finding in check_tables(store, "lab")] == ["newer"]


def test_what_a_later_version_wrote_is_no_damage_and_not_intact(store):
    assert verify_versions(store).ok
    rewrite(store, of(store, "c/E-1/v001/manifest.json"), manifest_schema=2)
    rewrite(store, of(store, f"LOOPS/{safe_name(LOOP)}/000001.json"), record_schema=2)
    rewrite(store, of(store, "BUDGET/000001.json"), record_schema=2)
    rewrite(store, of(store, "CAMPAIGNS/c/000001.json"), record_schema=2)
    report = verify_versions(store)
    assert [(f.kind, f.is_damage) for f in report.findings] == [("newer", False)]
    assert not report.ok
    findings = [*check_orders(store, "lab"), *check_campaigns(store, "lab"), *check_loops(store, "lab")]
    newer = {f.key.rpartition("/")[2] for f in findings if f.kind == "newer"}
    assert newer >= {"BUDGET", "c", safe_name(LOOP)}


def test_nothing_is_written_beside_a_version_of_a_later_one(tmp_path):
    store = LocalStore(tmp_path / "archive")
    archive_writer.archive(store, "a")
    rewrite(store, "lab/c/E-1/v001/manifest.json", manifest_schema=2)
    before = sorted(store.keys(""))
    with pytest.raises(NewerFormat):
        archive_writer.archive(store, "b")
    assert sorted(store.keys("")) == before


def test_a_version_that_a_later_one_began_is_left_to_it(tmp_path):
    store = LocalStore(tmp_path / "archive")
    archive_writer.archive(store, "a")
    folder = store.root / "lab/c/E-1/v001"
    rewrite(store, "lab/c/E-1/v001/claim.json", manifest_schema=2)
    (folder / "manifest.json").unlink()
    for key in list(store.keys("lab/LEDGERS")):
        (store.root / key).unlink()
    assert archive_writer.archive(store, "a").version == 2
    assert not (folder / "manifest.json").exists()
