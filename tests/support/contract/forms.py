"""Every part of the contract that is "not shown", in several reasonable forms: functions from plain facts to an answer's body.

Written from the contract alone. `FORMS[part][name]` is one form; the first of each part has what the contract shows and
nothing more. A form that returns `(status, body)` chooses its status as well; a body of `bytes` is sent as it is.
"""

import base64
import json
from datetime import timedelta, timezone

OFFSET = timezone(timedelta(hours=5, minutes=30))
EMPTY = b""
ROUTER = (404, {"detail": "Not Found"})
GATEWAY = (404, b"<html><body><h1>404 Not Found</h1></body></html>")
PAGE = "https://pay.example/hosted/{}"


def pascal(word):
    return "".join(part.capitalize() for part in word.split("_"))


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


def entries(e):
    return [{"name": name, **value} for name, value in e.sequences.items()]


def spec_of(e):
    return {"experiment_spec": {**e.spec, "sequences": e.sequences}}


def resolved(e):
    rest = {k: v for k, v in e.spec.items() if k not in {"target_id", "sequences"}}
    target = {"name": "EGFR", "target_catalog_id": e.spec["target_id"]} if e.spec.get("target_id") else None
    return {"experiment_spec": {**rest, "target": target, "sequences": e.sequences}}


def costs(e):
    return {"type": "quoted", "amount_cents": e.total, "currency": "usd", "status": "open"}


DETAIL = {
    "the list fields alone": item,
    "the specification as it was sent": lambda e: item(e) | spec_of(e),
    "a resolved target, and costs": lambda e: (
        item(e) | resolved(e) | {"costs": costs(e), "provider_quote_id": None}
    ),
    "its fields beside the list's": lambda e: item(e) | {**e.spec, "sequences": entries(e)},
    "sequences as entries": lambda e: item(e) | {"experiment_spec": {**e.spec, "sequences": entries(e)}},
    "sequences as a count": lambda e: item(e) | {"sequences": len(e.sequences), "target": "EGFR"},
    "sequences as previews": lambda e: (
        item(e)
        | {
            "sequences": [
                {"id": f"s-{n}", "name": n, "aa_preview": v["aa_string"][:4], "length": len(v["aa_string"])}
                for n, v in e.sequences.items()
            ]
        }
    ),
    "in an envelope": lambda e: {"experiment": item(e) | spec_of(e)},
    "named as in the create answer": lambda e: {
        "experiment_id": e.id,
        "experiment_code": e.code,
        **{k: v for k, v in item(e).items() if k not in {"id", "code"}},
    },
    "odd values where nothing decides": lambda e: (
        item(e)
        | {
            "costs": [costs(e)],
            "provider_quote_id": 7,
            "experiment_url": None,
            "experiment_spec": "see the portal",
            "eta": "",
        }
    ),
    "in a list of one": lambda e: [item(e)],
    "in two envelopes": lambda e: {"data": {"experiment": item(e)}, "meta": {"version": 1}},
    "null in every other field": lambda e: {
        **dict.fromkeys(
            ("name", "experiment_type", "experiment_url", "experiment_spec", "costs", "provider_quote_url")
        ),
        **{k: v for k, v in item(e).items() if k in {"id", "code", "status", "created_at", "results_status"}},
    },
}

CREATED = {
    "the four fields": lambda e: {
        "experiment_id": e.id,
        "experiment_code": e.code,
        "status": e.status,
        "costs": {},
    },
    "the id alone": lambda e: {"experiment_id": e.id},
    "odd costs and status": lambda e: {
        "experiment_id": e.id,
        "status": {"name": e.status},
        "costs": [1, 2],
        "error": None,
    },
    "the whole record": lambda e: item(e) | {"experiment_id": e.id},
    "the record, with its id as id": item,
    "in an envelope": lambda e: {"data": {"experiment_id": e.id, "status": e.status}},
}


def invoice_fields(e):
    return {"provider_invoice_id": f"in_{e.invoice}", "provider_hosted_invoice_url": PAGE.format(e.invoice)}


