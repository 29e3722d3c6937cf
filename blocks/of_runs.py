"""Loads the blocks that a flow run was started with, for the sweep and for commands.

A missing block raises here; the run itself waits for it (`runs/block_references.py`).
"""

from typing import TypeVar, cast

from prefect.blocks.core import Block
from prefect.client.schemas.objects import FlowRun

from prefect_assay.blocks import Archive, AssayCredentials, LocalArchive, S3Archive, SpendingPolicy
from prefect_assay.errors import ConfigurationError
from prefect_assay.runs.block_references import block_of

B = TypeVar("B", bound=Block)


def credentials_of(run: FlowRun) -> AssayCredentials:
    """Load the credentials block of a run; raises as `archive_of` does."""
    return _of(run, "credentials", AssayCredentials)


def policy_of(run: FlowRun) -> SpendingPolicy:
    """Load the policy block of a run; raises as `archive_of` does."""
    return _of(run, "policy", SpendingPolicy)


def archive_of(run: FlowRun) -> Archive:
    """Load the archive block of a run.

    Raises:
        ConfigurationError: the parameter names no saved block, or one that was deleted, is not valid or of another type.
    """
    return cast("Archive", _of(run, "archive", LocalArchive, S3Archive))


def _of(run: FlowRun, parameter: str, *kinds: type[B]) -> B:
    block = block_of(run, parameter)
    if not isinstance(block, kinds):
        raise ConfigurationError(
            f"parameter {parameter} of run {run.name} is a block of another type, {type(block).__name__}"
        )
    return block
