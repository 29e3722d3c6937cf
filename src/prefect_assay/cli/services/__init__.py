"""The commands that keep a process running, or set up what the flows need on a Prefect server."""

from prefect_assay.cli.services.app import services

__all__ = ["services"]