def acceptance(e):
    """Contract 2.6."""
    machine = e.rail != "async_invoice"
    payment = {
        "kind": "machine" if machine else "hosted_invoice",
        "hosted_invoice_url": PAGE.format(e.invoice),
    }
    if machine:
        payment |= {"methods": [e.rail], "pay_url": f"/api/v1/invoices/{e.invoice}/pay"}
    return {
        "id": f"q-{e.number}",
        "status": "accepted",
        "hosted_invoice_url": PAGE.format(e.invoice),
        "invoice_id": e.invoice,
        "payment": payment,
    }


ACCEPTED = {
    "the contract's fields": acceptance,
    "the pay path without the invoice's id": lambda e: {
        k: v for k, v in acceptance(e).items() if k != "invoice_id"
    },
    "the invoice's id without a pointer": lambda e: {
        k: v for k, v in acceptance(e).items() if k != "payment"
    },
    "a whole address": lambda e: (
        {k: v for k, v in acceptance(e).items() if k != "invoice_id"}
        | {
            "payment": {
                "kind": "machine",
                "methods": [e.rail],
                "pay_url": f"{e.base_url}/api/v1/invoices/{e.invoice}/pay",
            }
        }
    ),
    "the experiment named": lambda e: acceptance(e) | {"experiment_id": e.id, "experiment_code": e.code},
    "a word as the quote's status": lambda e: acceptance(e) | {"status": "Accepted", "id": 17},
    "words of its own in the pointer": lambda e: (
        acceptance(e)
        | {
            "payment": acceptance(e)["payment"]
            | {"kind": "Machine rail", "methods": [e.rail.replace("-", "_")]}
        }
    ),
    "odd values in the pointer": lambda e: (
        acceptance(e)
        | {"payment": {"kind": None, "methods": e.rail, "pay_url": f"/api/v1/invoices/{e.invoice}/pay"}}
    ),
}

# Confirming a quote: the contract shows the answer's fields in 2.6, and no payload in 4.2.
CONFIRMED = {
    "the contract's fields": acceptance,
    "no content": lambda e: (204, EMPTY),
    "an empty object": lambda e: {},
    "an empty body": lambda e: EMPTY,
    "a status": lambda e: {"status": "accepted"},
    "the pay path without the invoice's id": ACCEPTED["the pay path without the invoice's id"],
}

SUBMITTED = {
    "an empty object": lambda e: {},
    "no content": lambda e: (204, EMPTY),
    "a status": lambda e: {"status": e.status, "experiment_id": e.id},
    "text": lambda e: b"OK",
}

REJECTED = {
    "an empty object": lambda e: {},
    "no content": lambda e: (204, EMPTY),
    "id and status": lambda e: {"id": f"q-{e.number}", "status": "rejected"},
}


def totals(e):
    return {"currency": "usd", "status": "open", "expires_at": e.later}


QUOTE = {
    "totals as an object": lambda e: {"totals": {"total": e.total, "subtotal": e.total}, **totals(e)},
    "amount_total": lambda e: {"amount_total": e.total, "amount_subtotal": e.total, **totals(e)},
    "total_cents, of the list's vocabulary": lambda e: {
        "total_cents": e.total,
        **totals(e),
        "status": "pending",
    },
    "totals in cents": lambda e: {
        "totals": {"total_cents": e.total, "tax_cents": 0},
        **totals(e),
        "currency": "USD",
    },
    "total_amount_cents": lambda e: {"id": 3, "total_amount_cents": e.total, **totals(e), "status": "Open"},
    "no total": lambda e: {"note": "see the PDF", **totals(e)},
    "a total in words": lambda e: {"total": "two hundred", **totals(e)},
    "a total as text": lambda e: {"amount_total": str(e.total), **totals(e)},
    "a total with a fraction": lambda e: {"amount_total": e.total / 100 + 0.5, **totals(e)},
    "two totals that disagree": lambda e: {
        "amount_total": e.total // 100,
        "total_cents": e.total,
        **totals(e),
    },
    "a currency that is an object": lambda e: {
        "amount_total": e.total,
        **totals(e),
        "currency": {"code": "eur"},
    },
    "a currency beside the total alone": lambda e: {
        **totals(e),
        "currency": None,
        "totals": {"total": e.total, "currency": "eur"},
    },
    "in a list of one": lambda e: [{"amount_total": e.total, **totals(e)}],
    "among items": lambda e: {"items": [{"amount_total": e.total, **totals(e)}], "total": 1},
    "the zero of a clock as its end": lambda e: {"amount_total": e.total, **totals(e), "expires_at": 0},
    "an unknown status": lambda e: {"amount_total": e.total, **totals(e), "status": "sent_to_customer"},
    "in an envelope": lambda e: {"quote": {"amount_total": e.total, **totals(e)}},
}

