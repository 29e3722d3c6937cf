"""`prefect-assay status`: what the archives of the saved blocks have, at a real Prefect server whose runs decide nothing."""

import io
import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings
from prefect.states import Failed, Running
from prefect.testing.utilities import prefect_test_harness
from rich.console import Console

from prefect_assay.blocks import AssayAccount, AssayCredentials, LocalArchive, S3Archive
from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG, LOOP_TAG
from prefect_assay.campaigns.status import view_of
from prefect_assay.cli.campaigns import find, status
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, ConfigurationError, InputError, NotFound
from prefect_assay.orders.ledger.campaign_log import (
    CampaignLog,
    Looked,
    ShownExperiment,
    StartedKind,
)
from prefect_assay.orders.ledger.open_money import OpenItem, OpenMoney
from prefect_assay.orders.stages import Stage
from support.accounts import make_account
from support.campaign_logs import WrittenCampaign, started

ACCOUNT = {"account": {}, "assay": {}}


@pytest.fixture(scope="module")
def server():
    with prefect_test_harness(server_startup_timeout=120), get_client(sync_client=True) as client:
        yield client


@pytest.fixture
def client(server):
    yield server
    for run in server.read_flow_runs():
        server.delete_flow_run(run.id)
    for kind in (AssayAccount, LocalArchive, S3Archive):
        for document in server.read_block_documents_by_type(kind.get_block_type_slug()):
            server.delete_block_document(document.id)


@pytest.fixture(autouse=True)
def _configured(monkeypatch):
    monkeypatch.setattr(
        status, "require_api", lambda: None
    )  # the harness has no address that other processes reach


@pytest.fixture
def archive(client, tmp_path):
    (tmp_path / "archive").mkdir()
    block = LocalArchive(root=str(tmp_path / "archive"))
    block.save(f"main-{uuid4().hex[:6]}")
    S3Archive.register_type_and_schema()
    AssayCredentials.register_type_and_schema()
    AssayAccount.register_type_and_schema()
    return block


def campaign(archive, name):
    return WrittenCampaign(archive.get_store(), archive.prefix, name)


def run(client, name="c", *, tags=(), state=None, flow_name="campaign", **parameters):
    @flow(name=flow_name)
    def played(account=None, assay=None, campaign_id=None, loop_id=None):
        pass

    made = client.create_flow_run(played, name=name, tags=list(tags), parameters={**ACCOUNT, **parameters})
    if state is not None:
        client.set_flow_run_state(made.id, state, force=True)
    return made


def show(which=None, *, archive=None, every=False, as_json=True, limit=10, watch=False):
    status.show_status(which, archive=archive, limit=limit, every=every, watch=watch, as_json=as_json)


def shown(capsys, which=None, **options):
    show(which, **options)
    return json.loads(capsys.readouterr().out)


def test_the_open_ones_and_those_of_the_newest_runs_are_listed(client, archive, capsys):
    for name in ("c-open", "c-over", "c-old"):
        campaign(archive, name)
    for name in ("c-over", "c-old"):
        CampaignLog(archive.get_store(), "", name).finish("measured", complete=True)
    run(client, tags=[f"{CAMPAIGN_TAG}c-over"])
    names = {one["name"]: one["progress"] for one in shown(capsys)["campaigns"]}
    assert names == {"c-over": "complete", "c-open": "open"}
    everything = [one["name"] for one in shown(capsys, every=True)["campaigns"]]
    assert everything == ["c-old", "c-over", "c-open"]


def test_a_failed_or_deleted_run_changes_nothing(client, archive, capsys):
    written = campaign(archive, "c-1")
    made = run(client, tags=[f"{CAMPAIGN_TAG}c-1"], state=Failed(message="by hand"))
    written.log.note_run(str(made.id), made.name)
    for which in ("c-1", str(made.id)):
        (view,) = shown(capsys, which)["campaigns"]
        assert (view["name"], view["progress"]) == ("c-1", "open")
    client.delete_flow_run(made.id)
    (view,) = shown(capsys, str(made.id))["campaigns"]
    assert view["runs"][0]["run"] == str(made.id), "the log still names it"


def test_a_run_that_has_begun_nothing_is_listed_with_its_reason(client, archive, capsys):
    waits = run(client, "round-9, 3 designs", campaign_id="round-9")
    derived = run(client, "c-0f1e, 3 designs")
    assert [one["flow_run_id"] for one in shown(capsys, "c-0f1e")["runs_without_log"]] == [str(derived.id)]
    client.delete_flow_run(derived.id)
    failed = run(client, "round-8", state=Failed(message="InvalidSpec: the target is missing"))
    known = shown(capsys)
    assert {one["name"] for one in known["runs_without_log"]} == {"round-9, 3 designs", "round-8"}
    for which in ("round-9", "round-9, 3 designs", str(waits.id)):
        assert [one["flow_run_id"] for one in shown(capsys, which)["runs_without_log"]] == [str(waits.id)]
    show(str(failed.id), as_json=False)
    text = " ".join(capsys.readouterr().out.split())
    assert "ended before it began a campaign: InvalidSpec: the target is missing" in text


