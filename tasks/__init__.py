"""One module per verb: a task is one call to the service with its Prefect retry policy. Tasks must not call tasks.

Every task may run twice, on another machine, after any crash: each reads the service's state first.
"""

from prefect_assay.blocks.order_ledger import open_ledgers
from prefect_assay.tasks.archive import archive_experiment, retrieve_results
from prefect_assay.tasks.collate import collate_campaign, save_plan
from prefect_assay.tasks.estimate import check_access, estimate_cost, resolve_target
from prefect_assay.tasks.order import find_order, order_experiment, recheck_order
from prefect_assay.tasks.pay import pay_invoice, read_due
from prefect_assay.tasks.quote import confirm_quote, poll_quote
from prefect_assay.tasks.read import plan_campaign, read_designs, read_experiment
from prefect_assay.tasks.report import plot_results, report_campaign

__all__ = [
    "archive_experiment",
    "check_access",
    "collate_campaign",
    "confirm_quote",
    "estimate_cost",
    "find_order",
    "open_ledgers",
    "order_experiment",
    "pay_invoice",
    "plan_campaign",
    "plot_results",
    "poll_quote",
    "read_designs",
    "read_due",
    "read_experiment",
    "recheck_order",
    "report_campaign",
    "resolve_target",
    "retrieve_results",
    "save_plan",
]
