"""What thousands of suspended campaigns cost: server CPU, memory, processes, and the search and resume of a wake.

    python bench/bench_waiting.py [--runs 10000] [--idle 600] [--on embedded] [--on sqlite] [--on postgres]

On the server's own PostgreSQL, on SQLite, and on PostgreSQL with Redis where PREFECT_ASSAY_TEST_POSTGRES and
PREFECT_ASSAY_TEST_REDIS name them (a database of its own is made there and dropped). Server, receiver, lab and served flows run with the shipped
settings, but for the polling interval while wakes are measured. The runs are suspended and have the tags and parameters of real ones: one is made through the API, the
others are copies of its rows.
"""

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import asyncpg
import psutil
import redis
from installation import installation
from many_runs import copy_on_postgres, copy_on_sqlite, tags
from prefect.client.orchestration import get_client
from prefect.states import Completed, Suspended

from prefect_assay.blocks.block_references import as_parameter
from prefect_assay.campaigns.runs.tags import EXPERIMENT_TAG
from prefect_assay.campaigns.runs.wake import wake_runs
from prefect_assay.deployments.settings_files import POSTGRES, read_shipped_settings
from prefect_assay.local.processes import list_descendants

URL = "PREFECT_SERVER_DATABASE_CONNECTION_URL"
POSTGRES_VARIABLE, REDIS_VARIABLE = "PREFECT_ASSAY_TEST_POSTGRES", "PREFECT_ASSAY_TEST_REDIS"
CPU_TARGET, LATENCY_TARGET = 3.0, 1.1
SETTLE_SECONDS = 60  # what the start of the runner and the last wakes leave to the server is not waiting
UNLOADED_SECONDS = 60
WAKES = 40  # searches and resumes
WHOLE_WAKES = 41
# While wakes are measured: the wait for a poll depends on nothing that waits, and would hide a slower wake.
POLL_SECONDS = 1
SUSPENDED = {"flow_runs": {"state": {"type": {"any_": ["PAUSED"]}}}}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--runs", type=int, default=10_000)
    options.add_argument(
        "--idle", type=float, default=600, help="seconds over which the CPU is measured; a turn of every loop"
    )
    options.add_argument("--on", action="append", choices=["embedded", "sqlite", "postgres"])
    chosen = options.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before", flush=True)
    for name in chosen.on or ("embedded", "sqlite", "postgres"):
        with tempfile.TemporaryDirectory(prefix="bench-waiting-") as folder:
            if name == "embedded":
                measure("The server's own PostgreSQL", Path(folder), chosen, env={}, address=_embedded)
            elif name == "sqlite":
                file = Path(folder) / "prefect.db"
                env = {URL: f"sqlite+aiosqlite:///{file}"}
                measure("SQLite", Path(folder), chosen, env=env, address=lambda _: None)
            elif POSTGRES_VARIABLE in os.environ and REDIS_VARIABLE in os.environ:
                with own_database() as (env, database):
                    there = _plain(f"{_server()}/{database}")
                    measure("PostgreSQL and Redis", Path(folder), chosen, env=env, address=lambda _: there)  # noqa: B023
            else:
                print(f"\nPostgreSQL: left out, {POSTGRES_VARIABLE} and {REDIS_VARIABLE} do not name one")
    print(f"load {os.getloadavg()[0]:.1f} after")


def measure(name, folder, chosen, *, env, address):
    with installation(folder, env=env) as made:
        database = address(made)
        print(f"\n{name}, {chosen.runs} suspended runs", flush=True)
        run = made.suspended_campaign("bench-waiting")
        key = made.order_key(run)
        time.sleep(SETTLE_SECONDS)
        report_idle(made, 1, UNLOADED_SECONDS, database)
        with made.polling_every(POLL_SECONDS):
            whole = whole_wake(made, run, key)
        unloaded = wakes(made)
        start = time.monotonic()
        suspend(made, chosen.runs, database)
        print(f"{time.monotonic() - start:8.0f} s to suspend {chosen.runs} runs", flush=True)
        time.sleep(SETTLE_SECONDS)
        cpu = report_idle(made, chosen.runs, chosen.idle, database)
        with made.polling_every(POLL_SECONDS):
            whole_loaded = whole_wake(made, run, key)
        loaded = wakes(made)
        print(
            f"{whole * 1000:8.0f} ms from a delivery to the run's state Running with nothing else suspended"
        )
        print(f"{whole_loaded * 1000:8.0f} ms with {chosen.runs}: {whole_loaded / whole:.2f} times")
        print(
            f"{unloaded * 1000:8.1f} ms to find and resume one run with nothing else suspended (median of {WAKES})"
        )
        print(f"{loaded * 1000:8.1f} ms with {chosen.runs}")
        verdict("server CPU", cpu, CPU_TARGET)
        verdict("wake, loaded to unloaded", whole_loaded / whole, LATENCY_TARGET)


def verdict(what, value, target):
    print(f"{what} {value:.2f}: {'within' if value < target else 'OVER'} the target of {target}", flush=True)