INVOICE = {
    "the contract's fields": lambda e: {
        "experiment_id": e.id,
        "status": e.invoice_status,
        "provider_invoice_url": PAGE.format(e.invoice),
    },
    "with its id": lambda e: {
        "id": e.invoice,
        "experiment_id": e.id,
        "status": e.invoice_status,
        "provider_invoice_url": PAGE.format(e.invoice),
    },
    "no status": lambda e: {
        "experiment_id": e.id,
        "status": None,
        "provider_invoice_url": PAGE.format(e.invoice),
    },
    "a status of its own": lambda e: {
        "experiment_id": e.id,
        "status": {"open": "awaiting_payment"}.get(e.invoice_status, e.invoice_status),
        "provider_invoice_url": None,
    },
    "in Pascal case": lambda e: {
        "experiment_id": e.id,
        "status": pascal(e.invoice_status),
        "provider_invoice_url": PAGE.format(e.invoice),
    },
    "no content": lambda e: (204, EMPTY),
    "null": lambda e: None,
    "draft until it is paid": lambda e: {
        "experiment_id": e.id,
        "status": "draft" if e.invoice_status == "open" else e.invoice_status,
        "provider_invoice_url": PAGE.format(e.invoice),
    },
}

PAID = {
    "an empty object": lambda e: {},
    "no content": lambda e: (204, EMPTY),
    "the invoice's state": lambda e: {
        "status": "paid",
        "already_paid": False,
        "settlement_reference": "set-1",
    },
    "text": lambda e: b"paid",
}

UPDATES = {
    "the contract's fields": lambda e: [
        {
            "id": f"u-{e.number}",
            "experiment_id": e.id,
            "experiment_code": e.code,
            "name": "Started",
            "timestamp": e.created,
        }
    ],
    "no rows": lambda e: [],
    "odd values": lambda e: [
        {
            "id": f"u-{e.number}",
            "experiment_id": e.id,
            "experiment_code": None,
            "name": None,
            "timestamp": "soon",
            "eta": "",
        }
    ],
    "numbers as ids": lambda e: [{"id": 7, "experiment_id": e.id, "timestamp": e.created}],
}

LISTS = {
    "the contract's words": lambda rows, total, offset: {
        "items": rows,
        "total": total,
        "count": len(rows),
        "offset": offset,
    },
    "rows alone": lambda rows, total, offset: rows,
    "items alone": lambda rows, total, offset: {"items": rows},
    "totals as text": lambda rows, total, offset: {
        "items": rows,
        "total": str(total),
        "count": None,
        "offset": offset,
    },
}


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


def entry(index, e, **own):
    kind = e.spec["experiment_type"]
    values = {
        "affinity": {"kd_mean": 1e-9 * (index + 1), "kon_mean": 1e5, "koff_mean": 1e-4, "binding": "true"},
        "screening": {"binding": "true"},
        "thermostability": {"tm": 50.0 + index},
        "expression": {"expression": "high", "concentration_value": 10.0 + index},
    }.get(kind, {"value": 1.5 + index})
    return {**own, **values}


def by(e, **fields):
    return [
        entry(i, e, **{k: f(n, v) for k, f in fields.items()}) for i, (n, v) in enumerate(e.sequences.items())
    ]


def whole(e, rows):
    return [summary_row(e) | {"summary": rows}]


