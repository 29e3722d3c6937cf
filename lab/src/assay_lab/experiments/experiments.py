"""Experiments: list, detail, modification, submission (contract 2.1 and 4.2). `orders` creates them."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from assay_lab.billing import invoices, pricing, quotes, specs
from assay_lab.experiments import sequences, state_machine
from assay_lab.kernel import times
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.store import Db, Row
from assay_lab.measure.assays import ASSAY_TYPES
from assay_lab.requests import lists, validation
from assay_lab.requests.core import Answer, Call, Lab, experiment_of, uuid_or_none
from assay_lab.requests.lists import Column, Listing
from assay_lab.requests.schemas import ModifyExperiment
from assay_lab.requests.validation import Entry, Violation
from assay_lab.vocabulary import ExperimentStatus, ExperimentType, ResultsStatus

_STATUS: Final = Column("experiments.status", "enum", frozenset(ExperimentStatus))

LISTING: Final = Listing(
    source="experiments",
    columns={
        "id": Column("experiments.id", "uuid"),
        "code": Column("code"),
        "name": Column("name"),
        "status": _STATUS,
        "state": _STATUS,
        "results_status": Column("results_status", "enum", frozenset(ResultsStatus)),
        "experiment_type": Column("experiment_type", "enum", frozenset(ExperimentType)),
        "created_at": Column("created_at", "timestamp"),
        "experiment_spec": Column("shown_spec", "json"),
    },
    search=("name", "code"),
    plain=("status", "state", "experiment_type", "created_at"),
)

# contract 4.2, rules for PATCH
_EDITABLE: Final = frozenset({ExperimentStatus.DRAFT, ExperimentStatus.IN_REVIEW})
_EDITABLE_FOR_LIFE: Final = frozenset({"webhook_url"})


def view_summary(lab: Lab, db: Db, experiment: Row) -> dict[str, Any]:
    """A list item (contract 2.1)."""
    return _view_summary(lab, experiment, quotes.find_current(db, experiment))


def _view_summary(lab: Lab, experiment: Row, quote: Row | None) -> dict[str, Any]:
    names = ("id", "code", "name", "status", "created_at", "results_status", "experiment_type")
    return {
        **{name: experiment[name] for name in names},
        "experiment_url": lab.portal_url("experiments", experiment["portal_key"]),
        "provider_invoice_url": None,  # not populated in list or detail (contract 2.1)
        "provider_quote_url": quotes.link_quote(lab, quote) if quote else None,
    }


def view_record(lab: Lab, db: Db, experiment: Row) -> dict[str, Any]:
    """The detail record."""
    quote = quotes.find_current(db, experiment)
    spec = json.loads(experiment["spec"])
    target = specs.target_row(db, spec.get("target_id"), experiment["org_id"])
    entries = specs.stored_entries(db, experiment)
    body = _view_summary(lab, experiment, quote) | {
        "experiment_spec": specs.view_spec(spec, target, entries),
        "provider_quote_id": quote["id"] if quote else None,
    }
    costs = _view_costs(lab, db, experiment, quote, pricing.price_spec(spec, len(entries), target))
    return body if costs is None else body | {"costs": costs}


def view_estimated(lab: Lab, experiment: Row, price: pricing.Price) -> dict[str, Any] | None:
    """`costs` before the quote exists; None where no estimate is possible."""
    if not pricing.has_pricing(lab.settings, times.read(experiment["created_at"])):
        return None  # contract 9: experiments created before pricing v1 cannot be estimated
    if ASSAY_TYPES[experiment["experiment_type"]].takes_target and price.target is None:
        return None  # the target was cleared: without its materials any total would be too low
    return pricing.view_costs(price, pricing.name_version(lab.settings))


def _view_costs(
    lab: Lab, db: Db, experiment: Row, quote: Row | None, price: pricing.Price
) -> dict[str, Any] | None:
    invoice = invoices.find_latest(db, experiment["id"])
    if invoice is not None:
        return invoices.view_costs(lab, invoice)
    if quote is None:
        return view_estimated(lab, experiment, price)
    return {
        "type": "quoted",
        "amount_cents": quote["total_cents"],
        "currency": quote["currency"],
        "status": quotes.acceptance_word(quote["status"]),
        "provider_quote_url": quotes.link_quote(lab, quote),
        "expires_at": quote["valid_until"],
    }


def list_experiments(call: Call) -> Answer:
    """GET /experiments, newest first."""
    with call.lab.store.transaction() as db:
        return lists.make_page(call, LISTING, partial(view_summary, call.lab, db))


def get_experiment(call: Call) -> Answer:
    """GET /experiments/{id}."""
    with call.lab.store.transaction() as db:
        return Answer(view_record(call.lab, db, experiment_of(db, call)))


def submit_experiment(call: Call) -> Answer:
    """POST /experiments/{id}/submit: returns before the quote exists (contract 3)."""
    with call.lab.store.transaction() as db:
        experiment = experiment_of(db, call)
        if experiment["status"] != ExperimentStatus.DRAFT:
            message = f"the experiment is {experiment['status']}; only a draft can be submitted"
            raise Refusal(409, message, extra={"error_kind": "other", "hint": _give_hint(experiment)})
        spec = json.loads(experiment["spec"])
        validation.refuse_violations(validation.spec_violations(spec, specs.count_sequences(db, experiment)))
        now = call.now()
        state_machine.mark_submitted(call.lab, db, experiment, now)
    return Answer(
        {
            "experiment_id": experiment["id"],
            "previous_status": experiment["status"],
            "status": ExperimentStatus.WAITING_FOR_CONFIRMATION,
            "confirmed_at": times.stamp(now),
            "provider_invoice_url": None,  # the invoice follows the accepted quote
        }
    )


def _give_hint(experiment: Row) -> str:
    path = f"/experiments/{experiment['id']}"
    match experiment["status"]:
        case ExperimentStatus.WAITING_FOR_CONFIRMATION:
            return f"it is submitted already; poll GET {path}/quote"
        case ExperimentStatus.QUOTE_SENT:
            return f"the quote waits for POST {path}/quote/confirm"
        case ExperimentStatus.CANCELED:
            return "create a new experiment"
        case _:
            return f"it is ordered already; poll GET {path}"


def modify_experiment(call: Call) -> Answer:
    """PATCH /experiments/{id}."""
    with call.lab.store.transaction() as db:
        experiment = experiment_of(db, call)
        raw = call.json()
        _check_status(experiment, raw)
        _, violations = validation.read_shape(ModifyExperiment, raw)
        raw = raw if isinstance(raw, dict) else {}
        entries = sequences.read_entries(raw["sequences"]) if raw.get("sequences") is not None else None
        spec = _merge_spec(json.loads(experiment["spec"]), raw)
        draft = experiment["status"] == ExperimentStatus.DRAFT
        validation.refuse_violations(
            [*violations, *_find_violations(call, db, raw, spec, entries, draft=draft)]
        )
        changes = _make_changes(db, experiment, raw, spec)
        if changes:
            db.update("experiments", experiment["id"], **changes)
        replaced = entries is not None and _replace_sequences(db, experiment, entries, call)
    updated = bool(changes) or replaced
    message = "experiment updated" if updated else "nothing to change"
    return Answer({"id": experiment["id"], "message": message, "updated": updated})


def _check_status(experiment: Row, raw: Any) -> None:
    """409 for a locked field, whatever its value (contract 4.2, PATCH rule 1)."""
    named = set(raw) & ModifyExperiment.model_fields.keys() if isinstance(raw, dict) else set()
    late = sorted(named - _EDITABLE_FOR_LIFE)
    if late and experiment["status"] not in _EDITABLE:
        raise Refusal(
            409, f"{', '.join(late)}: cannot be changed while the experiment is {experiment['status']}"
        )


def _merge_spec(spec: dict[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """The specification as it would be. Null clears target_id; any other null leaves the field alone."""
    merged = dict(spec)
    for name in specs.FIELDS:
        if name in raw and (raw[name] is not None or name == "target_id"):
            merged[name] = raw[name]
    return specs.store_spec(merged)


def _find_violations(
    call: Call,
    db: Db,
    raw: Mapping[str, Any],
    spec: dict[str, Any],
    entries: list[Entry] | None,
    *,
    draft: bool,
) -> list[Violation]:
    # A draft may lack its target (null clears it) or have surplus sequences, and so may a canceled one: fields that the request
    # leaves alone are checked when the draft is submitted.
    number = None if entries is None else len(entries)
    needed = not draft and "target_id" in raw
    violations = list(validation.spec_violations(spec, number, target_needed=needed))
    violations += validation.sequence_violations(entries or [])
    target_id = raw.get("target_id")
    if (
        isinstance(target_id, str)
        and uuid_or_none(target_id)
        and not specs.target_row(db, target_id, call.who.org_id)
    ):
        violations.append(Violation(f"target_id: target {target_id} is not in the catalog", 404))
    allow_http = call.lab.settings.allow_http_webhooks
    return violations + validation.webhook_violations(raw.get("webhook_url"), allow_http=allow_http)


def _make_changes(db: Db, experiment: Row, raw: Mapping[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if spec != json.loads(experiment["spec"]):
        changes |= specs.make_columns(spec, specs.target_row(db, spec.get("target_id"), experiment["org_id"]))
    for name in ("name", "description"):
        if raw.get(name) is not None and raw[name] != experiment[name]:
            changes[name] = raw[name]
    if "webhook_url" in raw and raw["webhook_url"] != experiment["webhook_url"]:
        changes["webhook_url"] = raw["webhook_url"]
    return changes


def _replace_sequences(db: Db, experiment: Row, entries: list[Entry], call: Call) -> bool:
    def key(entry: Entry) -> tuple[Any, ...]:
        return entry.name, entry.aa_string.upper(), entry.control, entry.metadata

    if [key(entry) for entry in entries] == [key(entry) for entry in specs.stored_entries(db, experiment)]:
        return False
    db.run("DELETE FROM sequences WHERE experiment_id = ?", experiment["id"])
    sequences.insert_sequences(db, experiment["id"], entries, call.now())
    return True
