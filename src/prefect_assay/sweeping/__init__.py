"""What the sweep does, each part in its own module. The flow `sweep` runs them; see docs/waiting.md.

| module | part |
|---|---|
| `experiment_watch` | runs that wait for experiments: updates feeds and the full check |
| `updates_feed`, `watermarks` | one feed, the stored state of the sweep and its credentials blocks |
| `stranded_runs` | runs that no worker can start: they are replaced or rescheduled |
| `stuck_runs` | runs that need a person |
| `cancellations`, `settle_cancellation` | canceled runs: their open quotes and their report |

Nothing here knows the flows, or what is asked of a person.
"""

from prefect_assay.sweeping.cancellations import report_canceled_runs, report_cancellation
from prefect_assay.sweeping.experiment_watch import ExperimentWatch
from prefect_assay.sweeping.progress import SweepProgress
from prefect_assay.sweeping.stuck_runs import find_blocked_runs, find_stuck_runs
from prefect_assay.sweeping.watermarks import SweepState

__all__ = [
    "ExperimentWatch",
    "SweepProgress",
    "SweepState",
    "find_blocked_runs",
    "find_stuck_runs",
    "report_canceled_runs",
    "report_cancellation",
]
