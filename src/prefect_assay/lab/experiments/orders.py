"""Creating experiments (contract 4.2, rules for create) and estimating their cost."""

import secrets
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from prefect_assay.lab.billing import invoices, pricing, quotes, specs
from prefect_assay.lab.experiments import acceptance, experiments, sequences
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.store import Db, Row, load
from prefect_assay.lab.laboratory import machine
from prefect_assay.lab.requests import validation
from prefect_assay.lab.requests.core import Answer, Call, Lab, uuid_or_none
from prefect_assay.lab.requests.schemas import CreateExperiment, EstimateCost
from prefect_assay.lab.requests.validation import Entry, Finding
from prefect_assay.models.vocabulary import (
    BINDING_TYPES,
    MACHINE_RAILS,
    ExperimentStatus,
    ExperimentType,
    InvoiceStatus,
    QuoteStatus,
    ResultsStatus,
)

# The organisation's "API submissions" project (contract 4.2, create rule 1).
_API_PROJECT: Final = 1
_WITHOUT_TARGET: Final = tuple(set(ExperimentType) - BINDING_TYPES)


def estimate(call: Call) -> Answer:
    """POST /experiments/cost-estimate: prices, and creates nothing."""
    raw = call.json()
    _, shapes = validation.shape(EstimateCost, raw)
    spec, entries = _spec_of(raw)
    with call.lab.store.transaction() as db:
        target = _target(db, call, spec)
        rules = _spec_findings(spec, entries, target, unknown_target=422)
        if any(finding.schema for finding in shapes):
            # contract 4.2: a schema mismatch is a 422 here, and a 400 on create
            raise Refusal.of_findings(422, [finding.text for finding in [*shapes, *rules]])
        validation.refuse([*shapes, *rules])
        if not pricing.began(call.lab.settings, call.now()):
            raise Refusal(422, f"pricing unavailable: {_too_early(call.lab)}")
    price = pricing.price(specs.stored(spec), len(entries), target)
    return Answer(pricing.estimate(price, pricing.version(call.lab.settings)))


def _too_early(lab: Lab) -> str:
    return f"pricing v1 begins on {lab.settings.pricing_v1.date().isoformat()}"


def _spec_of(raw: Any) -> tuple[Mapping[str, Any], list[Entry]]:
    """Raw specification and its readable sequences, whatever the shape findings say."""
    spec = raw.get("experiment_spec") if isinstance(raw, dict) else None
    spec = spec if isinstance(spec, dict) else {}
    return spec, validation.entries_of_spec(spec.get("sequences"))


def _target(db: Db, call: Call, spec: Mapping[str, Any]) -> Row | None:
    """The target that the specification names, if it is in the catalog; whatever stands there in its place is none."""
    wanted = spec.get("target_id")
    return specs.target_row(db, wanted, call.who.org_id) if isinstance(wanted, str) else None


def _spec_findings(
    spec: Mapping[str, Any], entries: list[Entry], known: Row | None, *, unknown_target: int
) -> list[Finding]:
    given = spec.get("sequences")
    found = validation.spec_findings(spec, len(given) if isinstance(given, dict) else 0)
    found += validation.sequence_findings(entries)
    found += [finding for entry in entries for finding in validation.metadata_findings(entry)]
    target = spec.get("target_id")
    if isinstance(target, str) and uuid_or_none(target) and known is None:
        found.append(
            Finding(f"experiment_spec.target_id: target {target} is not in the catalog", unknown_target)
        )
    return found


def create(call: Call) -> Answer:
    """POST /experiments. One transaction: an order that fails leaves nothing behind (create rule 5)."""
    raw = call.json()
    accepts = isinstance(raw, dict) and raw.get("auto_accept_quote") is True
    if accepts:  # whoever may not confirm a quote may not accept one along with the order either
        call.lab.tokens.authorize(call.who, "update", "quote")
    wanted, findings = validation.shape(CreateExperiment, raw)
    selected, disagreements = _selector(call, raw)
    findings += disagreements
    spec, entries = _spec_of(raw)
    if isinstance(raw, dict):
        allow_http = call.lab.settings.allow_http_webhooks
        findings += validation.webhook_findings(raw.get("webhook_url"), allow_http=allow_http)
    with call.lab.store.transaction() as db:
        target = _target(db, call, spec)
        findings += _spec_findings(spec, entries, target, unknown_target=404)
        findings += _auto_accept_findings(call, spec, target) if accepts else []
        validation.refuse(findings)
        if wanted is None:
            raise Refusal(400, "the body does not match its schema")
        price = pricing.price(specs.stored(spec), len(entries), target)
        at = call.now()
        experiment = _insert(db, call, wanted, spec, target, _method(db, call, selected), at)
        sequences.insert(db, experiment["id"], entries, at)
        if wanted.auto_accept_quote:
            return _accept_at_once(call.lab, db, experiment, at)
        if wanted.skip_draft:
            machine.submitted(call.lab, db, experiment, at)
            experiment["status"] = ExperimentStatus.WAITING_FOR_CONFIRMATION
        return Answer(_created(experiment, experiments.estimated(call.lab, experiment, lambda: price)), 201)


