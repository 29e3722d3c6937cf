"""The route table: every call of the API, in the order of `openapi.json`."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from assay_lab.account import handlers as account
from assay_lab.account.handlers import MintToken
from assay_lab.api import billing_shapes, experiment_shapes, result_shapes, shapes
from assay_lab.api.route import Handler, Route, collection, delete, get, patch, post, record
from assay_lab.api.shapes import Error, OrderError, SubmitError
from assay_lab.billing import documents, invoices, quotes
from assay_lab.experiments import (
    experiments,
    orders,
    purchase,
    results,
    sequences,
    targets,
)
from assay_lab.requests import schemas
from assay_lab.tokens.permissions import AttenuateToken
from assay_lab.webhooks import handlers as webhooks
from assay_lab.webhooks import updates

_EXPERIMENT: Final = "/experiments/{experiment_id}"
_WEBHOOK: Final = "/webhooks/{webhook_id}"


def _confirm(path: str, handler: Handler, summary: str) -> Route:
    return post(
        path,
        handler,
        summary,
        ("update", "quote"),
        schemas.ConfirmQuote,
        answers={200: billing_shapes.ConfirmedQuote},
        headers=("X-Service-Payment-Method",),
        refuses={409: Error},
        description="Needs a JSON body; `{}` will do. The invoice exists from here on, and `payment` points to where"
        " to pay it. 409 when the quote has expired, or was accepted or rejected before, and when"
        " `X-Service-Payment-Method` names another rail than the experiment's.",
    )


ROUTES: Final[tuple[Route, ...]] = (
    record("/whoami", account.whoami, "Who the token is", "identity", shapes.Identity),
    record("/info/health", account.health, "Health, without a token", "identity", shapes.Health, open=True),
    record(
        "/info/health-db",
        account.health_of_database,
        "Health of the database; 503 when it does not answer",
        "identity",
        shapes.DatabaseHealth,
        refuses={503: shapes.DatabaseAway},
    ),
    post(
        "/feedback/submit",
        account.feedback,
        "Send feedback",
        ("create", "feedback"),
        schemas.SubmitFeedback,
        answers={201: shapes.FeedbackReceipt},
    ),
    collection(
        "/targets",
        targets.listing,
        "List catalog targets",
        "target",
        experiment_shapes.TargetPage,
        targets.LISTING,
        "selfservice_only",
        "detailed",
        "show_conjugated",
    ),
    collection(
        "/targets/request-custom",
        targets.list_requests,
        "List requests for custom targets, newest first",
        "target",
        experiment_shapes.CustomTargetPage,
        targets.CUSTOM_LISTING,
    ),
    post(
        "/targets/request-custom",
        targets.request,
        "Ask for a target that the catalog does not have",
        ("create", "target"),
        schemas.RequestCustomTarget,
        answers={201: experiment_shapes.CustomTarget},
        refuses={409: Error, 422: Error},
        description="By its residues or by a structure. 409 when the product id is known already.",
    ),
    record(
        "/targets/request-custom/{request_id}",
        targets.show_request,
        "Show a request for a custom target",
        "target",
        experiment_shapes.CustomTarget,
    ),
    record("/targets/{target_id}", targets.detail, "Show a target", "target", experiment_shapes.Target),
    collection(
        "/experiments",
        experiments.listing,
        "List experiments, newest first",
        "experiment",
        experiment_shapes.ExperimentPage,
        experiments.LISTING,
    ),
    post(
        "/experiments",
        orders.create,
        "Create an experiment",
        ("create", "experiment"),
        schemas.CreateExperiment,
        answers={201: experiment_shapes.CreatedExperiment, 200: billing_shapes.ConfirmedQuote},
        refuses={404: Error, 422: Error, 500: OrderError},
        headers=("X-Service-Payment-Method",),
        description="A draft, unless `skip_draft` submits it at once or `auto_accept_quote` also accepts its"
        " price. With `auto_accept_quote` on a machine rail the answer is 200, and `payment` points to the pay"
        " call; otherwise it is 201. The rail is named in `payment.method` or in the header"
        " `X-Service-Payment-Method`; both must agree. All findings of a bad order come in one answer."
        " `auto_accept_quote` also needs `quote:update`.",
    ),
    # Needs read permission only (contract 4.2, cost estimate rules).
    post(
        "/experiments/cost-estimate",
        orders.estimate,
        "Estimate the cost",
        ("read", "experiment"),
        schemas.EstimateCost,
        answers={200: billing_shapes.CostEstimate},
        refuses={422: Error},
        description="Creates nothing. A target without self-service pricing gives an incomplete estimate, which"
        " is no price. 422 for a body off its schema and for an unknown target, 400 for rules it breaks.",
    ),
    record(_EXPERIMENT, experiments.detail, "Show an experiment", "experiment", experiment_shapes.Experiment),
    patch(
        _EXPERIMENT,
        experiments.modify,
        "Change an experiment",
        ("update", "experiment"),
        schemas.ModifyExperiment,
        answers={200: experiment_shapes.ModifiedExperiment},
        refuses={409: Error, 422: Error},
        description="Every field is optional; send `{}` to change nothing. Most fields change in `draft` and"
        " `in_review` only (409 otherwise), `webhook_url` always. `sequences` replaces the whole list.",
    ),
    post(
        f"{_EXPERIMENT}/submit",
        experiments.submit,
        "Submit a draft",
        ("update", "experiment"),
        answers={200: experiment_shapes.SubmittedExperiment},
        refuses={400: Error, 409: SubmitError},
        description="Takes no body, and returns before the quote exists.",
    ),
    collection(
        f"{_EXPERIMENT}/results",
        results.of_experiment,
        "Results of an experiment",
        "result",
        result_shapes.ResultPage,
        results.IN_ORDER,
        description="Whole records; an empty list until something is released.",
    ),
    collection(
        f"{_EXPERIMENT}/sequences",
        sequences.of_experiment,
        "Sequences of an experiment",
        "sequence",
        experiment_shapes.SequencePage,
        sequences.IN_ORDER,
    ),
    collection(
        f"{_EXPERIMENT}/updates",
        updates.of_experiment,
        "Updates of an experiment, oldest first",
        "update",
        experiment_shapes.UpdatePage,
        updates.IN_ORDER,
    ),
    collection(
        "/sequences",
        sequences.listing,
        "List sequences",
        "sequence",
        experiment_shapes.SequencePage,
        sequences.LISTING,
    ),
    post(
        "/sequences",
        sequences.add,
        "Add sequences to a draft",
        ("create", "sequence"),
        schemas.AddSequences,
        answers={201: experiment_shapes.AddedSequences},
        refuses={404: Error, 409: Error, 422: Error},
        description="Only a draft takes sequences (409 otherwise).",
    ),
    record(
        "/sequences/{sequence_id}",
        sequences.detail,
        "Show a sequence",
        "sequence",
        experiment_shapes.Sequence,
    ),
    collection(
        "/results",
        results.listing,
        "List results, newest first",
        "result",
        result_shapes.ResultItemPage,
        results.LISTING,
    ),
    record("/results/{result_id}", results.detail, "Show a result", "result", result_shapes.Result),
    collection(
        "/updates",
        updates.listing,
        "The updates feed, newest first",
        "update",
        experiment_shapes.UpdatePage,
        updates.LISTING,
    ),
    record(
        f"{_EXPERIMENT}/quote",
        quotes.of_experiment,
        "Show the quote",
        "quote",
        billing_shapes.ExperimentQuote,
        description="The quote is prepared after the submission. Until it exists the answer is 404: ask again.",
    ),
    get(
        f"{_EXPERIMENT}/quote/pdf",
        documents.quote_pdf,
        "The quote as a PDF",
        ("read", "quote"),
        media_type=documents.MEDIA_TYPE,
    ),
    _confirm(f"{_EXPERIMENT}/quote/confirm", purchase.confirm_of_experiment, "Accept the quote"),
    collection(
        "/quotes",
        quotes.listing,
        "List quotes, newest first",
        "quote",
        billing_shapes.QuotePage,
        quotes.LISTING,
    ),
    record("/quotes/{quote_id}", quotes.detail, "Show a quote", "quote", billing_shapes.Quote),
    _confirm("/quotes/{quote_id}/confirm", purchase.confirm, "Accept a quote"),
    post(
        "/quotes/{quote_id}/reject",
        purchase.reject_by_id,
        "Reject a quote",
        ("update", "quote"),
        schemas.RejectQuote,
        answers={200: billing_shapes.RejectedQuote},
        destructive=True,
        refuses={409: Error},
        description="The experiment becomes a draft again. 409 when the quote is not open any more.",
    ),
    record(
        f"{_EXPERIMENT}/invoice",
        invoices.of_experiment,
        "Show the invoice",
        "invoice",
        billing_shapes.ExperimentInvoice,
        refuses={400: Error},
        description="An invoice exists once the quote is accepted. Before, the 404 names the next call to make;"
        " an unknown experiment is a 400, another organisation's a 403.",
    ),
    collection(
        "/invoices",
        invoices.listing,
        "List invoices, newest first",
        "invoice",
        billing_shapes.InvoicePage,
        invoices.LISTING,
    ),
    record("/invoices/{invoice_id}", invoices.detail, "Show an invoice", "invoice", billing_shapes.Invoice),
    get(
        "/invoices/{invoice_id}/pdf",
        documents.invoice_pdf,
        "Where the invoice's PDF is; follow without the token",
        ("read", "invoice"),
        answers={307: None},
    ),
    post(
        "/invoices/{invoice_id}/pay",
        purchase.pay,
        "Pay an invoice by machine",
        ("update", "invoice"),
        answers={200: billing_shapes.PaidInvoice, 402: billing_shapes.PaymentRequired},
        headers=("X-Service-Payment-Method", "PAYMENT-SIGNATURE", "Payment-Authorization"),
        refuses={409: Error},
        description="Without a credential an open invoice on a machine rail answers 402 with a challenge, in"
        " `PAYMENT-REQUIRED` (x402-exact) or `WWW-Authenticate` (mpp-spt). The same call repeated with the"
        " credential settles it, once. On a paid invoice, and on one that a person pays, it only reports the state.",
    ),
    get(
        "/webhooks",
        webhooks.listing,
        "List webhooks",
        ("list", "webhook"),
        answers={200: shapes.Webhooks},
    ),
    post(
        "/webhooks",
        webhooks.create,
        "Add a webhook",
        ("create", "webhook"),
        schemas.CreateWebhook,
        answers={201: shapes.Webhook},
        refuses={422: Error},
        description="Gets every update of the organisation's experiments that have no webhook of their own. The"
        " secret is write-only. A header may not be one of the service's own.",
    ),
    patch(
        _WEBHOOK,
        webhooks.modify,
        "Change a webhook",
        ("update", "webhook"),
        schemas.ModifyWebhook,
        answers={200: shapes.Webhook},
        refuses={422: Error},
        description="Changes what is named, from the next attempt on. A null clears the secret.",
    ),
    delete(
        _WEBHOOK,
        webhooks.delete,
        "Remove a webhook",
        ("delete", "webhook"),
        answers={204: None},
        destructive=True,
    ),
    collection(
        "/tokens",
        account.listing,
        "List the organization's tokens, newest first",
        "token",
        shapes.TokenPage,
        account.TOKENS,
        description="A flat list of roots and attenuated tokens. Tokens that were revoked are left out.",
    ),
    # A holder may restrict a token with `token:read` alone (contract 4.6).
    post(
        "/tokens/attenuate",
        account.attenuate,
        "Make a more restricted token",
        ("read", "token"),
        AttenuateToken,
        answers={201: shapes.AttenuatedToken},
        description=(
            "The result has all restrictions of the source and the new ones. The text of the source proves that"
            " the caller holds it. The result is shown this once."
        ),
    ),
    post(
        "/tokens/revoke",
        account.revoke,
        "Revoke the calling token's whole family",
        ("revoke", "token"),
        answers={200: shapes.Revocation},
        destructive=True,
        description=(
            "The root of the calling token and everything attenuated from it stop working at once. A repetition"
            " meets 401, as any other call of a revoked token."
        ),
    ),
    post(
        "/partners/mint-token",
        account.mint_token,
        "Bring a new user, and mint a token for it",
        ("mint_token", "partner"),
        MintToken,
        answers={201: shapes.MintedToken},
        refuses={409: Error},
        partner=True,
        description=(
            "`new_org` makes the customer's organization, whose e-mail domain the service must not know yet;"
            " `existing_org` adds a user to an organization that this partner has onboarded. An e-mail address"
            " that has an account is refused with 409."
        ),
    ),
)


def find(path: str) -> tuple[Mapping[str, Route], dict[str, str]]:
    """The routes of a path by method, and its path parameters; no routes for an unknown path."""
    for pattern, routes in _BY_PATH.items():
        if match := pattern.fullmatch(path):
            return routes, match.groupdict()
    return {}, {}


def _by_path(routes: Iterable[Route]) -> dict[re.Pattern[str], dict[str, Route]]:
    """Paths without parameters come first: `cost-estimate` is not an experiment id."""
    found: dict[re.Pattern[str], dict[str, Route]] = {}
    for route in sorted(routes, key=lambda route: "{" in route.path):
        pattern = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path))
        found.setdefault(pattern, {})[route.method] = route
    return found


_BY_PATH: Final = _by_path(ROUTES)
