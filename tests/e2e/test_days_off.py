"""An installation that is switched off for twenty days, while the laboratory works on.

The laboratory begins twenty days ago, and every time that Prefect has stored is put back by twenty days while nothing
runs: to the server, the worker and the sweep it is the same as having been off. Nothing else is done for them afterwards.
"""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.client.schemas.schedules import CronSchedule

from prefect_assay.archive import verify
from prefect_assay.blocks import SpendingPolicy
from prefect_assay.cli.loops.schedule import schedule_loop
from support.runs.prefect_tables import sql
from support.runs.world import EGFR, a_world, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]

DAYS = 20
DESIGN = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
_COLUMNS = """SELECT format('UPDATE %I SET %I = %I - interval ''{days} days'';', table_name, column_name, column_name)
 FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
 WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND data_type = 'timestamp with time zone'"""
_DETAILS = """UPDATE flow_run_state SET state_details = jsonb_set(state_details::jsonb, '{{{field}}}', to_jsonb(
 (state_details->>'{field}')::timestamptz - interval '{days} days'))::json WHERE state_details->>'{field}' IS NOT NULL"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with a_world(
        tmp_path_factory.mktemp("off"),
        stack_options={"sweep": True},
        lab_options=("--epoch", (datetime.now(UTC) - timedelta(days=DAYS)).isoformat()),
    ) as made:
        yield made


# What the sweep has noted by this machine's clock; the rest of its notes is in the laboratory's time.
_MACHINES_TIMES = re.compile(r'("(?:swept|walked|canceled|since|moved|full_check|used)":")([^"]+)')


def put_back(database, days):
    """Move every time that Prefect has stored; also those in the name of a question and in the sweep's memory."""
    for statement in sql(database, _COLUMNS.format(days=days)).splitlines():
        sql(database, statement)
    for field in ("pause_timeout", "scheduled_time"):
        sql(database, _DETAILS.format(field=field, days=days))
    names = sql(database, "SELECT DISTINCT key FROM flow_run_input")
    for until in set(re.findall(r"-until-(\d+)-", names)):
        old, new = f"-until-{until}-", f"-until-{int(until) - days * 86400}-"
        for table, column in (
            ("flow_run_input", "key"),
            ("flow_run_state", "state_details"),
            ("flow_run", "empirical_policy"),
        ):
            kind = "" if column == "key" else "::json"
            sql(database, f"UPDATE {table} SET {column} = replace({column}::text, '{old}', '{new}'){kind}")
    for line in sql(
        database, "SELECT name, value #>> '{}' FROM variable WHERE name LIKE 'assay_sweep%'"
    ).splitlines():
        name, memory = line.split("|", 1)
        value = json.dumps(_MACHINES_TIMES.sub(lambda found: found[1] + earlier(found[2], days), memory))
        sql(database, f"UPDATE variable SET value = $${value}$$ WHERE name = '{name}'")


def earlier(moment, days):
    return (datetime.fromisoformat(moment) - timedelta(days=days)).isoformat()


def test_after_twenty_days_off_each_run_ends_as_it_should_and_a_schedule_makes_one_round(world):
    world.stack.stop_receiver()  # what it would wake is not the question
    ready = world.experiment("ready", DESIGN)
    late = world.experiment("late", DESIGN)
    tight = SpendingPolicy(per_experiment_cents=1, per_campaign_cents=5_000_000)
    tight.save("off-tight", overwrite=True)
    asks = world.experiment("asks", DESIGN, policy=tight, payment_method="async_invoice", wallet=None)
    for run in (ready, late, asks):
        world.until(run, "Suspended", seconds=180)
    folder = world.folder / "designs"
    folder.mkdir()
    loop = world.shared() | {
        "loop_id": "daily",
        "source": str(folder),
        "settle_seconds": 0,
        "assay": {"experiment_type": "affinity", "method": "bli", "target": EGFR},
    }
    schedule_loop("daily", CronSchedule(cron="0 6 * * *", timezone="Europe/Berlin"), loop)

    def planned():
        found = world.api.read_flow_runs(
            flow_filter=FlowFilter(name=FlowFilterName(any_=["design-build-test"])),
        )
        return len(found) >= 3 and found

    starts = eventually(planned, seconds=90, what="the scheduled starts")
    (order,) = world.orders("late")
    world.stack.lab.event("stall_review", order.id)
    # Ten days: in the laboratory's time they begin with the order.
    for run in (ready, late):
        world.api.update_flow_run(run.id, parameters=world.run(run).parameters | {"deadline_days": 10})
    world.stack.stop_runner()
    world.stack.stop_server()

    world.advance(days=DAYS)
    for n in (1, 2):
        (folder / f"monday-{n}.fasta").write_text(f">design-{n}\n{DESIGN[:-n]}\n")
    with world.stack.database.embedded as database:
        put_back(database, DAYS)
    world.stack.start_server()
    world.stack.start_runner()

    world.until(ready, "Completed", seconds=300)
    assert verify(world.archive.get_store(), "ready").versions == 1
    ended = world.until(late, "Failed", seconds=180)
    assert "Overdue" in ended.state.message
    assert order.code in ended.state.message
    world.until(asks, "ApprovalExpired", seconds=180)
    assert world.orders("asks") == []
    # Three starts were missed: one measures the first file, the others change nothing.
    eventually(lambda: world.settlements("daily-"), seconds=180, what="the first round")
    (waits,) = eventually(lambda: rested(world, starts), seconds=180, what="the missed starts to have looked")
    assert [order.name.split()[0] for order in world.orders("daily-")] == ["daily-monday-1"]
    world.stack.start_receiver()
    world.advance(days=DAYS)
    eventually(lambda: len(world.settlements("daily-")) == 2, seconds=180, what="the second round")
    assert not world.run(waits).state.is_failed()
    for n in (1, 2):
        (order,) = world.orders(f"daily-monday-{n}")
        (payment,) = world.settlements(f"daily-monday-{n}")
        assert payment["experiment_id"] == order.id
    assert len(world.settlements("ready")) == len(world.settlements("late")) == 1


def rested(world, starts):
    """The one run of the missed starts that waits, once the others have ended."""
    runs = [world.run(start) for start in starts if world.run(start).expected_start_time < datetime.now(UTC)]
    waiting = [run for run in runs if run.state.name == "Suspended"]
    ended = [run for run in runs if run.state.is_completed()]
    return waiting if len(waiting) == 1 and len(waiting) + len(ended) == len(runs) else None
