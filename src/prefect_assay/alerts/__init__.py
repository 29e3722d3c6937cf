"""What an operator has to know: problems by kind, found from facts, saved, and shown as metrics (docs/alerts.md)."""

from prefect_assay.alerts.kinds import ALERTS, AlertKind

__all__ = ["ALERTS", "AlertKind"]
