"""One walk through the whole service over HTTP, writing down for every call what was sent, answered and refused."""

import json
import re
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import httpx
from pydantic import SecretStr

from prefect_assay.lab.testing import LocalLab
from prefect_assay.payments.rails.x402 import X402Rail
from prefect_assay.service.models.service import WireWords
from support.interface.calls import CALLS
from support.interface.client import matches, paths
from support.lab.core import BY_LOT, PRICED, UNPRICED, spec
from support.lab.organisations import Org

UNKNOWN = "00000000-0000-4000-8000-000000000000"
JSON = {"content-type": "application/json"}
METADATA = {
    "type": "ScFv",
    "VH": "E",
    "VL": "D",
    "linker": "GS",
    "framework_regions": {"ch": "a", "cl": "b"},
    "tag_location": "N",
    "chain_order": "VH-VL",
}
FULL = spec(
    sequences={"a": {"aa_string": "MKTAYIAKQR", "control": True, "metadata": METADATA}, "b": "GSHMKLVFFA"},
    n_replicates=2,
    antigen_concentrations=[100.0, 0.0],
    parameters={"temperature": 25},
)
MELTING = spec(experiment_type="thermostability", method=None, target_id=None)
_RAIL = "x402-exact"
_KEY = SecretStr("0x" + "11" * 32)


@dataclass
class Walked:
    """What was seen of one call: names in accepted queries and bodies, fields of successes, every status."""

    query: set[str] = field(default_factory=set)
    sends: set[str] = field(default_factory=set)
    gets: set[str] = field(default_factory=set)
    statuses: set[int] = field(default_factory=set)


