"""`prefect-assay demo`: one campaign on real designs, end to end; nothing else may import from here."""

from prefect_assay.cli.demo.command import run_demo

__all__ = ["run_demo"]
