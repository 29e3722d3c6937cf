"""The parts of the sweep, each in its own module (docs/waiting.md); the flow `sweep` runs them.

Nothing here knows the flows, or the questions to a person.
"""

from prefect_assay.sweeping.cancellations import report_canceled_runs, report_cancellation
from prefect_assay.sweeping.experiment_watch import ExperimentWatch
from prefect_assay.sweeping.open_orders import find_open_orders
from prefect_assay.sweeping.progress import SweepProgress
from prefect_assay.sweeping.stuck_runs import find_blocked_runs, find_stuck_runs
from prefect_assay.sweeping.watermarks import SweepState

__all__ = [
    "ExperimentWatch",
    "SweepProgress",
    "SweepState",
    "find_blocked_runs",
    "find_open_orders",
    "find_stuck_runs",
    "report_canceled_runs",
    "report_cancellation",
]
