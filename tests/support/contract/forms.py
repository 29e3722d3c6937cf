"""How the stand-in answers: functions from the plain facts of an experiment to the body of an answer.

`FORMS[part][name]` is one form; the first of each part has what the contract shows. Every form is as `openapi.yaml`
describes the answer, but for those in `UNDESCRIBED`: they show what a campaign does where a service leaves out or bends
something. A form that returns `(status, body)` chooses its status as well; a body of `bytes` is sent as it is.
"""

import base64
import json
from datetime import timedelta, timezone

OFFSET = timezone(timedelta(hours=5, minutes=30))
EMPTY = b""
PAGE = "https://pay.example/hosted/{}"
QUOTE_PAGE = "https://pay.example/quotes/{}"
TARGET = {"id": "11111111-2222-4333-8444-555555555555", "name": "EGFR"}


def refuse(status, text, **fields):
    """A refusal in the words of the contract (2.12), without further headers."""
    return status, {"error": text, "request_id": "req_1", **fields}, {}


def page(rows, total=None, offset=0):
    """One page of a list (contract 4.1)."""
    return {
        "items": rows,
        "total": len(rows) if total is None else total,
        "count": len(rows),
        "offset": offset,
    }


def pascal(word):
    return "".join(part.capitalize() for part in word.split("_"))


def without(body, *names):
    return {name: value for name, value in body.items() if name not in names}


def item(e):
    """Contract 2.1."""
    return {
        "id": e.id,
        "code": e.code,
        "name": e.name,
        "status": e.status,
        "created_at": e.created,
        "results_status": e.results_status,
        "experiment_type": e.spec["experiment_type"],
        "experiment_url": f"https://portal.example/{e.code}",
    }


def record(e):
    """The detail as it is published, with its target looked up and its costs."""
    spec = without(e.spec, "target_id") | {"sequences": e.sequences}
    if e.spec.get("target_id"):
        spec["target"] = {"name": TARGET["name"], "target_catalog_id": e.spec["target_id"]}
    return item(e) | {"experiment_spec": spec, "costs": costs(e), "provider_quote_id": None}


def costs(e):
    return {
        "type": "quoted",
        "amount_cents": e.total,
        "currency": "usd",
        "status": "open",
        "provider_quote_url": QUOTE_PAGE.format(e.number),
    }


def created(e):
    """Contract 2.1: the answer to a create."""
    return {
        "experiment_id": e.id,
        "experiment_code": e.code,
        "status": e.status,
        "costs": costs(e),
    }


def invoice_fields(e):
    return {"provider_invoice_id": f"in_{e.invoice}", "provider_hosted_invoice_url": PAGE.format(e.invoice)}


def acceptance(e):
    """Contract 2.6."""
    machine = e.rail != "async_invoice"
    return {
        "id": f"q-{e.number}",
        "status": "accepted",
        "hosted_invoice_url": PAGE.format(e.invoice),
        "invoice_id": e.invoice,
        "payment": {
            "kind": "machine" if machine else "hosted_invoice",
            "hosted_invoice_url": PAGE.format(e.invoice),
            "methods": [e.rail] if machine else [],
            "pay_url": f"/api/v1/invoices/{e.invoice}/pay",
        },
    }


def quote(e, **fields):
    """The published quote of an experiment, with other fields in its place."""
    return {
        "experiment_id": e.id,
        "provider_quote_url": QUOTE_PAGE.format(e.number),
        "amount_total": e.total,
        "amount_subtotal": e.total,
        "currency": "usd",
        "status": "open",
        "expires_at": e.later,
    } | fields


def quote_with(e, **fields):
    """The quote as the contract describes it: its total under any name."""
    return without(quote(e), "amount_total", "amount_subtotal") | fields


def invoice(e, **fields):
    """Contract 2.8."""
    return {
        "experiment_id": e.id,
        "status": e.invoice_state,
        "provider_invoice_url": PAGE.format(e.invoice),
    } | fields


def update(e, **fields):
    """Contract 2.9."""
    return {
        "id": f"u-{e.number}",
        "experiment_id": e.id,
        "experiment_code": e.code,
        "name": "Started",
        "timestamp": e.created,
    } | fields


