"""What type checkers see of the client, and of saved blocks. Never run: `make check` reads it with mypy and pyright.

`type: ignore` marks calls that must be errors: both checkers fail where a comment is not needed.
"""
# pyright: reportUnnecessaryTypeIgnoreComment=true

import asyncio
from collections.abc import Iterator
from typing import assert_type

from prefect_assay.blocks import AssayExperiment
from prefect_assay.orders.payments.interfaces import InvoiceApi
from prefect_assay.service.client import AssayClient
from prefect_assay.service.client.http.request import Operation
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.billing import Invoice
from prefect_assay.service.models.experiment import Experiment, ExperimentSummary
from prefect_assay.service.models.result import Result


def read(_: InvoiceApi) -> None: ...


def calls(client: AssayClient, operation: Operation[int]) -> None:
    assert_type(client.experiments.get("e1"), Experiment)
    assert_type(client.experiments.list(status="done", limit=5), Page[ExperimentSummary])
    assert_type(client.experiments.iterate(search="pa-", page_size=5), Iterator[ExperimentSummary])
    assert_type(client.experiments.list_states(["e1"]), dict[str, ExperimentSummary])
    assert_type(client.experiments.iterate_results("e1"), Iterator[Result])
    assert_type(client.experiments.download_quote_pdf("e1"), bytes)
    assert_type(client.invoices.find_for_experiment("e1"), Invoice | None)
    assert_type(client.documents.download("/file", chunk_size=1), Iterator[bytes])
    assert_type(client.run(operation), int)
    read(client.invoices)


async def calls_in_a_thread(client: AssayClient) -> None:
    assert_type(await asyncio.to_thread(client.experiments.get, "e1"), Experiment)
    rows = await asyncio.to_thread(list, client.experiments.iterate())
    assert_type(rows, list[ExperimentSummary])


def refused(client: AssayClient) -> None:
    client.experiments.get(1)  # type: ignore[arg-type]
    client.experiments.get()  # type: ignore[call-arg]
    client.experiments.list(limit="5")  # type: ignore[arg-type]
    client.tokens.list(page_size=5)  # type: ignore[call-arg]
    client.tokens.iterate(limit=5)  # type: ignore[call-arg]


async def saved_blocks() -> None:
    assert_type(AssayExperiment.load("job"), AssayExperiment)
    assert_type(await AssayExperiment.aload("job"), AssayExperiment)