def scaled(e, factor, *, text=False, **unit):
    """Entries with names whose K_D is in another unit."""
    rows = [row | {"kd_mean": row["kd_mean"] * factor} | unit for row in by(e, name=lambda n, v: n)]
    return [row | {"kd_mean": str(row["kd_mean"])} for row in rows] if text else rows


RESULTS = {
    "summaries alone": lambda e: [summary_row(e)],
    "sequence objects": lambda e: whole(e, by(e, sequence=lambda n, v: {"name": n, **v})),
    "names": lambda e: whole(e, by(e, sequence_name=lambda n, v: n)),
    "names in another case": lambda e: whole(e, by(e, name=lambda n, v: n.upper())),
    "residues alone": lambda e: whole(e, by(e, sequence=lambda n, v: v["aa_string"].lower())),
    "residues beside a null name": lambda e: whole(
        e, by(e, sequence=lambda n, v: {"name": None, "aa_string": v["aa_string"]})
    ),
    "sequence ids": lambda e: whole(e, by(e, sequence_id=lambda n, v: f"seq-{n}")),
    "nothing that names a design": lambda e: whole(e, by(e)),
    "one result per design, without names": lambda e: [
        summary_row(e) | {"id": f"r-{i}", "summary": [row]} for i, row in enumerate(by(e))
    ],
    "data in place of summary": lambda e: [summary_row(e) | {"data": by(e, sequence_name=lambda n, v: n)}],
    "one object": lambda e: summary_row(e) | {"summary": by(e, sequence_name=lambda n, v: n)},
    "no result_type": lambda e: [
        {k: v for k, v in row.items() if k not in {"result_type", "title"}}
        for row in whole(e, by(e, sequence_name=lambda n, v: n))
    ],
    "a row that is no object": lambda e: ["preliminary", *whole(e, by(e, sequence_name=lambda n, v: n))],
    "a shape of its own": lambda e: {"plates": [[1, 2], [3, 4]]},
    "an object by design": lambda e: {n: entry(i, e) for i, n in enumerate(e.sequences)},
    "a summary by design": lambda e: [
        summary_row(e) | {"summary": {n: entry(i, e) for i, n in enumerate(e.sequences)}}
    ],
    "entries without results": lambda e: by(e, name=lambda n, v: n),
    "a result per design, without a summary": lambda e: [
        summary_row(e) | {"id": f"r-{i}", **row} for i, row in enumerate(by(e, name=lambda n, v: n))
    ],
    "lines of JSON": lambda e: "\n".join(map(json.dumps, by(e, name=lambda n, v: n))).encode(),
    "with a byte order mark": lambda e: (
        b"\xef\xbb\xbf" + json.dumps(whole(e, by(e, name=lambda n, v: n))).encode()
    ),
    "a table": lambda e: b"name,kd\nD0,1e-9\n",
    "one id for all": lambda e: [summary_row(e) | {"summary": [row]} for row in by(e, name=lambda n, v: n)],
    "no ids": lambda e: [
        {**summary_row(e), "id": None, "summary": [row]} for row in by(e, name=lambda n, v: n)
    ],
    "names in place of residues": lambda e: whole(e, by(e, sequence=lambda n, v: n)),
    "names with the experiment's code": lambda e: whole(e, by(e, name=lambda n, v: f"{e.code}_{n}")),
    "names of others beside residues": lambda e: whole(
        e, by(e, name=lambda n, v: "c" if n == "D0" else n, aa_string=lambda n, v: v["aa_string"])
    ),
    "numbers as text": lambda e: whole(e, scaled(e, 1, text=True)),
    "nM, named beside the number": lambda e: whole(e, scaled(e, 1e9, unit="nM")),
    "nM, named in the result": lambda e: [row | {"units": {"kd": "nM"}} for row in whole(e, scaled(e, 1e9))],
    "nM, not named": lambda e: whole(e, scaled(e, 1e9)),
    "logarithms": lambda e: whole(e, [row | {"kd_mean": -9.0} for row in by(e, name=lambda n, v: n)]),
    "no rows": lambda e: [],
    "a package that cannot be reached": lambda e: [
        row | {"data_package_url": "https://10.1.2.3/package.zip"}
        for row in whole(e, by(e, sequence_name=lambda n, v: n))
    ],
}