def summary_row(e):
    """Contract 2.10."""
    return {
        "id": f"r-{e.number}",
        "experiment_id": e.id,
        "result_type": e.spec["experiment_type"],
        "title": "Results",
        "created_at": e.created,
        "size_bytes": 10,
    }


def entries(e):
    """The published entries of an affinity result, one for each sequence."""
    return [
        {
            "result_type": "affinity",
            "sequence": {"name": name, "control": False, **value},
            "kd_units": "M",
            "kd_mean": 1e-9 * (index + 1),
            "kon_mean": 1e5,
            "koff_mean": 1e-4,
            "binding": "true",
            "binding_strength": "strong",
            "positive_control": False,
            "replicates": [],
        }
        for index, (name, value) in enumerate(e.sequences.items())
    ]


def result(e, rows=None, **fields):
    return [summary_row(e) | {"summary": entries(e) if rows is None else rows, "metadata": {}} | fields]


def edited(e, edit, *drop):
    """The result with fields of each entry in the place of others."""
    rows = [without(row, *drop) | edit(row) for row in entries(e)]
    return result(e, rows)


def estimate(total):
    """Contract 2.5: a complete price, of `total` cents."""
    assay = {"name": "affinity", "base_cents": total, "replicate_addon_cents": 0, "subtotal_cents": total}
    materials = {"target": named_target(), "price_per_sequence_cents": 0, "subtotal_cents": 0}
    breakdown = {
        "pricing_version": "v1_2026-01-01",
        "assay": assay,
        "materials": materials,
        "total_cents": total,
    }
    return {"breakdown": breakdown, "incomplete": None, "warnings": []}


def no_price():
    """Contract 2.5: a target without self-service pricing."""
    whole = estimate(1)["breakdown"]
    incomplete = {
        "pricing_version": whole["pricing_version"],
        "assay": whole["assay"],
        "materials_unavailable": {"target": named_target(), "reason": "no price"},
    }
    return {"breakdown": None, "incomplete": incomplete, "warnings": []}


def named_target():
    return {"name": TARGET["name"], "target_catalog_id": TARGET["id"]}


