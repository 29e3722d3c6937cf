"""Creating experiments (contract 4.2), estimating their cost, and the faults that break an order (create rule 6)."""

import secrets
import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from assay_lab.billing import invoices, pricing, quotes, specs
from assay_lab.experiments import experiments, purchase, sequences, state_machine
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.store import Db, Row, decode_row
from assay_lab.measure.assays import ASSAY_TYPES
from assay_lab.requests import validation
from assay_lab.requests.core import Answer, Call, Lab, uuid_or_none
from assay_lab.requests.schemas import CreateExperiment, EstimateCost
from assay_lab.requests.validation import Entry, Violation
from assay_lab.vocabulary import (
    MACHINE_RAILS,
    ExperimentStatus,
    InvoiceStatus,
    QuoteStatus,
    ResultsStatus,
)

_API_PROJECT: Final = 1
_WITHOUT_TARGET: Final = tuple(kind for kind, one in ASSAY_TYPES.items() if not one.takes_target)


def estimate_cost(call: Call) -> Answer:
    """POST /experiments/cost-estimate: prices, and creates nothing."""
    raw = call.json()
    _, mismatches = validation.read_shape(EstimateCost, raw)
    spec, entries = _spec_of(_read_fields(raw))
    with call.lab.store.transaction() as db:
        target = _find_target(db, call, spec)
        violations = [*mismatches, *_spec_violations(spec, entries, target, unknown_target=422)]
        if any(violation.schema for violation in mismatches):
            # contract 4.2: a schema mismatch is a 422 here, and a 400 on create
            raise Refusal.of_all(422, [violation.text for violation in violations])
        validation.refuse_violations(violations)
        if not pricing.has_pricing(call.lab.settings, call.now()):
            raise Refusal(422, f"pricing unavailable: {_too_early(call.lab)}")
    price = pricing.price_spec(specs.store_spec(spec), len(entries), target)
    return Answer(pricing.view_estimate(price, pricing.name_version(call.lab.settings)))


def _too_early(lab: Lab) -> str:
    return f"pricing v1 begins on {lab.settings.pricing_v1.date().isoformat()}"


def _read_fields(raw: Any) -> Mapping[str, Any]:
    return raw if isinstance(raw, dict) else {}


def _spec_of(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[Entry]]:
    spec = _read_fields(fields.get("experiment_spec"))
    return spec, validation.entries_of_spec(spec.get("sequences"))


def _find_target(db: Db, call: Call, spec: Mapping[str, Any]) -> Row | None:
    target_id = spec.get("target_id")
    return specs.target_row(db, target_id, call.who.org_id) if isinstance(target_id, str) else None


def _spec_violations(
    spec: Mapping[str, Any], entries: list[Entry], known: Row | None, *, unknown_target: int
) -> Iterator[Violation]:
    raw_sequences = spec.get("sequences")
    yield from validation.spec_violations(spec, len(raw_sequences) if isinstance(raw_sequences, dict) else 0)
    yield from validation.sequence_violations(entries)
    target = spec.get("target_id")
    if isinstance(target, str) and uuid_or_none(target) and known is None:
        text = f"experiment_spec.target_id: target {target} is not in the catalog"
        yield Violation(text, unknown_target)


def create_experiment(call: Call) -> Answer:
    """POST /experiments. One transaction: an order that fails leaves nothing behind (create rule 5)."""
    raw = call.json()
    fields = _read_fields(raw)
    accepts = fields.get("auto_accept_quote") is True
    if accepts:  # accepting a quote with the order needs the permission to confirm one
        call.lab.tokens.authorize(call.who, "update", "quote")
    body, violations = validation.read_shape(CreateExperiment, raw)
    selected, disagreements = _read_selector(call, fields)
    violations += disagreements
    spec, entries = _spec_of(fields)
    allow_http = call.lab.settings.allow_http_webhooks
    violations += validation.webhook_violations(fields.get("webhook_url"), allow_http=allow_http)
    with call.lab.store.transaction() as db:
        target = _find_target(db, call, spec)
        violations += _spec_violations(spec, entries, target, unknown_target=404)
        violations += _auto_accept_violations(call, spec, target) if accepts else []
        validation.refuse_violations(violations)
        if body is None:
            raise Refusal(400, "the body does not match its schema")
        price = pricing.price_spec(specs.store_spec(spec), len(entries), target)
        now = call.now()
        experiment = _insert_experiment(db, call, body, spec, target, _choose_method(db, call, selected), now)
        sequences.insert_sequences(db, experiment["id"], entries, now)
        if body.auto_accept_quote:
            return _view_accepted(call.lab, experiment, *accept_at_once(call.lab, db, experiment, now))
        if body.skip_draft:
            state_machine.mark_submitted(call.lab, db, experiment, now)
            experiment["status"] = ExperimentStatus.WAITING_FOR_CONFIRMATION
        return Answer(_view_created(experiment, experiments.view_estimated(call.lab, experiment, price)), 201)


def _auto_accept_violations(call: Call, spec: Mapping[str, Any], target: Row | None) -> Iterator[Violation]:
    """Contract 4.2: auto_accept_quote needs a target_id and full pricing."""
    if not pricing.has_pricing(call.lab.settings, call.now()):
        yield Violation(f"auto_accept_quote: needs full pricing, and {_too_early(call.lab)}")
    # A target_id that is malformed or unknown is a violation of its own.
    without = spec.get("target_id") is None or spec.get("experiment_type") in _WITHOUT_TARGET
    if without or (target is not None and target["pricing"] is None):
        yield Violation("auto_accept_quote: needs target_id and a target with self-service pricing")


