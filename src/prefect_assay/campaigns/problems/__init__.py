"""Problems that an operator has to know: their kinds, finding, saving and showing them as metrics (docs/operating.md)."""

from prefect_assay.campaigns.problems.kinds import ALERTS, AlertKind

__all__ = ["ALERTS", "AlertKind"]
