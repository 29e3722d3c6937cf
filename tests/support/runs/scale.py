"""A PostgreSQL database and a Redis of its own for one test, and a second Prefect server on both.

The addresses come from the environment; without them the tests that need them are skipped with a line that says so.
"""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import asyncpg
import redis

from prefect_assay.deployments.settings_files import POSTGRES, read_shipped_settings
from prefect_assay.local.environment import free_ports
from prefect_assay.local.loopback import HOST
from prefect_assay.local.processes import Child
from support.runs.world import healthy

POSTGRES_VARIABLE = "PREFECT_ASSAY_TEST_POSTGRES"
REDIS_VARIABLE = "PREFECT_ASSAY_TEST_REDIS"
MISSING = f"{POSTGRES_VARIABLE} and {REDIS_VARIABLE} name no PostgreSQL and Redis to test on"


def named() -> bool:
    """Whether the environment names both services."""
    return POSTGRES_VARIABLE in os.environ and REDIS_VARIABLE in os.environ


@contextmanager
def shared_services() -> Iterator[dict[str, str]]:
    """The shipped settings of `postgres.env` on a new database, which is dropped at the end."""
    database = f"assay_test_{uuid4().hex[:12]}"
    asyncio.run(_execute(f'CREATE DATABASE "{database}"'))
    address = os.environ[REDIS_VARIABLE]
    with redis.Redis.from_url(address) as store:
        was_empty = store.dbsize() == 0
        try:
            yield read_shipped_settings(POSTGRES) | {
                "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"{_server()}/{database}",
                "PREFECT_REDIS_MESSAGING_URL": address,
                "PREFECT_SERVER_DOCKET_URL": address,
                "PREFECT_SERVER_DOCKET_NAME": database,
            }
        finally:
            asyncio.run(_execute(f'DROP DATABASE "{database}" WITH (FORCE)'))
            if was_empty:  # what is in it now is this test's
                store.flushdb()


@contextmanager
def another_server(stack) -> Iterator[str]:
    """A second Prefect server with the settings of a stack's; its API address."""
    (port,) = free_ports(1)
    url = f"http://{HOST}:{port}/api"
    env = {name: value for name, value in stack.env.items() if name != "PREFECT_API_URL"}
    child = Child(
        "second server",
        [sys.executable, "-m", "prefect", "server", "start", "--host", HOST, "--port", str(port)],
        env=env | {"PREFECT_SERVER_UI_API_URL": url},
        cwd=stack.folder,
        log=stack.folder / "logs" / "second-server.log",
    )
    try:
        child.wait_until(lambda: healthy(url), seconds=120)
        yield url
    finally:
        child.stop()


def _server() -> str:
    return os.environ[POSTGRES_VARIABLE].rpartition("/")[0]


async def _execute(statement: str) -> None:
    address = os.environ[POSTGRES_VARIABLE].replace("postgresql+asyncpg://", "postgresql://")
    connection = await asyncpg.connect(address)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
