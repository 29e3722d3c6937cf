"""The command line: `prefect-assay` and `python -m prefect_assay.cli`."""

from prefect_assay.cli.app import main

__all__ = ["main"]
