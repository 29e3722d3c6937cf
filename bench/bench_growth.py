"""What experiments and sweeps leave behind: rows and bytes in Prefect's database, files and bytes in the archive.

    python bench/bench_growth.py [--experiments 5] [--sweeps 10]

A Prefect server on its own PostgreSQL, the lab, one design per experiment, each ordered, paid by machine, woken by webhooks
over sixteen lab days and archived; then sweeps without news. Bytes are those of the stored values, compressed as PostgreSQL
keeps them; rows and indexes take about half of it again. Events are deleted by Prefect after a week by default, and are
counted by themselves.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import asyncpg

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from prefect_assay.blocks.deployment_runs import start_run
from support.runs.world import a_world

EVENTS = {"events", "event_resources"}
SLOW = ("log", "task_run", "task_run_state", "artifact")  # written by the server's own queues
RESIDUES = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"
DAYS = 366
SWEEPS_A_DAY = 288


async def measured(address):
    """Rows and bytes of each table."""
    connection = await asyncpg.connect(address)
    try:
        columns = await connection.fetch(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"
        )
        tables = {}
        for row in columns:
            tables.setdefault(row["table_name"], []).append(row["column_name"])
        sizes = {}
        for table, names in tables.items():
            stored = " + ".join(f'COALESCE(pg_column_size("{name}"), 0)' for name in names)
            line = await connection.fetchrow(f'SELECT count(*), COALESCE(sum({stored}), 0) FROM "{table}"')
            sizes[table] = (line[0], int(line[1]))
        return sizes
    finally:
        await connection.close()


def difference(before, after, times):
    return {
        table: ((after[table][0] - before[table][0]) / times, (after[table][1] - before[table][1]) / times)
        for table in after
        if after[table] != before.get(table, (0, 0))
    }


def show(title, sizes):
    print(f"\n{title}")
    for table, (rows, size) in sorted(sizes.items(), key=lambda item: -item[1][1]):
        print(f"  {table:28} {rows:8.1f} rows {size / 1000:8.1f} kB")
    for name, chosen in (("stay", sizes.keys() - EVENTS), ("events, for a week", sizes.keys() & EVENTS)):
        rows, size = (sum(sizes[table][index] for table in chosen) for index in (0, 1))
        print(f"  {name:28} {rows:8.1f} rows {size / 1000:8.1f} kB")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--experiments", type=int, default=5)
    options.add_argument("--sweeps", type=int, default=10)
    chosen = options.parse_args()
    env = {"PREFECT_RESULTS_PERSIST_BY_DEFAULT": "false"}
    with (
        tempfile.TemporaryDirectory(prefix="bench-growth-") as name,
        a_world(Path(name) / "world", stack_options={"env": env, "start_seconds": 600}) as world,
    ):
        address = world.stack.database.embedded.url.replace("+asyncpg", "")

        def settled():
            """What has been written, once events and logs have arrived."""
            sizes, known = asyncio.run(measured(address)), None
            while known != (known := {table: sizes[table] for table in SLOW}):
                time.sleep(15)
                sizes = asyncio.run(measured(address))
            return sizes

        first = settled()
        runs = [
            world.experiment(f"growth-{n}", RESIDUES[: len(RESIDUES) - n]) for n in range(chosen.experiments)
        ]
        for run in runs:
            world.until(run, "Suspended", seconds=600)
        for _ in range(16):
            world.advance(days=1)
        for run in runs:
            world.until(run, "Completed", seconds=600)
        second = settled()
        files = [path.stat().st_size for path in (world.folder / "archive").rglob("*") if path.is_file()]
        show("one experiment", difference(first, second, chosen.experiments))
        count, size = len(files) / chosen.experiments, sum(files) / chosen.experiments
        print(f"  archive: {count:.0f} files, {size / 1000:.0f} kB", flush=True)
        for _ in range(chosen.sweeps):
            world.until(start_run("sweep/assay-sweep", {}), "Completed", "CompletedWithGaps", seconds=600)
        third = settled()
    of_sweep = difference(second, third, chosen.sweeps)
    show("one sweep without news", of_sweep)
    kept = [of_sweep[table] for table in of_sweep.keys() - EVENTS]
    rows, size = (sum(growth[index] for growth in kept) * SWEEPS_A_DAY * DAYS for index in (0, 1))
    print(f"\na year of sweeps, if none is removed: {rows:,.0f} rows, {size / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()
