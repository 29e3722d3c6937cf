"""The route table: every call of the API, in the order of `openapi.yaml`."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from assay_lab.account import handlers as account
from assay_lab.api.route import Route, delete, get, patch, post
from assay_lab.billing import documents, invoices, quotes
from assay_lab.experiments import (
    experiments,
    orders,
    purchase,
    results,
    sequences,
    targets,
)
from assay_lab.webhooks import handlers as webhooks
from assay_lab.webhooks import updates

_EXPERIMENT: Final = "/experiments/{experiment_id}"

ROUTES: Final[tuple[Route, ...]] = (
    get("/experiments", experiments.list_experiments, "list", "experiment"),
    post("/experiments", orders.create_experiment, "create", "experiment"),
    # Needs read permission only (contract 4.2, cost estimate rules).
    post("/experiments/cost-estimate", orders.estimate_cost, "read", "experiment"),
    get(_EXPERIMENT, experiments.get_experiment, "read", "experiment"),
    patch(_EXPERIMENT, experiments.modify_experiment, "update", "experiment"),
    post(f"{_EXPERIMENT}/submit", experiments.submit_experiment, "update", "experiment"),
    get(f"{_EXPERIMENT}/quote", quotes.of_experiment, "read", "quote"),
    get(f"{_EXPERIMENT}/quote/pdf", documents.quote_pdf, "read", "quote"),
    post(f"{_EXPERIMENT}/quote/confirm", purchase.confirm_of_experiment, "update", "quote"),
    get(f"{_EXPERIMENT}/invoice", invoices.of_experiment, "read", "invoice"),
    get(f"{_EXPERIMENT}/results", results.of_experiment, "list", "result"),
    get(f"{_EXPERIMENT}/sequences", sequences.of_experiment, "list", "sequence"),
    get(f"{_EXPERIMENT}/updates", updates.of_experiment, "list", "update"),
    get("/sequences", sequences.list_sequences, "list", "sequence"),
    post("/sequences", sequences.add_sequences, "create", "sequence"),
    get("/sequences/{sequence_id}", sequences.get_sequence, "read", "sequence"),
    get("/targets", targets.list_targets, "list", "target"),
    get("/targets/{target_id}", targets.get_target, "read", "target"),
    get("/targets/request-custom", targets.list_requests, "list", "target"),
    post("/targets/request-custom", targets.request_custom, "create", "target"),
    get("/targets/request-custom/{request_id}", targets.show_request, "read", "target"),
    get("/results", results.list_results, "list", "result"),
    get("/results/{result_id}", results.get_result, "read", "result"),
    get("/updates", updates.list_updates, "list", "update"),
    get("/quotes", quotes.list_quotes, "list", "quote"),
    get("/quotes/{quote_id}", quotes.get_quote, "read", "quote"),
    post("/quotes/{quote_id}/confirm", purchase.confirm_quote, "update", "quote"),
    post("/quotes/{quote_id}/reject", purchase.reject_by_id, "update", "quote", destructive=True),
    get("/invoices", invoices.list_invoices, "list", "invoice"),
    get("/invoices/{invoice_id}", invoices.get_invoice, "read", "invoice"),
    get("/invoices/{invoice_id}/pdf", documents.invoice_pdf, "read", "invoice"),
    post("/invoices/{invoice_id}/pay", purchase.pay_invoice, "update", "invoice"),
    get("/tokens", account.list_tokens, "list", "token"),
    # A holder may restrict a token with `token:read` alone (contract 4.6).
    post("/tokens/attenuate", account.attenuate_token, "read", "token"),
    post("/tokens/revoke", account.revoke_token, "revoke", "token", destructive=True),
    post("/partners/mint-token", account.mint_token, "mint_token", "partner", partner=True),
    get("/webhooks", webhooks.list_webhooks, "list", "webhook"),
    post("/webhooks", webhooks.create_webhook, "create", "webhook"),
    patch("/webhooks/{webhook_id}", webhooks.modify_webhook, "update", "webhook"),
    delete("/webhooks/{webhook_id}", webhooks.delete_webhook, "delete", "webhook", destructive=True),
    get("/whoami", account.get_whoami, "read", "identity"),
    get("/info/health", account.get_health, "read", "identity", open=True),
    get("/info/health-db", account.health_of_database, "read", "identity"),
    post("/feedback/submit", account.submit_feedback, "create", "feedback"),
)


def find_routes(path: str) -> tuple[Mapping[str, Route], dict[str, str]]:
    """The routes of a path by method, and its path parameters; no routes for an unknown path."""
    for pattern, routes in _BY_PATH.items():
        if match := pattern.fullmatch(path):
            return routes, match.groupdict()
    return {}, {}


def _by_path(routes: Iterable[Route]) -> dict[re.Pattern[str], dict[str, Route]]:
    """Paths without parameters come first: `cost-estimate` is not an experiment id."""
    routes_by_pattern: dict[re.Pattern[str], dict[str, Route]] = {}
    for route in sorted(routes, key=lambda route: "{" in route.path):
        pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path))
        routes_by_pattern.setdefault(pattern, {})[route.method] = route
    return routes_by_pattern


_BY_PATH: Final = _by_path(ROUTES)
