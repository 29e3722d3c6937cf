"""Artifacts of the Prefect UI, in `reporting.artifacts`; it must not know how a run decides or waits."""

__all__: list[str] = []
