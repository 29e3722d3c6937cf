"""The route table: every call of the API, one file per group of resources."""

from typing import Final

from prefect_assay.lab.routing.account import IDENTITY, INFO
from prefect_assay.lab.routing.billing import INVOICES, QUOTES
from prefect_assay.lab.routing.experiments import EXPERIMENTS, SEQUENCES
from prefect_assay.lab.routing.records import RESULTS, TARGETS, UPDATES
from prefect_assay.lab.routing.route import Route
from prefect_assay.lab.routing.router import Router
from prefect_assay.lab.routing.tokens import PARTNERS, TOKENS
from prefect_assay.lab.routing.webhooks import WEBHOOKS

__all__ = ["ROUTES", "Route", "Router"]

ROUTES: Final[tuple[Route, ...]] = (
    *IDENTITY,
    *INFO,
    *TARGETS,
    *EXPERIMENTS,
    *SEQUENCES,
    *RESULTS,
    *UPDATES,
    *QUOTES,
    *INVOICES,
    *WEBHOOKS,
    *TOKENS,
    *PARTNERS,
)
