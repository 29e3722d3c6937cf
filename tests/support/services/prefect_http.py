"""Raw HTTP to a Prefect server: for what Prefect's own client does not offer, such as the headers of a browser."""

from typing import Any

import httpx
from prefect.client.base import PrefectHttpxSyncClient


def open_prefect_http(url: str = "", **options: Any) -> httpx.Client:
    """A client that repeats a request as often as Prefect's own does; every other status is the caller's to judge.

    On SQLite a Prefect server answers 503 (database is locked) now and then, also when it is idle. Prefect's client
    repeats such a request, and a test has to do the same: a status of 503 says nothing about what it tests.
    """
    return PrefectHttpxSyncClient(base_url=url, raise_on_all_errors=False, timeout=60, **options)
