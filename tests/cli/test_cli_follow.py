"""`prefect-assay run --wait`: it follows the campaign by its log, and ends with what the log says of the end."""

import json
from uuid import uuid4

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.states import Cancelled, Crashed, Failed, Running
from prefect.testing.utilities import prefect_test_harness

from prefect_assay.blocks import LocalArchive
from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG, add_tags
from prefect_assay.campaigns.stop import reopen_campaign
from prefect_assay.cli.campaigns import follow as follow_module
from prefect_assay.cli.campaigns import run as run_module
from prefect_assay.cli.campaigns.follow import follow
from prefect_assay.errors import ArchiveUnavailable, CampaignFailed, InputError, NotFound
from prefect_assay.orders.ledger.campaign_log import CampaignLog
from support.campaign_logs import WrittenCampaign


@pytest.fixture(scope="module")
def client():
    with prefect_test_harness(server_startup_timeout=120), get_client(sync_client=True) as client:
        yield client


@pytest.fixture
def archive(tmp_path):
    return LocalArchive(root=str(tmp_path))


@pytest.fixture
def run(client):
    @flow(name="campaign")
    def played():
        pass

    return client.create_flow_run(played, name="c-1, 2 designs")


@pytest.fixture
def looks(monkeypatch):
    """What happens after each look, in place of the pause until the next one."""
    steps = []

    def pause(_seconds):
        assert steps, "it looks again, and nothing happens any more"
        steps.pop(0)()

    monkeypatch.setattr(follow_module.time, "sleep", pause)
    return steps


def begun(archive, run, name="c-1"):
    written = WrittenCampaign(archive.get_store(), archive.prefix, name)
    written.log.note_run(str(run.id), run.name)
    return written


def test_it_ends_well_with_all_results(archive, run, looks, capsys):
    def finish():
        begun(archive, run).log.finish("2 measured", complete=True, report="/archive/report.html")

    looks += [lambda: None, finish]
    follow(archive, "c-1", run, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "Complete: 2 measured",
        "Report of c-1: /archive/report.html",
    ]


def test_it_goes_on_with_the_run_that_replaces_the_first(archive, run, looks, client, capsys):
    written = begun(archive, run)
    looks += [
        lambda: client.set_flow_run_state(run.id, Failed(message="by hand"), force=True),
        lambda: client.delete_flow_run(run.id),
        lambda: written.log.note_run(str(uuid4()), "second", restarted=True),
        lambda: written.log.finish("2 measured", complete=True),
    ]
    follow(archive, "c-1", run, as_json=True)
    (view,) = json.loads(capsys.readouterr().out)["campaigns"]
    assert (view["progress"], len(view["runs"])) == ("complete", 2)


@pytest.mark.parametrize("end", ["incomplete", "stopped"])
def test_without_complete_results_the_exit_code_is_1(archive, run, looks, end):
    log = begun(archive, run).log
    if end == "stopped":
        log.stop("grace", "prefect-assay cancel")
    else:
        log.finish("1 of 2 measured", complete=False)
    with pytest.raises(SystemExit) as stopped:
        follow(archive, "c-1", run, as_json=False)
    assert stopped.value.code == 1


def test_an_earlier_end_is_not_the_end_of_this_start(archive, run, looks):
    written = WrittenCampaign(archive.get_store(), archive.prefix, "c-1")
    written.log.finish("refused", complete=False)

    def begin_again():
        written.start()
        written.log.note_run(str(run.id), run.name)

    looks += [lambda: None, begin_again, lambda: written.log.finish("2 measured", complete=True)]
    follow(archive, "c-1", run, as_json=False)


@pytest.mark.parametrize("state", [Failed, Crashed, Cancelled])
def test_a_run_that_ends_before_it_began_the_campaign_says_why(archive, run, looks, client, state):
    looks.append(lambda: client.set_flow_run_state(run.id, state(message="no such block"), force=True))
    with pytest.raises(
        CampaignFailed, match="began no campaign, so nothing was ordered by it: no such block"
    ):
        follow(archive, "c-1", run, as_json=False)


def test_a_run_that_was_deleted_before_it_began_is_an_error(archive, run, looks, client):
    looks.append(lambda: client.delete_flow_run(run.id))
    with pytest.raises(CampaignFailed, match="was deleted before it began"):
        follow(archive, "c-1", run, as_json=False)


def test_an_archive_that_does_not_answer_for_a_while_is_asked_again(archive, run, looks, monkeypatch):
    begun(archive, run).log.finish("2 measured", complete=True)
    whole = CampaignLog.read

    def away(_log):
        raise ArchiveUnavailable("the bucket does not answer")

    monkeypatch.setattr(CampaignLog, "read", away)
    looks += [lambda: None, lambda: monkeypatch.setattr(CampaignLog, "read", whole)]
    follow(archive, "c-1", run, as_json=False)


def test_the_campaign_that_the_run_has_begun_is_followed_whatever_id_was_expected(
    archive, run, looks, client
):
    """The worker may read other designs than this machine, where only the path was sent."""

    def begin_another():
        client.set_flow_run_state(run.id, Running(), force=True)
        begun(archive, run, "c-other")
        add_tags(run.id, [f"{CAMPAIGN_TAG}c-other"])

    log = CampaignLog(archive.get_store(), archive.prefix, "c-other")
    looks += [begin_another, lambda: log.finish("2 measured", complete=True)]
    follow(archive, "c-1", run, as_json=False)


def test_reopen_opens_what_a_person_has_canceled_and_invents_no_campaign(archive):
    written = WrittenCampaign(archive.get_store(), archive.prefix, "c-1")
    run_module.refuse_stopped(archive, "c-1")
    written.log.stop("grace", "prefect-assay cancel")
    with pytest.raises(InputError, match=r"canceled by grace on .*; nothing was started\. .* --reopen"):
        run_module.refuse_stopped(archive, "c-1")
    reopen_campaign(written.log, person="grace")
    run_module.refuse_stopped(archive, "c-1")
    assert written.log.read().is_open
    with pytest.raises(NotFound, match="has no campaign 'c-2'"):
        reopen_campaign(CampaignLog(archive.get_store(), archive.prefix, "c-2"), person="grace")