def _auto_accept_findings(call: Call, spec: Mapping[str, Any], target: Row | None) -> list[Finding]:
    """Contract 4.2: auto_accept_quote needs a target_id and full pricing."""
    found: list[Finding] = []
    if not pricing.began(call.lab.settings, call.now()):
        found.append(Finding(f"auto_accept_quote: needs full pricing, and {_too_early(call.lab)}"))
    # A target_id that is malformed or unknown is a finding of its own.
    without = spec.get("target_id") is None or spec.get("experiment_type") in _WITHOUT_TARGET
    if without or (target is not None and target["pricing"] is None):
        found.append(Finding("auto_accept_quote: needs target_id and a target with self-service pricing"))
    return found


def _selector(call: Call, raw: Any) -> tuple[str | None, list[Finding]]:
    """The payment method that body or header name (create rule 2), and what is wrong with the naming."""
    payment = raw.get("payment") if isinstance(raw, dict) else None
    in_body = payment.get("method") if isinstance(payment, dict) else None
    in_header = call.service_header("Payment-Method")
    found = validation.payment_header_findings(in_header)
    if in_body is not None and in_header is not None and in_body != in_header:
        text = f"payment.method is {in_body!r} and the header says {in_header!r}"
        found.append(Finding(text, code="payment_method_selector_conflict"))
    return in_body or in_header, found


def _method(db: Db, call: Call, selected: str | None) -> str:
    """The selected rail, else the first that the caller's policies allow (create rule 2); 403 when there is none.

    A token's own payment policy comes first and sets the order; the organisation's bounds it.
    """
    org = db.one("SELECT * FROM organizations WHERE id = ?", call.who.org_id)
    policy = load(org, "payment_policy")["payment_policy"] if org else []
    if selected is not None and selected not in policy:
        raise Refusal(403, f"the organization's payment policy does not allow {selected}")
    own = call.who.payment_policy
    allowed = policy if own is None else [method for method in own if method in policy]
    if selected is not None and selected not in allowed:
        raise Refusal(403, f"the token's payment policy does not allow {selected}")
    if not allowed:
        raise Refusal(403, "the token's payment policy allows none of the organization's methods")
    return selected or allowed[0]


def _insert(
    db: Db,
    call: Call,
    wanted: CreateExperiment,
    spec: Mapping[str, Any],
    target: Row | None,
    method: str,
    at: datetime,
) -> Row:
    db.run("UPDATE organizations SET experiments = experiments + 1 WHERE id = ?", call.who.org_id)
    org = db.one("SELECT code, experiments FROM organizations WHERE id = ?", call.who.org_id) or {}
    row = {
        "id": str(uuid.uuid4()),
        "org_id": call.who.org_id,
        "code": f"{org['code']}-{_API_PROJECT:03d}-{org['experiments']:03d}",
        "name": wanted.name,
        "status": ExperimentStatus.DRAFT,
        "results_status": ResultsStatus.NONE,
        "experiment_type": spec["experiment_type"],
        **specs.columns_with(specs.stored(spec), target),
        "payment_method": method,
        "webhook_url": wanted.webhook_url,
        "webhook_secret": wanted.webhook_secret,
        "created_at": at,
        "portal_key": secrets.token_urlsafe(18),
    }
    db.insert("experiments", row)
    return db.one("SELECT * FROM experiments WHERE id = ?", row["id"]) or row


def _created(experiment: Row, costs: dict[str, Any] | None) -> dict[str, Any]:
    body = {
        "experiment_id": experiment["id"],
        "experiment_code": experiment["code"],
        "status": experiment["status"],
    }
    return body if costs is None else body | {"costs": costs}


def _accept_at_once(lab: Lab, db: Db, experiment: Row, at: datetime) -> Answer:
    """auto_accept_quote: quote, acceptance and invoice in one step (create rules 3 and 4)."""
    machine_rail = experiment["payment_method"] in MACHINE_RAILS
    quote = quotes.issue(db, experiment, at, status=QuoteStatus.ACCEPTED)
    status = InvoiceStatus.OPEN if machine_rail else InvoiceStatus.DRAFT
    invoice = invoices.create(db, experiment, quote, at, status=status)
    machine.accepted_at_once(lab, db, experiment, at, paid_first=machine_rail)
    if machine_rail:
        return Answer(acceptance.body(lab, quote, invoice))
    experiment["status"] = ExperimentStatus.WAITING_FOR_CONFIRMATION
    hosted = invoices.url(lab, invoice)
    costs = invoices.costs(lab, invoice)
    invoice_fields = {
        "provider_invoice_id": invoice["provider_invoice_id"],
        "provider_hosted_invoice_url": hosted,
    }
    return Answer(_created(experiment, costs) | invoice_fields, 201)


def fail_after_creation(lab: Lab, db: Db, invoice_id: str) -> dict[str, Any]:
    """Lab fault: the order broke after its invoice was made (create rules 5 and 6); the error body's further fields.

    The invoice is voided, the experiment stays, and a quote follows as after a submit.
    """
    invoice = db.one("SELECT * FROM invoices WHERE id = ? OR provider_invoice_id = ?", invoice_id, invoice_id)
    experiment = db.one("SELECT * FROM experiments WHERE id = ?", (invoice or {}).get("experiment_id"))
    if invoice is None or experiment is None:
        return {}
    db.update("invoices", invoice["id"], status=InvoiceStatus.VOID)
    db.update("quotes", invoice["quote_id"], status=QuoteStatus.REJECTED)
    machine.requote(lab, db, experiment, lab.clock.now(experiment["org_id"]))
    return {
        "experiment_id": experiment["id"],
        "provider_invoice_id": invoice["provider_invoice_id"],
        "provider_hosted_invoice_url": invoices.url(lab, invoice),
    }
