"""Lists of runs are read around a run whose parameters the server has stored and cannot send."""

import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectHTTPStatusError
from prefect.testing.utilities import prefect_test_harness

from prefect_assay.blocks import LocalArchive
from prefect_assay.campaigns.runs import queries
from prefect_assay.campaigns.runs.queries import (
    newest_runs,
    read_run,
    read_runs,
    run_filter,
    suspended_filter,
    unreadable_runs,
)
from prefect_assay.cli.campaigns.find import Archives, find_named
from prefect_assay.cli.campaigns.status import show_status
from prefect_assay.cli.services.check import _check_runs
from prefect_assay.errors import UnexpectedAnswer
from prefect_assay.flows.sweep import sweep
from support.services.prefect_http import open_prefect_http

GOOD = {"account": 1, "assay": 2, "campaign_id": "c"}


def nested(levels):
    return "[" * levels + "]" * levels


@flow(name="campaign")
def other_campaign():
    pass


@pytest.fixture(scope="module", autouse=True)
def _server():
    with prefect_test_harness(server_startup_timeout=120):
        yield


@pytest.fixture
def client(_server):
    with get_client(sync_client=True) as client:
        yield client
        for run_id in ids(client):
            client.delete_flow_run(run_id)


@pytest.fixture
def flow_id(client):
    return client.create_flow(other_campaign)


def ids(client):
    return [row["id"] for row in client.request("POST", "/ui/flow_runs/history", json={}).json()]


def add_bad(client, flow_id, tag="t", deployment=None):
    """As a form, a script or another package can: the server stores it, and then fails."""
    before = set(ids(client))
    of = f', "deployment_id": "{deployment}"' if deployment else ""
    content = f'{{"flow_id": "{flow_id}"{of}, "tags": ["{tag}"], "state": {{"type": "PAUSED"}}, "parameters": {{"x": {nested(400)}}}}}'
    with open_prefect_http(str(client.api_url)) as api:
        answer = api.post("/flow_runs/", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == 500
    (run_id,) = set(ids(client)) - before
    return run_id


def add_good(client, flow_id, number):
    for n in range(number):
        body = {
            "flow_id": str(flow_id),
            "tags": ["t"],
            "state": {"type": "PAUSED"},
            "parameters": GOOD,
            "name": f"good-{n}",
        }
        client.request("POST", "/flow_runs/", json=body)


def test_every_list_is_read_around_the_unreadable_runs_and_names_them(client, flow_id, monkeypatch):
    monkeypatch.setattr(queries, "_PAGE", 5)
    add_good(client, flow_id, 3)
    bad = {add_bad(client, flow_id), add_bad(client, flow_id)}
    add_good(client, flow_id, 4)
    with pytest.raises(PrefectHTTPStatusError):
        client.read_flow_runs()
    assert len(read_runs(client, suspended_filter())) == 7
    assert len({run.id for run in read_runs(client, run_filter(tags=["t"]))}) == 7
    assert [run.name for run in newest_runs(client, "campaign", 100)].count("good-2") == 2
    assert set(map(str, unreadable_runs(client))) == bad


def test_reading_again_costs_three_requests_a_page(client, flow_id, monkeypatch):
    add_good(client, flow_id, 3)
    add_bad(client, flow_id)
    read_runs(client, suspended_filter())
    sent = []
    send = client._client.send
    monkeypatch.setattr(client._client, "send", lambda *a, **k: sent.append(a) or send(*a, **k))
    assert len(read_runs(client, suspended_filter())) == 3
    assert len(sent) == 3


def test_a_server_that_fails_for_every_run_is_not_asked_without_end(client, flow_id, monkeypatch):
    for _ in range(2):
        add_bad(client, flow_id)
    monkeypatch.setattr(queries, "_REQUESTS_MAX", 2)
    with pytest.raises(PrefectHTTPStatusError):
        read_runs(client, suspended_filter())


def test_one_run_that_cannot_be_read_is_named_with_the_next_step(client, flow_id):
    bad = add_bad(client, flow_id)
    for read in (lambda: read_run(client, bad), lambda: find_named(client, Archives([]), bad)):
        with pytest.raises(UnexpectedAnswer, match=f"prefect flow-run delete {bad}"):
            read()


def test_status_check_and_sweep_name_it(client, flow_id, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("prefect_assay.cli.campaigns.status.require_api", lambda: None)
    add_good(client, flow_id, 1)
    bad = add_bad(client, flow_id, deployment=client.create_deployment(flow_id, name="d"))
    LocalArchive(root=str(tmp_path)).save("here", overwrite=True)
    show_status(None, archive="here", limit=5, every=False, watch=False, as_json=False)
    shown = capsys.readouterr()
    assert bad in shown.err
    assert "has not begun a campaign yet" in shown.out
    assert [line.ok for line in _check_runs(client) if bad in line.text] == [False]
    report = sweep()
    assert [line for line in report.attention if bad in line and "prefect flow-run delete" in line]
    assert not [line for line in report.problems if "500" in line]
