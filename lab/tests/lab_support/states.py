"""A lab with experiments in every state that the customer can meet, and the ids of everything in it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay_lab.service.core import LabCore
from assay_lab.testing import LocalLab
from lab_support.core import PRICED, UNPRICED, advance, spec

# Method, path below /api/v1, JSON body; the answer's JSON.
Ask = Callable[..., Any]


@dataclass(frozen=True)
class Inhabited:
    """Real ids by the name of the path parameter that takes them, and codes of experiments."""

    ids: dict[str, list[str]]
    codes: list[str]


def inhabit_core(core: LabCore) -> Inhabited:
    """Fill a lab in the test's own process."""

    def ask(method: str, path: str, body: Any = None) -> Any:
        return core.request(method, path, json_body=body).body

    return _inhabit(ask, lambda **span: advance(core, **span))


def inhabit_lab(lab: LocalLab) -> Inhabited:
    """Fill a lab that is a process of its own."""
    with lab.http() as http:

        def ask(method: str, path: str, body: Any = None) -> Any:
            answer = http.request(method, path, json=body)
            answer.raise_for_status()
            return answer.json()

        return _inhabit(ask, lab.advance)


def _inhabit(ask: Ask, let_pass: Callable[..., Any]) -> Inhabited:
    """Order experiments and let them come as far as they differ."""

    def order(name: str, specification: Any = None, **fields: Any) -> str:
        body = {"experiment_spec": specification or spec(), "name": name, **fields}
        answer = ask("POST", "/experiments", body)
        return str(answer.get("experiment_id", ""))

    order("done", auto_accept_quote=True)
    expression = {"experiment_type": "expression", "sequences": spec()["sequences"]}
    order("expired", expression, skip_draft=True)
    let_pass(days=31)
    order("at work", auto_accept_quote=True)
    order("to pay by wallet", auto_accept_quote=True, payment={"method": "x402-exact"})
    order("to pay by card", auto_accept_quote=True, payment={"method": "mpp-spt"})
    quoted = [order(f"quoted {number}", skip_draft=True) for number in range(5)]
    order("quoted by hand", spec(target_id=UNPRICED["id"]), skip_draft=True)
    let_pass(hours=1)
    rejected = ask("GET", f"/experiments/{quoted[0]}")["provider_quote_id"]
    ask("POST", f"/quotes/{rejected}/reject", {"reason": "price"})
    order("being quoted", skip_draft=True)
    for number in range(4):
        order(f"draft {number}")
    # Last: nothing is delivered to it while the time passes.
    hooks = [ask("POST", "/webhooks", {"url": f"https://hooks.example/{number}"}) for number in range(3)]
    custom_target = {"name": "Our antigen", "product_id": "P-1", "sequence": "MKTAYIAKQR"}
    request = ask("POST", "/targets/request-custom", custom_target)
    ids = _ids(ask) | {"webhook_id": [hook["id"] for hook in hooks], "request_id": [request["id"]]}
    return Inhabited(ids, [row["code"] for row in _rows(ask, "experiments")])


def _ids(ask: Ask) -> dict[str, list[str]]:
    invoices = _rows(ask, "invoices")
    ids = {
        f"{kind}_id": [row["id"] for row in _rows(ask, f"{kind}s")]
        for kind in ("experiment", "result", "quote")
    }
    return ids | {
        "sequence_id": [row["id"] for row in _rows(ask, "sequences")][:3],
        "invoice_id": [row[name] for row in invoices for name in ("id", "provider_invoice_id")],
        "target_id": [PRICED["id"], UNPRICED["id"]],
    }


def _rows(ask: Ask, kind: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ask("GET", f"/{kind}")["items"]
    return rows
