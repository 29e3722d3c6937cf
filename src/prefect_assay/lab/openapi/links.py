"""Where an answer leads: OpenAPI links, for readers and for tools that walk from call to call."""

from typing import Any, Final

from pydantic import BaseModel

from prefect_assay.lab.shapes.billing import ConfirmedQuote
from prefect_assay.lab.shapes.experiments import CreatedExperiment

_EXPERIMENT: Final = "get_experiments_experiment_id"
_CREATED: Final = {
    "experiment": _EXPERIMENT,
    "sequences": f"{_EXPERIMENT}_sequences",
    "updates": f"{_EXPERIMENT}_updates",
    "results": f"{_EXPERIMENT}_results",
    "quote": f"{_EXPERIMENT}_quote",
    "invoice": f"{_EXPERIMENT}_invoice",
    "submit": "post_experiments_experiment_id_submit",
    "modify": "patch_experiments_experiment_id",
}
_CONFIRMED: Final = {"invoice": "get_invoices_invoice_id", "pay": "post_invoices_invoice_id_pay"}


def links(shape: type[BaseModel] | None) -> dict[str, Any]:
    """The links object of a success."""
    if shape is CreatedExperiment:
        return {name: _link(target, "experiment_id") for name, target in _CREATED.items()}
    if shape is ConfirmedQuote:
        return {name: _link(target, "invoice_id") for name, target in _CONFIRMED.items()}
    return {}


def _link(operation_id: str, field: str) -> dict[str, Any]:
    return {"operationId": operation_id, "parameters": {field: f"$response.body#/{field}"}}