def test_what_is_nowhere_is_not_found(client, archive):
    with pytest.raises(NotFound, match="no archive has a campaign or a loop 'round-8'"):
        show("round-8")
    with pytest.raises(NotFound):
        show(str(uuid4()))


def test_runs_of_other_packages_are_none_of_ours(client, archive, capsys):
    @flow(name="campaign")
    def theirs():
        pass

    other = client.create_flow_run(theirs, name="theirs")
    assert shown(capsys)["runs_without_log"] == []
    with pytest.raises(NotFound):
        show(str(other.id))


def test_an_archive_that_cannot_be_read_is_an_error_and_never_no_campaigns(client, archive, capsys, tmp_path):
    campaign(archive, "c-1")
    (tmp_path / "archive").rename(tmp_path / "elsewhere")
    with pytest.raises(SystemExit) as stopped:
        show(as_json=False)
    printed = capsys.readouterr()
    assert stopped.value.code == 5
    assert "No campaigns" not in printed.out
    assert "does not exist here: mount it" in printed.err
    with pytest.raises(ArchiveUnavailable, match="does not exist here"):
        show("c-1")
    with pytest.raises(SystemExit):
        show()
    assert "archives_not_read" in json.loads(capsys.readouterr().out)


def test_an_archive_that_cannot_be_read_hides_no_other(client, archive, capsys, tmp_path):
    (tmp_path / "second").mkdir()
    second = LocalArchive(root=str(tmp_path / "second"))
    second.save("second")
    campaign(second, "c-2")
    (tmp_path / "archive").rmdir()
    with pytest.raises(SystemExit):
        show()
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["campaigns"]] == ["c-2"]
    assert [one["name"] for one in shown(capsys, "c-2")["campaigns"]] == ["c-2"]


def test_campaigns_of_one_id_in_two_archives_are_both_listed(client, archive, capsys, tmp_path):
    (tmp_path / "second").mkdir()
    second = LocalArchive(root=str(tmp_path / "second"))
    second.save("second")
    campaign(archive, "c-1")
    over = campaign(second, "c-1")
    assert len(shown(capsys)["campaigns"]) == 2
    with pytest.raises(InputError, match="several archives have c-1: choose with --archive"):
        show("c-1")
    assert len(shown(capsys, "c-1", archive="second")["campaigns"]) == 1
    made = run(client, tags=[f"{CAMPAIGN_TAG}c-1"])
    over.log.note_run(str(made.id), made.name)
    over.log.finish("measured", complete=True)  # and is not in the index of open ones any more
    assert {one["progress"] for one in shown(capsys)["campaigns"]} == {"open", "complete"}
    assert [one["progress"] for one in shown(capsys, str(made.id))["campaigns"]] == ["complete"]


def test_an_empty_folder_in_place_of_the_archive_is_told_by_the_run_s_tag(client, archive, tmp_path):
    campaign(archive, "c-1")
    made = run(client, tags=[f"{CAMPAIGN_TAG}c-1"])
    (tmp_path / "archive").rename(tmp_path / "elsewhere")
    (tmp_path / "archive").mkdir()  # a mount point without its mount
    with pytest.raises(ArchiveError, match="carries campaign c-1, and no saved archive has its log"):
        show(str(made.id))
    with pytest.raises(SystemExit) as stopped:
        show(as_json=False)
    assert stopped.value.code == 5


def test_two_blocks_of_one_archive_list_it_once(client, archive, capsys):
    archive.model_copy().save("again")
    campaign(archive, "c-1")
    assert len(shown(capsys)["campaigns"]) == 1


def test_an_archive_that_only_an_account_has_is_read_too(client, archive, capsys, tmp_path):
    (tmp_path / "within").mkdir()
    within = LocalArchive(root=str(tmp_path / "within"))
    make_account(archive=within).save("main")
    campaign(within, "c-1")
    assert [one["name"] for one in shown(capsys)["campaigns"]] == ["c-1"]


def test_a_folder_needs_neither_a_block_nor_a_server(client, archive, capsys, tmp_path):
    campaign(archive, "c-1").log.note_run("r-1", "first")
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        for which in (None, "c-1"):
            (view,) = shown(capsys, which, archive=str(tmp_path / "archive"))["campaigns"]
            assert view["name"] == "c-1"
        with pytest.raises(ArchiveError, match="there is no folder"):
            show(archive=str(tmp_path / "nowhere"))


def test_without_an_archive_block_the_next_step_is_named(client):
    with pytest.raises(ConfigurationError, match="save an archive block with `prefect-assay init`"):
        show()


def test_a_loop_shows_its_campaigns_log_and_run(client, archive, capsys):
    ledgers = campaign(archive, "c-1").ledgers
    log = CampaignLog(archive.get_store(), "", "egfr", StartedKind.LOOP)
    log.start(started(ledgers, "egfr", StartedKind.LOOP))
    made = run(client, "loop", flow_name="design-build-test", tags=[f"{LOOP_TAG}egfr"], loop_id="egfr")
    log.note_run(str(made.id), made.name)
    for which in ("egfr", str(made.id)):
        (view,) = shown(capsys, which)["campaigns"]
        assert (view["kind"], view["name"]) == ("loop", "egfr")


