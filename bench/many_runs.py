"""Thousands of suspended runs in a moment: one made through the API, the others copies of its rows in the database."""

import json
import sqlite3
from contextlib import closing
from uuid import UUID, uuid4

import asyncpg

from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG, EXPERIMENT_TAG

RUN, STATE = "flow_run", "flow_run_state"
# The two tables refer to each other: runs come first, without their states.
JOIN = f"UPDATE {RUN} SET state_id = (SELECT id FROM {STATE} WHERE flow_run_id = {RUN}.id) WHERE state_id IS NULL"


def tags(number):
    """As the run of a campaign of one experiment carries them."""
    return [f"{EXPERIMENT_TAG}{uuid4()}", f"{CAMPAIGN_TAG}bench-{number}"]


def copies(run, state, tags_of_each):
    """Rows for both tables, each pair with ids, a name and tags of its own."""
    on_sqlite = isinstance(run["tags"], str)
    for number, own_tags in enumerate(tags_of_each):
        new_run, new_state = uuid4(), uuid4()
        names = {str(run["id"]): new_run, str(state["id"]): new_state}
        changes = {"name": f"bench-{number}", "state_id": None, "idempotency_key": None}
        changes["tags"] = json.dumps(own_tags) if on_sqlite else own_tags
        yield renamed(run, names) | changes, renamed(state, names)


def renamed(row, names):
    """A row with every mention of an old id replaced."""

    def value(old):
        if isinstance(old, UUID):
            return names.get(str(old), old)
        if isinstance(old, str):
            for was, now in names.items():
                old = old.replace(was, str(now))
        return old

    return {column: value(old) for column, old in row.items()}


def copy_on_sqlite(path, run_id, tags_of_each):
    with closing(sqlite3.connect(path, timeout=60)) as database:
        database.row_factory = sqlite3.Row
        run = dict(database.execute(f"SELECT * FROM {RUN} WHERE id = ?", [str(run_id)]).fetchone())
        state = dict(database.execute(f"SELECT * FROM {STATE} WHERE id = ?", [run["state_id"]]).fetchone())
        runs, states = zip(*copies(run, state, tags_of_each), strict=True)
        for table, rows in ((RUN, runs), (STATE, states)):
            columns = ", ".join(rows[0])
            marks = ", ".join("?" * len(rows[0]))
            database.executemany(
                f"INSERT INTO {table} ({columns}) VALUES ({marks})", [tuple(row.values()) for row in rows]
            )
        database.execute(JOIN)
        database.commit()


async def copy_on_postgres(address, run_id, tags_of_each):
    connection = await asyncpg.connect(address)
    try:
        run = dict(await connection.fetchrow(f"SELECT * FROM {RUN} WHERE id = $1", run_id))
        state = dict(await connection.fetchrow(f"SELECT * FROM {STATE} WHERE id = $1", run["state_id"]))
        runs, states = zip(*copies(run, state, tags_of_each), strict=True)
        for table, rows in ((RUN, runs), (STATE, states)):
            columns = ", ".join(rows[0])
            marks = ", ".join(f"${place}" for place in range(1, len(rows[0]) + 1))
            await connection.executemany(
                f"INSERT INTO {table} ({columns}) VALUES ({marks})", [tuple(row.values()) for row in rows]
            )
        await connection.execute(JOIN)
        await connection.execute("ANALYZE")
    finally:
        await connection.close()
