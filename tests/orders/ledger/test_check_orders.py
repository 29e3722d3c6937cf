"""The log of orders, the plans and the archive are compared; what waits is not damage."""

from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner

from prefect_assay.archive import Document, LocalStore, archive_version, verify_versions
from prefect_assay.archive.campaign_plan import Plan, PlannedExperiment
from prefect_assay.cli.app import app
from prefect_assay.orders.ledger import Ledgers, check_orders
from prefect_assay.orders.ledger.log import Ordered, Surplus
from prefect_assay.service.models.spec import Assay, ExperimentSpec

SPEC = ExperimentSpec.model_validate(
    {"experiment_type": "expression", "sequences": {"a": {"aa_string": "ACD"}}}
)


def keep(store, code, path, body, experiment_id=None):
    archive_version(
        store,
        "lab",
        campaign_id="c",
        experiment_id=experiment_id or f"id-{code}",
        experiment_code=code,
        results_status="all",
        documents=[Document(path=path, content_type="text/plain", body=body)],
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )


def ledgers(store):
    return Ledgers(store, "lab", "org-1")


def order(store, key, experiment_id):
    ledgers(store).open_order("c", key).record(
        lambda state: None if state.ordered else Ordered(experiment_id=experiment_id)
    )


def plan(store, keys, archive_id=None):
    made = Plan(
        campaign_id="c",
        archive_id=archive_id or ledgers(store).archive_id,
        source="",
        assay=Assay(experiment_type="expression"),
        experiments=[PlannedExperiment(order_key=k, batch_index=n, spec=SPEC) for n, k in enumerate(keys)],
    )
    keep(store, "PLAN", "plan.json", made.model_dump_json().encode())


@pytest.fixture
def store(any_store):
    """A campaign of two orders, both archived, with its table."""
    plan(any_store, ["k1", "k2"])
    for number in (1, 2):
        order(any_store, f"k{number}", f"id-E-{number}")
        keep(any_store, f"E-{number}", "results.csv", b"experiment_code\n")
    keep(any_store, "TABLE", "results.csv", b"experiment_code,name\nE-1,a\nE-2,b\n")
    return any_store


def test_a_long_cell_and_a_name_with_an_odd_line_end_are_no_damage(store):
    rows = [("E-1", "a\u2028E-9"), ("E-2", "b\x85E-9")]
    lines = [f"{name},{code},{'x' * 200_000}\n" for code, name in rows]
    keep(store, "TABLE", "results.csv", "".join(["name,experiment_code,extra\n", *lines]).encode())
    assert list_findings(store) == []


def list_findings(store):
    return [(finding.kind, finding.key) for finding in check_orders(store, "lab")]


def log_of(store, key):
    return f"{ledgers(store).folder}/c/{key}"


def remove(store, key):
    if isinstance(store, LocalStore):
        (store.root / key).unlink()
    elif hasattr(store, "objects"):
        del store.objects[key]
    else:
        store._client.delete_object(Bucket=store.bucket, Key=key)


def test_a_campaign_that_agrees(store):
    assert list_findings(store) == []


def test_an_experiment_that_nobody_ordered(store):
    keep(store, "E-3", "results.csv", b"forged")
    assert verify_versions(store).ok
    assert list_findings(store) == [("extra", "lab/c/E-3")]


def test_while_an_order_is_not_known_any_experiment_may_be_its(any_store):
    plan(any_store, ["k1", "k2"])
    order(any_store, "k1", "id-E-1")
    keep(any_store, "E-1", "results.csv", b"")
    keep(any_store, "E-2", "results.csv", b"")
    assert list_findings(any_store) == [("incomplete", "lab/c")]


def test_a_surplus_experiment_belongs_to_its_order(store):
    ledgers(store).open_order("c", "k1").record(
        lambda state: None if state.surplus else Surplus(experiment_id="id-E-3", kept="id-E-1")
    )
    keep(store, "E-3", "results.csv", b"")
    assert list_findings(store) == []


def test_what_waits_for_results_is_a_remark(any_store):
    plan(any_store, ["k1", "k2"])
    for number in (1, 2):
        order(any_store, f"k{number}", f"id-E-{number}")
    keep(any_store, "E-1", "results.csv", b"")
    (finding,) = check_orders(any_store, "lab")
    assert (finding.kind, finding.is_damage) == ("incomplete", False)
    assert "1 of 2" in finding.detail


def test_a_campaign_whose_orders_have_no_log_is_a_remark(any_store):
    plan(any_store, ["k1"])
    keep(any_store, "E-1", "results.csv", b"")
    keep(any_store, "TABLE", "results.csv", b"experiment_code\nE-1\n")
    assert list_findings(any_store) == [("incomplete", "lab/c")]


def test_an_experiment_of_the_table_that_is_gone_needs_no_register(store):
    for key in list(store.keys("lab/c/E-2")) + list(store.keys("lab/LEDGERS/VERSIONS")):
        remove(store, key)
    assert verify_versions(store).ok
    assert ("missing", "lab/c/E-2") in list_findings(store)


def test_a_plan_of_another_archive(any_store):
    plan(any_store, ["k1"], archive_id="another")
    order(any_store, "k1", "id-E-1")
    keep(any_store, "E-1", "results.csv", b"")
    assert list_findings(any_store) == [("misplaced", "lab/c/PLAN")]


@pytest.mark.parametrize("number", [1, 2])
def test_a_log_that_lost_a_record(store, number):
    order_ledger = ledgers(store).open_order("c", "k1")
    order_ledger.record(lambda state: None if state.surplus else Surplus(experiment_id="x", kept="id-E-1"))
    remove(store, f"{log_of(store, 'k1')}/{number:06d}.json")
    assert ("unreadable", log_of(store, "k1")) in list_findings(store)


def test_the_archives_id_is_missed_and_not_made_again(store):
    remove(store, "lab/LEDGERS/ARCHIVE.json")
    before = sorted(store.keys(""))
    assert list_findings(store) == [("missing", "lab/LEDGERS/ARCHIVE.json")]
    assert sorted(store.keys("")) == before


def test_the_command_says_it_too(tmp_path):
    store = LocalStore(tmp_path)
    plan(store, ["k1"])
    order(store, "k1", "id-E-1")
    keep(store, "E-1", "results.csv", b"")

    def run_command():
        done = CliRunner().invoke(app, ["archive", "verify", str(tmp_path / "lab")], env={"COLUMNS": "200"})
        return done.exit_code, done.output

    assert run_command()[0] == 0
    keep(store, "E-3", "results.csv", b"forged")
    code, output = run_command()
    assert (code, "extra: c/E-3" in output) == (1, True)


def test_a_damaged_record_of_whose_the_logs_are_is_found(tmp_path):
    store = LocalStore(tmp_path)
    Ledgers.open(store, "lab", "https://lab.example.org", "org-1")
    (record,) = tmp_path.rglob("IDENTITY/*.json")
    assert list_findings(store) == []
    record.chmod(0o600)
    record.write_bytes(b"{")
    assert list_findings(store) == [("unreadable", "lab/LEDGERS/IDENTITY")]
