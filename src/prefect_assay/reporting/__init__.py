"""Artifacts of the Prefect UI; it must not know how a run decides or waits."""

__all__ = ["artifacts"]
