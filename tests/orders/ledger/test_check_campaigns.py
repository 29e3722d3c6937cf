"""`archive verify` reads the logs of campaigns, and corrects the index of open ones from them."""

import pytest
from typer.testing import CliRunner

from prefect_assay.archive import LocalStore, verify_versions
from prefect_assay.archive.verify import Finding
from prefect_assay.cli.app import app
from prefect_assay.errors import ArchiveError, ArchiveUnavailable
from prefect_assay.orders.ledger import check_campaigns, check_orders
from prefect_assay.orders.ledger.campaign_log import CampaignLog, StartedKind, list_open
from prefect_assay.orders.ledger.homes import note_sweep
from support.archive import archive_writer
from support.archive.campaign_records import NOW, a_log, started
from support.archive.memory_store import MemoryStore, make_ledger

LOGS = "lab/LEDGERS/CAMPAIGNS"
OPEN = "lab/LEDGERS/OPEN"


def list_findings(store):
    return [(finding.kind, finding.key) for finding in check_campaigns(store, "lab")]


def opened(store):
    return sorted(log.name for log in list_open(store, "lab"))


@pytest.fixture
def store():
    """An open and a finished campaign, and an open loop."""
    store = MemoryStore()
    a_log(store, "c").start(started("c"))
    done = a_log(store, "d")
    done.start(started("d"))
    done.finish("all measured", complete=True)
    a_log(store, "l", StartedKind.LOOP).start(started("l", StartedKind.LOOP))
    return store


def test_logs_and_index_that_agree(store):
    before = dict(store.objects)
    assert list_findings(store) == []
    assert store.objects == before


def test_campaigns_index_and_homes_are_no_foreign_files_and_no_ledgers(tmp_path):
    store = LocalStore(tmp_path / "archive")
    a_log(store, "c").start(started("c"))
    a_log(store, "l", StartedKind.LOOP).start(started("l", StartedKind.LOOP))
    note_sweep(store, "lab", "home1", NOW)
    assert verify_versions(store, "lab").findings == verify_versions(store).findings == ()
    assert list(check_orders(store, "lab")) == list(check_campaigns(store, "lab")) == []


def test_an_open_campaign_that_the_index_lacks_is_in_it_again(store):
    for key in list(store.keys(OPEN)):
        del store.objects[key]
    findings = list(check_campaigns(store, "lab"))
    assert [(one.kind, one.key) for one in findings] == [
        ("repaired", f"{OPEN}/campaign-c.json"),
        ("repaired", f"{OPEN}/loop-l.json"),
    ]
    assert not any(finding.is_damage for finding in findings)
    assert "campaign c is open and was not in the index" in findings[0].detail
    assert opened(store) == ["c", "l"]
    assert list_findings(store) == []


def test_the_command_says_what_it_has_corrected_and_that_the_archive_is_intact(tmp_path):
    store = LocalStore(tmp_path / "archive")
    archive_writer.archive(store, "x", large=False)
    a_log(store, "c").start(started("c"))
    (tmp_path / "archive" / OPEN / "campaign-c.json").unlink()

    def verified():
        command = ["archive", "verify", str(tmp_path / "archive" / "lab")]
        done = CliRunner().invoke(app, command, env={"COLUMNS": "300"})
        return done.exit_code, done.output

    code, output = verified()
    assert code == 0, output
    assert "repaired: LEDGERS/OPEN/campaign-c.json: campaign c is open and was not in the index" in output
    assert "intact" in output
    assert "repaired" not in verified()[1]
    assert opened(store) == ["c"]


def test_entries_of_what_has_ended_or_was_never_started_are_removed(store):
    CampaignLog(store, "lab", "d").open_index()
    CampaignLog(store, "lab", "never").open_index()
    findings = list(check_campaigns(store, "lab"))
    assert [finding.detail.partition(":")[0] for finding in findings] == [
        "campaign d has ended",
        "campaign never was never started",
    ]
    assert (opened(store), list_findings(store)) == (["c", "l"], [])


def test_a_cancellation_that_is_not_settled_keeps_its_entry(store):
    a_log(store, "d").stop("ada", "cancel")
    del store.objects[f"{OPEN}/campaign-d.json"]
    assert list_findings(store) == [("repaired", f"{OPEN}/campaign-d.json")]


@pytest.mark.parametrize(("lost", "kind"), [((1,), "unreadable"), ((2,), "unreadable"), ((2, 3), "missing")])
def test_a_log_that_has_lost_records_is_named_and_its_entry_left_alone(store, lost, kind):
    for run in "123":
        a_log(store, "c").note_run(run, "x")
    for number in lost:
        del store.objects[f"{LOGS}/c/{number:06d}.json"]
    del store.objects[f"{OPEN}/campaign-c.json"]
    assert list_findings(store) == [(kind, f"{LOGS}/c")]
    assert opened(store) == ["l"]


def test_a_damaged_log_is_named_and_the_others_are_checked(store):
    store.objects[f"{LOGS}/c/000001.json"] = b"{"
    del store.objects[f"{OPEN}/loop-l.json"]
    assert list_findings(store) == [("unreadable", f"{LOGS}/c"), ("repaired", f"{OPEN}/loop-l.json")]


def test_a_ledger_that_has_lost_two_records_in_a_row_is_named():
    store = MemoryStore()
    ledger = make_ledger(store)
    for number in range(3):
        ledger.saw_invoice("inv_1", number)
    folder = ledger.location.removeprefix("memory:")
    for number in (3, 4):
        del store.objects[f"{folder}/{number:06d}.json"]
    assert list(check_orders(store)) == [
        Finding(kind="missing", key=folder, detail="records 3 and 4 are gone, and record 5 is there")
    ]


def test_an_archive_that_may_not_be_written_says_what_is_wrong_with_the_index(store, monkeypatch):
    def refuse(*arguments, **options):
        raise ArchiveError("no permission")

    del store.objects[f"{OPEN}/campaign-c.json"]
    monkeypatch.setattr(store, "put_if_absent", refuse)
    (finding,) = check_campaigns(store, "lab")
    assert (finding.kind, finding.is_damage) == ("incomplete", False)
    assert "could not be corrected: no permission" in finding.detail


def test_an_unreachable_archive_is_an_error_and_corrects_nothing(store, monkeypatch):
    def away(key):
        raise ArchiveUnavailable("no connection")

    before = dict(store.objects)
    monkeypatch.setattr(store, "find", away)
    with pytest.raises(ArchiveUnavailable):
        list(check_campaigns(store, "lab"))
    assert store.objects == before
