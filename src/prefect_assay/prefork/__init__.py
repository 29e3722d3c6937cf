"""Starts flow runs by forking a process that has imported everything; an opt-in of whatever runs the flows.

It must not know the flows, nor what a run does.
"""

from prefect_assay.prefork.starter import fork_flow_runs

__all__ = ["fork_flow_runs"]