def _read_selector(call: Call, fields: Mapping[str, Any]) -> tuple[str | None, list[Violation]]:
    """The payment method that body or header name (create rule 2), and their violations."""
    in_body = _read_fields(fields.get("payment")).get("method")
    in_header = call.service_header("Payment-Method")
    violations = validation.payment_header_violations(in_header)
    if in_body is not None and in_header is not None and in_body != in_header:
        text = f"payment.method is {in_body!r} and the header says {in_header!r}"
        violations.append(Violation(text, code="payment_method_selector_conflict"))
    return in_body or in_header, violations


def _choose_method(db: Db, call: Call, selected: str | None) -> str:
    """The selected rail, else the first that the token's and the organization's policies allow (create rule 2)."""
    org = db.get("organizations", call.who.org_id)
    policy = decode_row(org, "payment_policy")["payment_policy"] if org else []
    if selected is not None and selected not in policy:
        raise Refusal(403, f"the organization's payment policy does not allow {selected}")
    token_policy = call.who.payment_policy
    allowed = policy if token_policy is None else [method for method in token_policy if method in policy]
    if selected is not None and selected not in allowed:
        raise Refusal(403, f"the token's payment policy does not allow {selected}")
    if not allowed:
        raise Refusal(403, "the token's payment policy allows none of the organization's methods")
    return selected or allowed[0]


def _insert_experiment(
    db: Db,
    call: Call,
    body: CreateExperiment,
    spec: Mapping[str, Any],
    target: Row | None,
    method: str,
    created_at: datetime,
) -> Row:
    db.run("UPDATE organizations SET experiments = experiments + 1 WHERE id = ?", call.who.org_id)
    org = db.get("organizations", call.who.org_id) or {}
    webhook = {"webhook_url": body.webhook_url, "webhook_secret": body.webhook_secret}
    row = make_draft(
        org, org["experiments"], spec, target, name=body.name, payment_method=method, created_at=created_at
    )
    db.insert("experiments", row | webhook)
    return db.get("experiments", row["id"]) or row


def make_draft(
    organization: Row,
    number: int,
    spec: Mapping[str, Any],
    target: Row | None,
    *,
    name: str | None,
    payment_method: str,
    created_at: datetime,
) -> Row:
    """The row of a new experiment, the organization's `number`th."""
    return {
        "id": str(uuid.uuid4()),
        "org_id": organization["id"],
        # In its project of API submissions (create rule 1).
        "code": f"{organization['code']}-{_API_PROJECT:03d}-{number:03d}",
        "name": name,
        "status": ExperimentStatus.DRAFT,
        "results_status": ResultsStatus.NONE,
        "experiment_type": spec["experiment_type"],
        **specs.make_columns(specs.store_spec(spec), target),
        "payment_method": payment_method,
        "created_at": created_at,
        "portal_key": secrets.token_urlsafe(18),
    }


def _view_created(experiment: Row, costs: dict[str, Any] | None) -> dict[str, Any]:
    body = {"experiment_id": experiment["id"], "experiment_code": experiment["code"]}
    return body | {"status": experiment["status"]} | ({} if costs is None else {"costs": costs})


def accept_at_once(lab: Lab, db: Db, experiment: Row, now: datetime) -> tuple[Row, Row]:
    """auto_accept_quote: quote, acceptance and invoice in one step (create rules 3 and 4); quote and invoice."""
    machine_rail = experiment["payment_method"] in MACHINE_RAILS
    quote = quotes.issue_quote(db, experiment, now, status=QuoteStatus.ACCEPTED)
    status = InvoiceStatus.OPEN if machine_rail else InvoiceStatus.DRAFT
    invoice = invoices.create_invoice(db, experiment, quote, now, status=status)
    state_machine.accepted_at_once(lab, db, experiment, now, paid_first=machine_rail)
    return quote, invoice


def _view_accepted(lab: Lab, experiment: Row, quote: Row, invoice: Row) -> Answer:
    if experiment["payment_method"] in MACHINE_RAILS:
        return Answer(purchase.view_confirmation(lab, quote, invoice))
    experiment["status"] = ExperimentStatus.WAITING_FOR_CONFIRMATION
    made = _view_created(experiment, invoices.view_costs(lab, invoice))
    return Answer(made | _invoice_fields(lab, invoice), 201)


def _invoice_fields(lab: Lab, invoice: Row) -> dict[str, Any]:
    return {
        "provider_invoice_id": invoice["provider_invoice_id"],
        "provider_hosted_invoice_url": invoices.link_invoice(lab, invoice),
    }


def break_order(lab: Lab, db: Db, invoice_id: str, path: str) -> dict[str, Any]:
    """Lab fault: void an order's invoice; the error body's further fields (create rule 6).

    A broken confirmation (`path`) is taken back; a broken create keeps its experiment, which gets a quote.
    """
    invoice = db.one("SELECT * FROM invoices WHERE id = ? OR provider_invoice_id = ?", invoice_id, invoice_id)
    experiment = db.get("experiments", invoice["experiment_id"]) if invoice else None
    quote = db.get("quotes", invoice["quote_id"]) if invoice else None
    if invoice is None or experiment is None or quote is None:
        return {}
    now = lab.clock.now(experiment["org_id"])
    if path.endswith("/confirm"):
        state_machine.undo_confirmation(db, experiment, quote, invoice, now)
    else:
        db.update("invoices", invoice["id"], status=InvoiceStatus.VOID)
        db.update("quotes", quote["id"], status=QuoteStatus.REJECTED)
        state_machine.queue_quote(lab, db, experiment, now)
    return {"experiment_id": experiment["id"], **_invoice_fields(lab, invoice)}
