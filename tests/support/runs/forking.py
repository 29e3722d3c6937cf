"""What a process of the tests that forks executions of flow runs, or commands, does once, before its first fork."""

import gc
import importlib
import sys
import threading
import time
from contextlib import suppress

import pydantic
from prefect.plugins import load_prefect_collections

from prefect_assay.service.client.http.wire import certificates

# What each of them would import again.
IMPORTED = (
    "prefect.flow_engine",
    "prefect_assay.flows",
    "prefect._internal.observers",
    "anyio._backends._asyncio",
    "prefect_assay.analysis.report.template",
    "prefect_assay.analysis.kinetics.melting",
    "prefect_assay.analysis.kinetics.package",
    "prefect_assay.analysis.kinetics.replicate",
    "scipy.stats",
    "pyarrow.parquet",
    "pandas",  # pyarrow imports it at its first table, wherever it is installed
)


LONGEST_SLEEP = 0.005  # product pauses (back-off, patience) take minutes; their order is what counts


def shorten_pauses() -> None:
    """The main thread never sleeps long; the product's own constants stay as they are. Before the product is imported."""
    real = time.sleep

    def sleep(seconds: float) -> None:
        main = threading.current_thread() is threading.main_thread()
        real(min(seconds, LONGEST_SLEEP) if main else seconds)

    time.sleep = sleep
    from prefect_assay import tasks

    for name in tasks.__all__:
        task = getattr(tasks, name)
        if hasattr(task, "retry_delay_seconds"):
            task.retry_delay_seconds = 0


def warm_up(*further: str) -> None:
    """Do what every fork would do again: import these modules and `IMPORTED`, build deferred models."""
    for name in (*IMPORTED, "prefect.engine", *further):
        importlib.import_module(name)
    load_prefect_collections()
    for trust_env in (True, False):
        certificates(trust_env=trust_env)
    del sys.modules["prefect.engine"]  # it is run as a program in the forks
    kinds: list[type[pydantic.BaseModel]] = [pydantic.BaseModel]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        with suppress(Exception):  # a model may name a type of a package that is not installed
            kind.model_rebuild()
    gc.collect()
    gc.freeze()  # else every collection of a fork copies the memory of all that was imported
