"""Assets have the form that Prefect's own `@materialize` gives its events, and one id per version."""

from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prefect.assets import Asset
from prefect.assets.core import AssetProperties
from prefect.context import AssetContext
from prefect.states import Completed

from prefect_assay.analysis.results.row import CampaignTable
from prefect_assay.archive.archived import ArchiveRecord
from prefect_assay.campaigns.events import (
    Materialization,
    asset_key,
    emit_fact,
    facts,
    record_facts,
    sending,
)
from prefect_assay.campaigns.flow_results import RoundReport

UPSTREAM = ("s3://assay/c-1/LAB-1", "s3://assay/c-1/LAB-2")


def table(**changes):
    values = {
        "key": "s3://assay/c-1/TABLE",
        "title": "c-1 table",
        "description": "All measured rows of a campaign",
        "version": "abc",
        "upstream": UPSTREAM,
        "metadata": {"rows": 3},
    }
    return Materialization(**values | changes)


@pytest.fixture
def sent(monkeypatch):
    """What reaches Prefect."""
    taken = []
    monkeypatch.setattr(sending, "FlowRunContext", SimpleNamespace(get=object))
    monkeypatch.setattr(sending, "flush_events", lambda: True)
    monkeypatch.setattr(sending, "emit_event", lambda **event: taken.append(event) or event)
    return taken


def test_the_event_is_the_one_that_prefect_emits(sent, monkeypatch):
    fact = table()
    sending.send_event(fact)
    asset = Asset(key=fact.key, properties=AssetProperties(name=fact.title, description=fact.description))
    theirs = []
    monkeypatch.setattr("prefect.events.emit_event", lambda **event: theirs.append(event))
    AssetContext(
        downstream_assets={asset},
        direct_asset_dependencies={Asset(key=key) for key in UPSTREAM},
        materialized_by="prefect-assay",
        materialization_metadata={asset.key: {"rows": 3, "version": "abc"}},
    ).emit_events(Completed())
    ((ours,), prefects) = sent, next(e for e in theirs if "materialization" in e["event"])
    assert (ours["event"], ours["resource"], ours["payload"]) == (
        prefects["event"],
        prefects["resource"],
        prefects["payload"],
    )
    in_order = [sorted(event["related"], key=str) for event in (ours, prefects)]
    assert in_order[0] == in_order[1]


def test_a_version_is_materialized_once_and_another_one_again(sent):
    for _ in range(2):
        with record_facts(None):
            emit_fact(table())
            emit_fact(table(title="renamed", metadata={}))
            emit_fact(table(version="def"))
    assert len(sent) == 4
    assert len({event["id"] for event in sent}) == 2


def test_lineage_leaves_room_for_what_prefect_adds():
    many = table(upstream=tuple(f"s3://assay/c-1/LAB-{n}" for n in range(200)))
    assert len(many.lineage()) < 70


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=600))
def test_every_address_gives_a_key_that_prefect_takes(path):
    for location in (f"/home/{path}/v001", f"s3://bucket/{path}/v012/"):
        Asset(key=asset_key(location))


def test_all_versions_of_an_address_are_one_asset():
    assert (
        asset_key("/a/c-1/LAB-1/v001") == asset_key("/a/c-1/LAB-1/v012/results.csv") == "file:///a/c-1/LAB-1"
    )
    assert asset_key("s3://assay/v2/c/LAB-1/v003") == "s3://assay/v2/c/LAB-1"


def record(code, *, unchanged=False):
    return ArchiveRecord(
        location=f"s3://assay/c-1/{code}/v001",
        experiment_code=code,
        campaign_id="c-1",
        version=1,
        manifest_sha256=f"sha-{code}",
        files=2,
        total_bytes=9,
        unchanged=unchanged,
    )


def materialized(sent):
    return {
        event["resource"]["prefect.resource.id"]: [
            r["prefect.resource.id"] for r in event["related"] if r["prefect.resource.role"] == "asset"
        ]
        for event in sent
        if "materialization" in event["event"]
    }


def test_a_campaigns_table_comes_from_its_experiments_and_its_report_from_the_table(sent):
    made = CampaignTable(location="x", rows=(), record=record("TABLE"))
    for news in (True, False):
        facts.campaign_archived(
            made,
            record("REPORT"),
            experiments=["s3://assay/c-1/LAB-1/v002"],
            reviews=["a", "a", "b"],
            news=news,
        )
    assert materialized(sent) == {
        "s3://assay/c-1/TABLE": ["s3://assay/c-1/LAB-1"],
        "s3://assay/c-1/REPORT": ["s3://assay/c-1/TABLE"],
    }
    review = next(event for event in sent if event["event"] == "assay.curve.review")
    assert (review["payload"]["curves"], review["payload"]["designs"]) == (3, ["a", "b"])


def test_what_an_earlier_run_has_archived_is_no_news(sent):
    with record_facts(None):
        facts.campaign_archived(
            CampaignTable(location="x", rows=(), record=record("TABLE", unchanged=True)),
            record("REPORT", unchanged=True),
            experiments=[],
            reviews=["a"],
            news=False,
        )
    assert sent == []


def test_a_round_is_upstream_of_the_next(sent):
    for name, previous in (("r1", None), ("r2", "r1")):
        facts.round_completed(
            "loop",
            RoundReport(
                name=name,
                campaign_id=f"loop-{name}",
                table=f"/a/loop-{name}/TABLE/v001/results.csv",
                best_kd_M=1e-9,
            ),
            previous,
            news=True,
        )
    failed = RoundReport(name="r3", campaign_id="loop-r3", table=None, best_kd_M=None, problem="canceled")
    facts.round_completed("loop", failed, "r2", news=True)
    assert materialized(sent) == {
        "assay://loop/loop/r1": ["file:///a/loop-r1/TABLE"],
        "assay://loop/loop/r2": ["assay://loop/loop/r1", "file:///a/loop-r2/TABLE"],
    }
    rounds = [event["payload"]["round"] for event in sent if event["event"] == "assay.round.completed"]
    assert rounds == ["r1", "r2", "r3"]
