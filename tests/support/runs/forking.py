"""What a process that forks executions of flow runs does once, before its first fork. It knows no run."""

import gc
import importlib
import sys
from contextlib import suppress

import pydantic

from prefect_assay.prefork.server import import_all


def warm_up(*further: str) -> None:
    """Do what every fork would do again: import these modules and those of the fork server, build deferred models."""
    import_all()
    for name in ("prefect.engine", *further):
        importlib.import_module(name)
    del sys.modules["prefect.engine"]  # it is run as a program in the forks
    kinds: list[type[pydantic.BaseModel]] = [pydantic.BaseModel]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        with suppress(Exception):  # a model may name a type of a package that is not installed
            kind.model_rebuild()
    gc.collect()
    gc.freeze()  # else every collection of a fork copies the memory of all that was imported