FORMS = {
    "detail": {
        "the list fields alone": item,
        "published": record,
        "sequences as previews": lambda e: (
            item(e) | {"sequences": [{"id": f"s-{n}", "name": n, "length": 7} for n in e.sequences]}
        ),
        "odd values where nothing decides": lambda e: (
            item(e)
            | {
                "costs": [1],
                "provider_quote_id": 7,
                "experiment_url": None,
                "experiment_spec": "-",
                "eta": "",
            }
        ),
    },
    "created": {
        "the four fields": created,
        "odd costs and status": lambda e: created(e) | {"status": {"name": e.status}, "costs": [1, 2]},
    },
    "accepted": {
        "the contract's fields": acceptance,
        "no pointer": lambda e: without(acceptance(e), "payment"),
        "the pay path without the invoice's id": lambda e: without(acceptance(e), "invoice_id"),
    },
    # The contract shows the fields in 2.6, and no payload in 4.2.
    "confirmed": {
        "the contract's fields": acceptance,
        "no content": lambda _: (204, EMPTY),
        "an empty object": lambda _: {},
    },
    "submitted": {
        "an empty object": lambda _: {},
        "published": lambda e: {
            "experiment_id": e.id,
            "previous_status": "draft",
            "status": e.status,
            "confirmed_at": e.created,
        },
    },
    "rejected": {
        "an empty object": lambda _: {},
        "published": lambda e: {"id": f"q-{e.number}", "status": "rejected"},
    },
    "quote": {
        "totals as an object": lambda e: quote_with(e, totals={"total": e.total, "subtotal": e.total}),
        "published": quote,
        "no total": quote_with,
        "a total with a fraction": lambda e: quote(e, amount_total=e.total / 100 + 0.5),
        "two totals that disagree": lambda e: quote(e, amount_total=e.total // 100, total_cents=e.total),
        "another currency beside the total": lambda e: quote_with(
            e, totals={"total": e.total, "currency": "eur"}
        ),
        "an unknown status": lambda e: quote(e, status="sent_to_customer"),
    },
    "invoice": {
        "the contract's fields": invoice,
        "no status": lambda e: invoice(e, status=None),
        "draft until it is paid": lambda e: invoice(
            e, status="draft" if e.invoice_state == "open" else e.invoice_state
        ),
    },
    "paid": {
        "an empty object": lambda _: {},
        "published": lambda e: {
            "id": e.invoice,
            "provider_invoice_id": f"in_{e.invoice}",
            "status": "paid",
            "currency": "usd",
            "already_paid": False,
            "settlement_reference": "set-1",
        },
    },
    "updates": {
        "the contract's fields": lambda e: [update(e)],
        "no rows": lambda _: [],
        "odd values": lambda e: [update(e, experiment_code=None, name=None, timestamp="soon", eta="")],
    },
    "results": {
        "summaries alone": lambda e: [summary_row(e)],
        "published": result,
        "sequence ids": lambda e: edited(
            e, lambda row: {"sequence_id": f"seq-{row['sequence']['name']}"}, "sequence"
        ),
        "nothing that names a design": lambda e: edited(e, lambda _: {}, "sequence"),
        "names of others beside residues": lambda e: edited(
            e,
            lambda row: {"sequence": row["sequence"] | {"name": row["sequence"]["name"].replace("D0", "c")}},
        ),
        "nM, named beside the number": lambda e: edited(
            e, lambda row: {"kd_mean": row["kd_mean"] * 1e9, "kd_units": "nM"}
        ),
        "nM, not named": lambda e: edited(e, lambda row: {"kd_mean": row["kd_mean"] * 1e9}, "kd_units"),
        "logarithms": lambda e: edited(e, lambda _: {"kd_mean": -9.0}, "kd_units"),
        "no rows": lambda _: [],
        "a package that cannot be reached": lambda e: result(
            e, data_package_url="https://10.1.2.3/package.zip"
        ),
        "an object by design": lambda e: dict(zip(e.sequences, entries(e), strict=True)),
        "a table": lambda _: b"name,kd\nD0,1e-9\n",
    },
    "times": {
        "UTC": lambda t: t.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "with an offset": lambda t: t.astimezone(OFFSET).isoformat(),
    },
    "statuses": {
        "snake case": lambda word: word,
        "Pascal case": pascal,
        "unknown ones in between": lambda word: {
            "in_queue": "awaiting_slot",
            "in_production": "plate_42",
        }.get(word, word),
    },
    # Calls that the contract does not have.
    "outside": {
        "the service's own 404": (404, {"error": "not found", "request_id": "req_1"}),
        "a web page": (200, b"<!doctype html><html><body>Portal</body></html>"),
        "forbidden": (403, {"error": "forbidden", "request_id": "req_1"}),
    },
    "targets": {
        "id and name": lambda t: t,
        "the id alone": lambda t: {"id": t["id"]},
        "odd values": lambda t: t | {"pricing": "on request", "details": [], "catalog_number": 17, "url": 3},
    },
    "estimate": {
        "the contract's fields": estimate,
        "odd values beside the total": lambda total: {
            "breakdown": {"pricing_version": 1, "assay": "affinity", "materials": [], "total_cents": total},
            "warnings": None,
        },
    },
}

UNDESCRIBED = {
    ("detail", "odd values where nothing decides"),
    ("created", "odd costs and status"),
    ("accepted", "the pay path without the invoice's id"),
    ("confirmed", "no content"),
    ("confirmed", "an empty object"),
    ("quote", "a total with a fraction"),
    ("quote", "an unknown status"),
    ("invoice", "no status"),
    ("updates", "odd values"),
    ("results", "sequence ids"),
    ("results", "nothing that names a design"),
    ("results", "nM, named beside the number"),
    ("results", "an object by design"),
    ("results", "a table"),
    ("statuses", "unknown ones in between"),
    ("targets", "odd values"),
    ("estimate", "odd values beside the total"),
}

REFUSALS = {
    "401": (401, {"error": "invalid token", "request_id": "req_1"}),
    "413": (413, b"<html>413 Request Entity Too Large</html>"),
    "422": (422, {"error": "name: too long", "request_id": "req_1"}),
    "400 without a body": (400, EMPTY),
    "403 in words of a gateway": (403, {"message": "Forbidden"}),
    "429": (429, {"message": "Too many requests"}),
}


def b64(content):
    return base64.urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).decode().rstrip("=")