class Walk:
    """The record, by call."""

    def __init__(self, org: Org, lab: LocalLab, words: WireWords | None = None) -> None:
        self.org, self.lab, self.words = org, lab, words or WireWords()
        self.seen: dict[str, Walked] = defaultdict(Walked)
        self._hooked = {"response": [self._note]}

    def http(self, token: str | None) -> httpx.Client:
        """A client whose answers are written down."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        transport = httpx.HTTPTransport(verify=False)
        base = f"{self.lab.base_url}/api/v1"
        return httpx.Client(
            base_url=base, headers=headers, transport=transport, event_hooks=self._hooked, timeout=30
        )

    def _note(self, response: httpx.Response) -> None:
        response.read()
        request = response.request
        path = request.url.path.removeprefix("/api/v1")
        # A path of its own before one with an id in it.
        found = [call.id for call in CALLS if matches(call.id, request.method, path)]
        if not found:
            return
        seen = self.seen[min(found, key=lambda call: call.count("{"))]
        seen.statuses.add(response.status_code)
        if response.status_code < 400:
            seen.query |= set(request.url.params.keys())
            seen.sends |= paths(_json(request.content))
            seen.gets |= paths(_json(response.content))

    def wire(self, names: str) -> set[str]:
        """Names of the interface as this deployment spells them."""
        return {re.sub(r"(^|\.)provider_", rf"\1{self.words.provider}_", name) for name in names.split()}

    def run(self) -> None:
        """Everything, in order."""
        with self.http(self.org.lab.token) as http, self.http(self.org.lab.viewer_token) as viewer:
            _orders(self, http)
            _reading(self, http)
            _hosted(self, http)
            _machine(self, http)
            _account(self, http)
            _errors(self, http, viewer)
            # The last: it ends the token.
            http.post("/tokens/revoke")


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _order(http: httpx.Client, specification: dict[str, Any], **fields: Any) -> dict[str, Any]:
    answer = http.post("/experiments", json={"experiment_spec": specification, "name": "walk", **fields})
    assert answer.is_success, answer.text
    body: dict[str, Any] = answer.json()
    return body


def _orders(walk: Walk, http: httpx.Client) -> None:
    for target in (PRICED, BY_LOT, UNPRICED):
        estimated = {**FULL, "target_id": target["id"]}
        http.post("/experiments/cost-estimate", json={"experiment_spec": estimated})
    everything = {"webhook_url": "https://example.org/hook", "webhook_secret": "s" * 32, "skip_draft": True}
    _order(http, FULL, auto_accept_quote=True, payment={"method": _RAIL}, **everything)
    _order(http, FULL, auto_accept_quote=True)
    _order(http, MELTING)
    draft = _order(http, FULL)
    entry = {"name": "c", "aa_string": "MKV", "control": False, "metadata": {"free": 1}}
    added = {"experiment_code": draft["experiment_code"], "sequences": [entry]}
    http.post("/sequences", json=added)
    change = {
        "name": "new",
        "description": "d",
        "target_id": PRICED["id"],
        "antigen_concentrations": [1.0],
        "n_replicates": 1,
        "parameters": {},
        "sequences": [entry],
        "webhook_url": "https://example.org/hook",
    }
    http.patch(f"/experiments/{draft['experiment_id']}", json=change)
    http.get(f"/experiments/{draft['experiment_id']}")
    unpriced = _order(http, {**FULL, "target_id": UNPRICED["id"]})
    http.get(f"/experiments/{unpriced['experiment_id']}")


def _hosted(walk: Walk, http: httpx.Client) -> None:
    """A quote that is confirmed, one that is rejected, and the hosted invoice."""
    path = f"/experiments/{_order(http, FULL)['experiment_id']}"
    http.post(f"{path}/submit")
    http.get(f"{path}/quote")  # not yet
    http.get(f"{path}/invoice")  # not yet
    walk.org.advance(hours=1)
    http.get(path)
    http.get(f"{path}/quote")
    http.get(f"{path}/quote/pdf")
    quote_id = http.get("/quotes").json()["items"][0]["id"]
    http.get(f"/quotes/{quote_id}")
    http.post(f"/quotes/{quote_id}/reject", json={"reason": "price", "feedback": "f"})
    http.post(f"/quotes/{quote_id}/reject", json={"reason": "price"})  # again
    for by_id in (True, False):
        http.post(f"{path}/submit")
        walk.org.advance(hours=1)
        quote_id = http.get("/quotes").json()["items"][0]["id"]
        confirm = f"/quotes/{quote_id}/confirm" if by_id else f"{path}/quote/confirm"
        http.post(confirm, json={"purchase_order_number": "PO", "notes": "n"})
        http.post(confirm, json={})  # again
        http.get(f"{path}/invoice")
        http.get(path)
        path = f"/experiments/{_order(http, FULL)['experiment_id']}"
    http.post(f"/experiments/{UNKNOWN}/submit")
    walk.org.advance(days=16)
    for specification in (FULL, MELTING):
        done = _order(http, specification, skip_draft=True)["experiment_id"]
        walk.org.advance(hours=1)
        http.post(f"/experiments/{done}/quote/confirm", json={})
        walk.org.advance(days=16)
        (result,) = http.get(f"/experiments/{done}/results", params={"limit": 5, "offset": 0}).json()["items"]
        http.get(f"/results/{result['id']}")
        for part in ("updates", "sequences"):
            http.get(f"/experiments/{done}/{part}")
        http.patch(f"/experiments/{done}", json={"name": "late"})
        http.post(f"/experiments/{done}/submit")
        code = http.get(f"/experiments/{done}").json()["code"]
        late = {"experiment_code": code, "sequences": [{"name": "z", "aa_string": "MKV"}]}
        http.post("/sequences", json=late)


def _machine(walk: Walk, http: httpx.Client) -> None:
    """A machine payment, once and again; a hosted invoice at the same path."""
    order = _order(http, FULL, auto_accept_quote=True, payment={"method": _RAIL})
    pay = f"/invoices/{order['invoice_id']}/pay"
    rail = X402Rail(_KEY)
    (terms,) = rail.offers(http.post(pay)).terms
    nonce = rail.nonce(walk.lab.base_url, order["invoice_id"])
    paid = http.post(pay, headers=rail.credential(terms, nonce=nonce, valid_before=int(time.time()) + 120))
    assert paid.status_code == 200, paid.text
    http.post(pay)
    http.post(pay, headers={walk.words.header("Payment-Method"): "mpp-spt"})
    hosted = _order(http, FULL, auto_accept_quote=True)[f"{walk.words.provider}_invoice_id"]
    http.post(f"/invoices/{hosted}/pay")
    for tail in ("", "/pdf"):
        http.get(f"/invoices/{hosted}{tail}")


def _reading(walk: Walk, http: httpx.Client) -> None:
    """Every list with every parameter it is published with."""
    walk.org.advance(days=16)
    experiment = http.get("/experiments").json()["items"][0]
    sequence = http.get("/sequences").json()["items"][0]["id"]
    created = [f"{operator}(created_at)" for operator in ("equ", "geq", "gtr", "leq", "lss")]
    values = {
        "filter": "is_not_null(id)",
        "sort": "id",
        "search": "a",
        "limit": 5,
        "offset": 0,
        "status": "done",
        "state": "done",
        "experiment_type": "affinity",
        "experiment_id": experiment["id"],
        "selfservice_only": "true",
        "detailed": "true",
        "show_conjugated": "true",
        "name": "x",
        "vendor_name": "x",
    } | dict.fromkeys(created, "2026-01-01")
    for call in CALLS:
        if call.query:
            path = call.path.replace("{experiment_id}", experiment["id"])
            http.get(path)
            for name in call.query.split():
                if name != "status" or call.path == "/experiments":
                    http.get(path, params={name: values[name]})
    http.get(f"/experiments/{experiment['id']}")
    http.get(f"/sequences/{sequence}")
    http.get(f"/targets/{PRICED['id']}")


def _account(walk: Walk, http: httpx.Client) -> None:
    for path in ("/whoami", "/info/health", "/info/health-db", "/openapi.json"):
        http.get(path)
    feedback = {
        "request_uuid": str(uuid.uuid4()),
        "feedback_type": "feedback",
        "title": "t",
        "json_body": {"a": 1},
    }
    http.post("/feedback/submit", json=feedback | {"human_note": "n"})
    custom = {"name": "x", "product_id": walk.org.id, "sequence": "MKV", "pdb_id": "1ABC"}
    custom |= {"vendor": "v", "note": "n", "product_url": "https://example.org/p", "molecular_weight": 1.5}
    made = http.post("/targets/request-custom", json=custom).json()
    http.post("/targets/request-custom", json=custom)  # again
    http.get("/targets/request-custom")
    http.get(f"/targets/request-custom/{made['id']}")
    walk.org.lab.sim(
        "POST", "/events", {"event": "decide_custom_target", "request_id": made["id"], "approved": True}
    )
    target = http.get("/targets", params={"detailed": "true", "search": "x", "limit": 100}).json()["items"]
    own = next(row["id"] for row in target if row["catalog_number"] == walk.org.id)
    http.get(f"/experiments/{_order(http, {**FULL, 'target_id': own})['experiment_id']}")
    hook = {"url": "https://example.org/hook", "secret": "s" * 32, "headers": {"X-A": "b"}}
    webhook = http.post("/webhooks", json=hook).json()["id"]
    http.get("/webhooks")
    http.patch(f"/webhooks/{webhook}", json=hook | {"enabled": False})
    http.delete(f"/webhooks/{webhook}")
    restrictions = {
        "allowed_actions": ["list", "read", "issue"],
        "allowed_org_ids": [walk.org.id],
        "allowed_resources": ["experiment", "token"],
        "expires_at": "2099-01-01T00:00:00Z",
        "non_destructive": True,
        "payment_policy": [_RAIL],
        "read_only": True,
    }
    body = {"token": walk.org.lab.token, "name": "narrow", "attenuation": restrictions}
    child = http.post("/tokens/attenuate", json=body).json()
    again = {"token": child["token"], "name": "again", "attenuation": {"read_only": True}}
    http.post("/tokens/attenuate", json=again | {"attenuated_parent_token_id": child["id"]})
    http.get("/tokens")
    with walk.http(walk.org.lab.partner_token) as partner:
        mint = {"org": {"type": "new_org", "name": "X"}, "user": {"email": f"a@{walk.org.id}.example"}}
        end = datetime.fromisoformat(walk.org.lab.clock()["now"]) + timedelta(days=7)
        partner.post("/partners/mint-token", json=mint | {"expires_at": end.isoformat()})
        partner.post("/partners/mint-token", json=mint)  # again


def _errors(walk: Walk, http: httpx.Client, viewer: httpx.Client) -> None:
    """Every call without a token, as a viewer, with an id that is not there, without a body, with a bad one."""
    with walk.http(None) as nobody, walk.http("nobody") as stranger:
        for call in CALLS:
            path = call.path.replace("{experiment_id}", UNKNOWN).replace("{sequence_id}", UNKNOWN)
            for name in ("target_id", "request_id", "result_id", "quote_id", "invoice_id", "webhook_id"):
                path = path.replace(f"{{{name}}}", UNKNOWN)
            nobody.request(call.method, path)
            stranger.request(call.method, path)
            body = {"json": {"reason": "price"} if path.endswith("reject") else {}} if call.sends else {}
            viewer.request(call.method, path, **body)
            if path != "/tokens/revoke":
                http.request(call.method, path, **body)
            if call.query:
                http.get(path, params={"limit": 0})
            if "500" in call.refuses:
                walk.org.lab.fault(
                    "status", call.path.replace("{experiment_id}", UNKNOWN), call.method, status=500
                )
                http.request(call.method, path, **body)
    _bad_bodies(walk, http)
    _forbidden(walk, http)


def _bad_bodies(walk: Walk, http: httpx.Client) -> None:
    draft = _order(http, FULL)
    path = f"/experiments/{draft['experiment_id']}"
    http.patch(path, json={"n_replicates": 9})
    http.patch(path, json={"sequences": [{"name": "a", "aa_string": "M1"}]})
    http.patch(path, content=b"{}")
    http.post(
        "/sequences",
        json={"experiment_code": draft["experiment_code"], "sequences": [{"name": "z", "aa_string": "M1"}]},
    )
    for target, sequences in ((UNKNOWN, {"a": "MKV"}), (PRICED["id"], {"a": "M1"})):
        wrong = {**FULL, "target_id": target, "sequences": sequences}
        http.post("/experiments", json={"experiment_spec": wrong, "name": "x"})
        http.post("/experiments/cost-estimate", json={"experiment_spec": wrong})
    http.post("/experiments", content=b"{}")
    http.post("/experiments/cost-estimate", content=b"{}")
    http.post("/experiments/cost-estimate", json={"experiment_spec": spec(n_replicates=9)})
    http.post("/targets/request-custom", json={"name": "x", "product_id": "p2", "sequence": "M1"})
    http.post("/webhooks", json={"url": "http://example.org"})
    walk.org.advance(hours=1)
    confirm = f"/experiments/{_order(http, FULL, skip_draft=True)['experiment_id']}/quote/confirm"
    walk.org.advance(hours=1)
    http.post(confirm)
    quote_id = http.get("/quotes").json()["items"][0]["id"]
    http.post(f"/quotes/{quote_id}/confirm")
    http.post(f"/quotes/{quote_id}/reject", json={"reason": "mood"})


def _forbidden(walk: Walk, http: httpx.Client) -> None:
    """A token for sequences only meets 403 at everything else; also where no experiment is at stake."""
    body = {"token": walk.org.lab.token, "name": "n", "attenuation": {"allowed_resources": ["sequence"]}}
    token = http.post("/tokens/attenuate", json=body).json()["token"]
    with walk.http(token) as narrow:
        for call in CALLS:
            if "403" in call.refuses:
                narrow.request(call.method, call.path.replace("{experiment_id}", UNKNOWN), json={})
