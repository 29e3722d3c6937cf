"""Starts flow runs by forking a process that has imported everything; it must not know what a run does."""

from prefect_assay.prefork.starter import fork_flow_runs

__all__ = ["fork_flow_runs"]