def test_a_campaign_and_a_loop_of_one_id_are_both_meant(client, archive, capsys):
    ledgers = campaign(archive, "egfr").ledgers
    CampaignLog(archive.get_store(), "", "egfr", StartedKind.LOOP).start(
        started(ledgers, "egfr", StartedKind.LOOP)
    )
    assert [one["kind"] for one in shown(capsys, "egfr")["campaigns"]] == ["campaign", "loop"]


def test_people_get_the_account_the_runs_and_what_to_copy(client, archive, capsys):
    written = campaign(archive, "c-1")
    written.log.note_run("0f", "first")
    written.log.note_run("1f", "second", restarted=True, why="its run was deleted")
    written.ask("q-1", 90_000)
    show("c-1", as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert "Answer of c-1: prefect-assay approve c-1 --question q-1 --revision 1 --usd 900.00" in lines
    assert "  account without a name (simulated), http://lab.test, organization org-1" in lines
    assert any(
        line.startswith("  started: ") and line.endswith("by ada, deployment campaign/assay-campaign")
        for line in lines
    )
    (line,) = (line for line in lines if line.startswith("  run: second "))
    assert line.endswith("1f, started by the sweep")
    assert any(line.startswith("  log: ") for line in lines)


def test_a_watch_that_is_over_says_what_is_open_and_where_the_report_is(client, archive, capsys, monkeypatch):
    campaign(archive, "c-1").log.finish("2 measured", complete=True, report="/archive/report.html")
    monkeypatch.setattr(status, "read_open_money", lambda _: OpenMoney(notes=("a note",)))
    show("c-1", as_json=False, watch=True)
    lines = capsys.readouterr().out.splitlines()
    assert "  Note: a note" in lines
    assert "Report of c-1: /archive/report.html" in lines


def text_of(width, known):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(status.campaigns_table(known))
    return console.export_text()


@pytest.mark.parametrize("width", [80, 160])
def test_everything_that_is_known_can_be_read_at_any_width(archive, width):
    written = campaign(archive, "round-3")
    written.order(1)
    written.bill(1, 87_600)
    written.pay(1, 87_600)
    written.order(2)
    written.ask("q-1", 131_400, number=2)
    shown_experiment = ShownExperiment(
        experiment_id="exp-round-3-1",
        experiment_code="LAB-001-001",
        stage=Stage.LABORATORY,
        status="in_production",
        expected=datetime(2026, 12, 2, tzinfo=UTC),
    )
    looked = Looked(read_at=datetime.now(UTC), experiments={written.plan.order_keys[0]: shown_experiment})
    written.log.append(looked)
    written.log.note_run("0f", "second", restarted=True, why="its run was deleted")
    item = OpenItem(
        kind="to_pay",
        campaign_id="round-3",
        order_key="k",
        amount_cents=131_400,
        since=datetime.now(UTC) - timedelta(days=3),
    )
    known = status.StatusView([view_of(written.log)], money=OpenMoney(items=(item,)))
    text = text_of(width, known)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    for sentence in (
        "1 in the laboratory, 1 waits for your decision",
        "asks: Experiment 1 was quoted over the cap. 1,314.00 USD. Answer it by",
        "billed 876.00 USD, paid 876.00 USD",
        "in the laboratory; when last read: in production; results expected 2 Dec 2026",
        "approved 500.00 USD, billed 876.00 USD, paid 876.00 USD",
        "the sweep has started 1 further run of it: its run was deleted",
        "open: 1,314.00 USD ordered, not paid",
    ):
        assert sentence in words, text
    assert "LAB-001-001" in words
    priced = known.views[0].questions[0].model_copy(update={"subject": "It costs 1,314.00 USD without VAT."})
    again = known.views[0].model_copy(update={"questions": (priced,)})
    assert "asks: It costs 1,314.00 USD without VAT. Answer it by" in " ".join(
        text_of(width, status.StatusView([again])).split()
    )
    sentences = [line[40:].strip() for line in text.splitlines() if line[40:].strip()]
    assert max(map(len, sentences)) > 35, "no sentence is folded into a column of a few letters"


def test_a_cancellation_names_the_person(archive):
    written = campaign(archive, "c-1")
    written.log.stop("grace", "prefect-assay cancel")
    words = " ".join(text_of(80, status.StatusView([view_of(written.log)])).split())
    assert "stopped" in words
    assert "canceled by grace" in words


def test_a_started_run_is_found_by_what_it_carries(client, archive):
    made = run(client, tags=[f"{LOOP_TAG}egfr@scope", f"{LOOP_TAG}egfr"], state=Running())
    assert find.played_by(client.read_flow_run(made.id)) == [(StartedKind.LOOP, "egfr")]
