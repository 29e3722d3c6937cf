"""What type checkers see of both faces, and of saved blocks. Never run: `make check` reads it with mypy and pyright.

`type: ignore` marks calls that must be errors: both checkers fail where a comment is not needed.
"""
# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, Protocol, assert_type

from prefect_assay.blocks import AssayExperiment
from prefect_assay.service.client import AssayClient, AsyncAssayClient
from prefect_assay.service.client.http.request import Operation
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.billing import Invoice
from prefect_assay.service.models.experiment import Experiment, ExperimentSummary
from prefect_assay.service.models.result import Result


class Reader(Protocol):
    def experiment(self, experiment_id: str) -> Experiment: ...


def read(_: Reader) -> None: ...


def sync_calls(client: AssayClient, operation: Operation[int]) -> None:
    assert_type(client.experiment("e1"), Experiment)
    assert_type(client.experiments(status="done", limit=5), Page[ExperimentSummary])
    assert_type(client.iter_experiments(search="pa-", page_size=5), Iterator[ExperimentSummary])
    assert_type(client.results("e1"), tuple[Result, ...])
    assert_type(client.find_invoice("e1"), Invoice | None)
    assert_type(client.download("/file", chunk_size=1), Iterator[bytes])
    assert_type(client.quote_pdf("e1"), bytes)
    assert_type(client.run(operation), int)
    assert_type(AssayClient.experiment(client, "e1"), Experiment)
    read(client)


async def async_calls(client: AsyncAssayClient, operation: Operation[int]) -> None:
    await assert_type(client.experiment("e1"), Coroutine[Any, Any, Experiment])
    assert_type(await client.experiments(status="done", limit=5), Page[ExperimentSummary])
    assert_type(client.iter_experiments(search="pa-", page_size=5), AsyncIterator[ExperimentSummary])
    assert_type(await client.results("e1"), tuple[Result, ...])
    assert_type(await client.find_invoice("e1"), Invoice | None)
    assert_type(client.download("/file", chunk_size=1), AsyncIterator[bytes])
    assert_type(await client.quote_pdf("e1"), bytes)
    assert_type(await client.run(operation), int)
    assert_type(await AsyncAssayClient.experiment(client, "e1"), Experiment)


def refused(client: AssayClient) -> None:
    client.experiment(1)  # type: ignore[arg-type]
    client.experiment()  # type: ignore[call-arg]
    client.experiments(limit="5")  # type: ignore[arg-type]
    client.tokens(page_size=5)  # type: ignore[call-arg]
    client.iter_tokens(limit=5)  # type: ignore[call-arg]
    AssayClient.experiment("e1")  # type: ignore[call-arg, arg-type]


async def saved_blocks() -> None:
    assert_type(AssayExperiment.load("job"), AssayExperiment)
    assert_type(await AssayExperiment.aload("job"), AssayExperiment)