def report_idle(made, runs, seconds, database):
    """Percent of one core that the server takes while nothing happens but waiting."""
    server = made.stack.pid("server")
    before, others, start = cpu_of(server), database_cpu(database), time.monotonic()
    flows = set()
    while time.monotonic() - start < seconds:
        time.sleep(1)
        flows |= {entry.pid for entry in made.stack.runner_processes()}
    took = time.monotonic() - start
    percent = 100 * (cpu_of(server) - before) / took
    text = f"{percent:8.1f} % of a core, server, over {took:.0f} s with {runs} runs suspended"
    if database:
        spent = sum(now - others.get(pid, 0.0) for pid, now in database_cpu(database).items())
        text += f"; PostgreSQL {100 * spent / took:.1f} %"
    print(f"{text}; server {memory_of(server):.0f} MiB; {len(flows)} flow processes", flush=True)
    return percent


def suspend(made, runs, database):
    """Suspended runs of the deployed campaign flow: one through the API, copies of it in the database."""
    with get_client(sync_client=True) as api:
        deployment = api.read_deployment_by_name("campaign/assay-campaign")
        first = api.create_flow_run_from_deployment(
            deployment.id,
            parameters=parameters_of(made),
            tags=tags(0),
            state=Suspended(
                pause_expiration_time=datetime.now(UTC) + timedelta(days=75),
                pause_key=f"look-0-{int(time.time()) + 21_600}-{uuid4().hex}",
            ),
        )
        others = [tags(number) for number in range(1, runs)]
        if database:
            asyncio.run(copy_on_postgres(database, first.id, others))
        else:
            copy_on_sqlite(made.stack.folder.parent / "prefect.db", first.id, others)
        counted = api.request("POST", "/flow_runs/count", json=SUSPENDED).json()
        if counted < runs:
            raise SystemExit(f"{counted} runs are suspended, not {runs}")


def parameters_of(made):
    """As a person gives them to a campaign."""
    parameters = {name: as_parameter(value) for name, value in made.parameters.items()}
    return parameters | {"campaign_id": "bench"}


def whole_wake(made, run, key):
    """Median seconds from a signed delivery to the woken run's state Running; it suspends again each time."""
    taken = []
    for _ in range(WHOLE_WAKES):
        sent, _ = made.wake(run, key)
        time.sleep(1)
        made.asleep(run)
        states = made.api.read_flow_run_states(run.id)
        running = [state.timestamp.timestamp() for state in states if state.name == "Running"]
        taken.append(min(moment for moment in running if moment > sent) - sent)
        time.sleep(random.random())  # not in step with the polls
    return statistics.median(taken)


def wakes(made):
    """Median seconds to find one run by its tag and resume it; the runs are gone afterwards."""
    made.stack.stop_runner()  # nothing of this may start a process
    taken = []
    with get_client(sync_client=True) as api:
        deployment = api.read_deployment_by_name("campaign/assay-campaign")
        for _ in range(WAKES):
            tag = f"{EXPERIMENT_TAG}{uuid4()}"
            run = api.create_flow_run_from_deployment(
                deployment.id,
                parameters=parameters_of(made),
                tags=[tag],
                state=Suspended(timeout_seconds=10**7, pause_key=tag),
            )
            start = time.perf_counter()
            woken = wake_runs(api, tag)
            taken.append(time.perf_counter() - start)
            if woken != [run.id]:
                raise SystemExit(f"the wake resumed {woken}")
            api.set_flow_run_state(run.id, Completed(), force=True)
    made.stack.start_runner()
    return statistics.median(taken)


def cpu_of(pid):
    """Seconds of CPU of a process, its living descendants, and those that have ended."""
    return sum(_cpu(one) for one in [pid, *(below.pid for below in list_descendants(pid))])


def _cpu(pid):
    try:
        return sum(psutil.Process(pid).cpu_times()[:4])  # its own and its children's
    except psutil.NoSuchProcess:
        return 0.0


def memory_of(pid):
    """MiB of resident memory of a process and its descendants."""
    return sum(one.memory_info().rss for one in (psutil.Process(pid), *list_descendants(pid))) / (1 << 20)


def database_cpu(database):
    """Seconds of CPU of each PostgreSQL process that serves a database; none without one."""
    return {pid: _cpu(pid) for pid in asyncio.run(_backends(database))} if database else {}


async def _backends(database):
    connection = await asyncpg.connect(database)
    try:
        rows = await connection.fetch("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
        return [row["pid"] for row in rows]
    finally:
        await connection.close()


@contextmanager
def own_database():
    """A database of its own on the named PostgreSQL: the settings of a server on it, and its name."""
    database = f"assay_bench_{uuid4().hex[:12]}"
    asyncio.run(_execute(f'CREATE DATABASE "{database}"'))
    address = os.environ[REDIS_VARIABLE]
    with redis.Redis.from_url(address) as store:
        was_empty = store.dbsize() == 0
    try:
        settings = {
            URL: f"{_server()}/{database}",
            "PREFECT_REDIS_MESSAGING_URL": address,
            "PREFECT_SERVER_DOCKET_URL": address,
            "PREFECT_SERVER_DOCKET_NAME": database,
        }
        yield read_shipped_settings(POSTGRES) | settings, database
    finally:
        asyncio.run(_execute(f'DROP DATABASE "{database}" WITH (FORCE)'))
        if was_empty:  # what is in it now is this run's
            with redis.Redis.from_url(address) as store:
                store.flushdb()


async def _execute(statement):
    connection = await asyncpg.connect(_plain(os.environ[POSTGRES_VARIABLE]))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _embedded(made):
    return _plain(made.stack.database.embedded.url)


def _server():
    return os.environ[POSTGRES_VARIABLE].rpartition("/")[0]


def _plain(url):
    return url.replace("postgresql+asyncpg://", "postgresql://")


if __name__ == "__main__":
    main()