TIMES = {
    "UTC": lambda t: t.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "with an offset": lambda t: t.astimezone(OFFSET).isoformat(),
    "naive": lambda t: t.replace(tzinfo=None).isoformat(),
    "unix seconds": lambda t: int(t.timestamp()),
    "unix milliseconds as text": lambda t: str(int(t.timestamp() * 1000)),
    "in words": lambda t: t.strftime("%a, %d %b %Y %H:%M:%S GMT"),
}

STATUSES = {
    "snake case": lambda word: word,
    "Pascal case": pascal,
    "upper case": str.upper,
    "words with blanks": lambda word: f" {word.replace('_', ' ').capitalize()} ",
    "unknown ones in between": lambda word: {"in_queue": "awaiting_slot", "in_production": "plate_42"}.get(
        word, word
    ),
}

OUTSIDE = {
    "the service's own 404": (404, {"error": "not found", "request_id": "req_1"}),
    "a router's 404": ROUTER,
    "a gateway's page": GATEWAY,
    "method not allowed": (405, {"detail": "Method Not Allowed"}),
    "a web page": (200, b"<!doctype html><html><body>Portal</body></html>"),
    "forbidden": (403, {"error": "forbidden", "request_id": "req_1"}),
    "not implemented": (501, {"error": "not implemented", "request_id": "req_1"}),
    "a redirect to a page": (302, b"<html>Sign in</html>"),
}

REFUSALS = {
    "401": (401, {"error": "invalid token", "request_id": "req_1"}),
    "401 without a body of the service": (401, {"message": "Unauthorized"}),
    "413": (413, b"<html>413 Request Entity Too Large</html>"),
    "422": (422, {"detail": [{"loc": ["body", "name"], "msg": "too long"}]}),
    "400 as a page": (400, b"<html>Bad Request</html>"),
    "400 as a list": (400, [{"msg": "name: too long"}]),
    "400 without a body": (400, EMPTY),
    "403 in words of a gateway": (403, {"message": "Forbidden"}),
    "429": (429, {"message": "Too many requests"}),
}

TARGETS = {
    "the id alone": lambda t: {"id": t["id"]},
    "id and name": lambda t: {"id": t["id"], "name": t["name"]},
    "odd values": lambda t: {
        "id": t["id"],
        "name": t["name"],
        "pricing": "on request",
        "details": [],
        "catalog_number": 17,
        "url": 3,
    },
}

ESTIMATE = {
    "the contract's fields": lambda t: {
        "breakdown": {
            "pricing_version": "v1_2026-01-01",
            "assay": {"name": "affinity", "base_cents": t, "replicate_addon_cents": 0, "subtotal_cents": t},
            "materials": {"target": {"name": "EGFR"}, "price_per_sequence_cents": 0, "subtotal_cents": 0},
            "total_cents": t,
        },
        "incomplete": None,
        "warnings": [],
    },
    "the total alone": lambda t: {"breakdown": {"total_cents": t}},
    "odd values beside the total": lambda t: {
        "breakdown": {"pricing_version": 1, "assay": "affinity", "materials": [], "total_cents": t},
        "warnings": None,
    },
}

FORMS = {
    "detail": DETAIL,
    "created": CREATED,
    "accepted": ACCEPTED,
    "confirmed": CONFIRMED,
    "submitted": SUBMITTED,
    "rejected": REJECTED,
    "quote": QUOTE,
    "invoice": INVOICE,
    "paid": PAID,
    "updates": UPDATES,
    "lists": LISTS,
    "results": RESULTS,
    "times": TIMES,
    "statuses": STATUSES,
    "outside": OUTSIDE,
    "targets": TARGETS,
    "estimate": ESTIMATE,
}


def b64(content):
    return base64.urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).decode().rstrip("=")
