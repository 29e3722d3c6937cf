"""Plays every call of the service against a lab in the test's process, and holds each exchange against the description."""

import json
import time
import uuid
from collections import defaultdict
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import httpx
from pydantic import SecretStr

from assay_lab.measure.assays import ASSAY_TYPES
from assay_lab.rails import RAILS
from assay_lab.words import SIMULATED_HEADER
from lab_support.core import BY_LOT, PRICED, UNPRICED, advance, spec
from lab_support.described import find_places, find_strict_problems
from lab_support.sim_client import Served
from prefect_assay.orders.payments.rails.x402 import X402Limits, X402Rail
from prefect_assay.service.models.service import WireWords
from support.description import Operation, find_operation, find_problems, list_operations

UNKNOWN = "00000000-0000-4000-8000-000000000000"
_FIRST_ERROR = 400
_OF_EVERY_ANSWER = {
    "cache-control",
    "content-disposition",
    "content-length",
    "content-security-policy",
    "content-type",
    "date",
    "server",
    SIMULATED_HEADER.lower(),
}
_X402, _MPP = "x402-exact", "mpp-spt"
_KEY = SecretStr("0x" + "11" * 32)
_METADATA = {
    "type": "ScFv",
    "VH": "E",
    "VL": "D",
    "linker": "GS",
    "tag_location": "N",
    "chain_order": "VH-VL",
    "framework_regions": {"ch": "a", "cl": "b"},
}
_LIMITED = {"n_replicates": 2, "antigen_concentrations": [100.0, 0.0]}  # fields that some types refuse


def _limited_fields(experiment_type: str) -> dict[str, Any]:
    return {name: _LIMITED[name] for name in ASSAY_TYPES[experiment_type].takes}


FULL = spec(
    sequences={"a": {"aa_string": "MKTAYIAKQR", "control": True, "metadata": _METADATA}, "b": "GSHMKLVFFA"},
    parameters={"temperature": 25},
    **_limited_fields("affinity"),
)
_CONTROL = {"control": {"aa_string": "MKTWWAIAKQR", "control": True}}
_SPECS = [
    spec(
        experiment_type=kind.experiment_type,
        method="bli" if kind.takes_method else None,
        target_id=PRICED["id"] if kind.takes_target else None,
        sequences={name: f"MKT{name}" for name in "ACDE"}
        if kind.sequence_counts
        else {**spec()["sequences"], **_CONTROL},
        **_limited_fields(kind.experiment_type),
    )
    for kind in ASSAY_TYPES.values()
]
_HOOK = {"url": "https://example.org/hook", "secret": "s" * 32, "headers": {"X-A": "b"}}


class Tour:
    """What was played: the statuses of each operation, and every disagreement with the description."""

    def __init__(self, served: Served) -> None:
        self.served, self.core = served, served.core
        words = served.core.lab.settings.words
        self.words = WireWords(provider=words.provider, service=words.service)  # the client's
        self.statuses: dict[str, set[int]] = defaultdict(set)
        self.query: dict[str, set[str]] = defaultdict(set)
        self.sent: dict[str, set[str]] = defaultdict(set)  # places of bodies that were taken
        self.answered: dict[str, set[str]] = defaultdict(set)  # places of successes
        self.problems: list[str] = []
        served.http.event_hooks = {"response": [self._note]}

    def play(self) -> None:
        """Everything, in order."""
        for part in (_order, _quote, _pay, _measure, _read_lists, _account, _refuse, _fail, _revoke):
            part(self)

    def ask(self, method: str, path: str, *, token: str | None = None, **request: Any) -> httpx.Response:
        """One call, by default with the member's token."""
        return self.served.api(method, path, token=token, **request)

    def read(self, response: httpx.Response) -> Any:
        """The JSON of an answer, in neutral words."""
        return self.words.from_wire(response.json())

    def get(self, path: str) -> Any:
        """What a GET answers, in neutral words."""
        return self.read(self.ask("GET", path))

    def create(self, specification: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """An experiment that is taken."""
        body = {"experiment_spec": specification, "name": "tour", **fields}
        answer = self.ask("POST", "/experiments", json=body)
        assert answer.is_success, answer.text
        created: dict[str, Any] = self.read(answer)
        return created

    def advance(self, **span: float) -> None:
        """Move the clock of the lab."""
        advance(self.core, **span)

    def _note(self, response: httpx.Response) -> None:
        response.read()
        request = response.request
        if not request.url.path.startswith("/api/v1/"):
            return
        operation = find_operation(request.method, request.url.path)
        assert operation is not None, request.url.path
        status = response.status_code
        self.statuses[operation.operation_id].add(status)
        if status < _FIRST_ERROR:
            self.query[operation.operation_id] |= set(request.url.params)
            self._note_places(operation, response)
        if self.words.provider != "provider" and '"provider_' in response.text:
            self.problems.append(f"{operation.operation_id}: a field in neutral words")
        problems = self._problems(operation, response)
        self.problems += [f"{operation.operation_id} {status}: {problem}" for problem in problems]

    def _note_places(self, operation: Operation, response: httpx.Response) -> None:
        name, answer_schema = operation.operation_id, operation.answer_schema(response.status_code)
        if operation.body_schema is not None:
            self.sent[name] |= set(find_places(operation.body_schema, json.loads(response.request.content)))
        if answer_schema is not None:
            self.answered[name] |= set(find_places(answer_schema, self.read(response)))

    def _problems(self, operation: Operation, response: httpx.Response) -> list[str]:
        status = response.status_code
        if status not in operation.statuses:
            return [f"is not described: {response.text[:200]}"]
        answer = operation.answer(status)
        described = {name.lower() for name in answer["headers"]}
        problems = [
            f"the header {name} is not described"
            for name in response.headers.keys() - described - _OF_EVERY_ANSWER
        ]
        if not response.headers.get("x-request-id", "").startswith("req_"):
            problems.append("x-request-id is missing")
        media = response.headers.get("content-type")
        if media not in answer.get("content", {None: {}}):
            return [*problems, f"{media} is not described"]
        schema = operation.answer_schema(status)
        if schema is not None:
            problems += find_strict_problems(self.read(response), schema)
        if status < _FIRST_ERROR and operation.body_schema is not None:
            body = json.loads(response.request.content)
            problems += [f"takes {problem}" for problem in find_problems(body, operation.body_schema)]
        return problems


def _order(tour: Tour) -> None:
    for target in (PRICED, BY_LOT, UNPRICED):
        specification = {**FULL, "target_id": target["id"]}
        tour.ask("POST", "/experiments/cost-estimate", json={"experiment_spec": specification})
        draft = tour.create(specification)
        tour.ask("GET", f"/experiments/{draft['experiment_id']}")
    tour.create(FULL, skip_draft=True, webhook_url="https://example.org/hook", webhook_secret="s" * 32)
    for specification in _SPECS:
        tour.ask("POST", "/experiments/cost-estimate", json={"experiment_spec": specification})
        tour.create(specification)
    draft = tour.create(FULL)
    entry = {"name": "c", "aa_string": "MKV", "control": False, "metadata": {"free": 1}}
    added = {"experiment_code": draft["experiment_code"], "sequences": [entry]}
    tour.ask("POST", "/sequences", json=added)
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
    path = f"/experiments/{draft['experiment_id']}"
    for body in (change, {}, {"target_id": None}):
        tour.ask("PATCH", path, json=body)
    tour.ask("POST", f"{path}/submit")  # 400: a binding type needs its target
    tour.ask("PATCH", path, content=b"{}")  # 415
    tour.ask("PATCH", path, json={"sequences": [{"name": "a", "aa_string": "M1"}]})  # 422


def _quote(tour: Tour) -> None:
    """A quote that is rejected, one that is accepted by its id, one by its experiment."""
    path = f"/experiments/{tour.create(FULL)['experiment_id']}"
    tour.ask("POST", f"{path}/submit")
    tour.ask("POST", f"{path}/submit")  # 409
    for part in ("quote", "quote/pdf", "invoice"):
        tour.ask("GET", f"{path}/{part}")  # 404: not yet
    tour.advance(hours=1)
    for part in ("", "/quote", "/quote/pdf"):
        tour.ask("GET", f"{path}{part}")
    quote_id = tour.get(path)["provider_quote_id"]
    tour.ask("GET", f"/quotes/{quote_id}")
    tour.ask("POST", f"/quotes/{quote_id}/reject")  # 415
    for body in ({"reason": "mood"}, {"reason": "price", "feedback": "f"}, {"reason": "other"}):
        tour.ask("POST", f"/quotes/{quote_id}/reject", json=body)  # 400, 200, 409
    for by_id in (True, False):
        path = f"/experiments/{tour.create(FULL, skip_draft=True)['experiment_id']}"
        tour.advance(hours=1)
        quote_id = tour.get(path)["provider_quote_id"]
        confirm = f"/quotes/{quote_id}/confirm" if by_id else f"{path}/quote/confirm"
        tour.ask("POST", confirm)  # 415
        tour.ask("POST", confirm, json={"colour": 1})  # 400
        tour.ask("POST", confirm, json={"purchase_order_number": "PO", "notes": "n"})
        tour.ask("POST", confirm, json={})  # 409
        tour.ask("GET", f"{path}/invoice")
        tour.ask("GET", path)


def _pay(tour: Tour) -> None:
    """A payment, once and again; the challenge of every machine rail; a hosted invoice, by the same call."""
    order = tour.create(FULL, auto_accept_quote=True, payment={"method": _X402})
    pay = f"/invoices/{order['invoice_id']}/pay"
    rail = X402Rail(_KEY, X402Limits())
    (terms,) = rail.read_offers(tour.ask("POST", pay)).terms
    nonce = rail.make_nonce("http://lab", order["invoice_id"])
    credential = rail.make_credential(terms, nonce=nonce, valid_before=int(time.time()) + 120)
    for headers in ({}, credential, credential, {tour.words.header("Payment-Method"): _MPP}):
        sent = {"Authorization": f"Bearer {tour.core.seeded.member_token}", **headers}
        tour.served.http.post(f"/api/v1{pay}", headers=sent)
    for lab_rail in RAILS:
        order = tour.create(FULL, auto_accept_quote=True, payment={"method": lab_rail.method})
        tour.ask("POST", f"/invoices/{order['invoice_id']}/pay")
    hosted = tour.create(FULL, auto_accept_quote=True)["provider_invoice_id"]
    for method, tail in (("POST", "/pay"), ("GET", ""), ("GET", "/pdf")):
        tour.ask(method, f"/invoices/{hosted}{tail}", follow_redirects=False)


def _measure(tour: Tour) -> None:
    """Results of every type, while the laboratory works and when it is done."""
    for specification in _SPECS:
        done = tour.create(specification, skip_draft=True)["experiment_id"]
        tour.advance(hours=1)
        tour.ask("POST", f"/experiments/{done}/quote/confirm", json={})
        for _ in range(16):
            tour.advance(days=1)
            page = tour.ask("GET", f"/experiments/{done}/results", params={"limit": 5, "offset": 0}).json()
            for result in page["items"]:
                tour.ask("GET", f"/results/{result['id']}")
        assert page["items"]
        for part in ("updates", "sequences"):
            tour.ask("GET", f"/experiments/{done}/{part}")
        experiment = tour.ask("GET", f"/experiments/{done}").json()
        late = {"experiment_code": experiment["code"], "sequences": [{"name": "z", "aa_string": "MKV"}]}
        tour.ask("POST", "/sequences", json=late)  # 409
        tour.ask("PATCH", f"/experiments/{done}", json={"name": "late"})  # 409


def _read_lists(tour: Tour) -> None:
    """Every list with every parameter, and with one that is off its limits."""
    experiment_id = tour.ask("GET", "/experiments").json()["items"][0]["id"]
    values = {
        "filter": "is_not_null(id)",
        "sort": "id",
        "search": "a",
        "limit": "5",
        "offset": "0",
        "state": "done",
        "experiment_type": "affinity",
        "experiment_id": experiment_id,
        **dict.fromkeys(("selfservice_only", "detailed", "show_conjugated"), "true"),
        **dict.fromkeys(("name", "vendor_name"), "x"),
    }
    states = {"quotes.list": "pending", "invoices.list": "open", "targets.list_custom": "approved"}
    for operation in list_operations():
        path = operation.path.removeprefix("/api/v1").replace("{experiment_id}", experiment_id)
        names = [part["name"] for part in operation.parameters if part["in"] == "query"]
        for name in names:
            state = states.get(operation.operation_id, "done")
            value = "2026-01-01" if "(" in name else state if name == "status" else values[name]
            tour.ask("GET", path, params={name: value})
        if "limit" in names:
            tour.ask("GET", path, params={"limit": 0})  # 400
    for row in tour.ask("GET", "/sequences").json()["items"][:1]:
        tour.ask("GET", f"/sequences/{row['id']}")
    for target in (PRICED, BY_LOT):
        tour.ask("GET", f"/targets/{target['id']}")


def _account(tour: Tour) -> None:
    for path in ("/whoami", "/info/health", "/info/health-db", "/openapi.json"):
        tour.ask("GET", path)
    feedback = {
        "request_uuid": str(uuid.uuid4()),
        "feedback_type": "feedback",
        "title": "t",
        "human_note": "n",
    }
    tour.ask("POST", "/feedback/submit", json={**feedback, "json_body": {"a": 1}})
    custom = {
        "name": "x",
        "product_id": "P-1",
        "sequence": "MKV",
        "pdb_id": "1ABC",
    }
    request_id = tour.ask("POST", "/targets/request-custom", json=custom).json()["id"]
    tour.ask("POST", "/targets/request-custom", json=custom)  # 409
    tour.ask("POST", "/targets/request-custom", json={**custom, "product_id": "P-2", "sequence": "M1"})  # 422
    decision = {"event": "decide_custom_target", "request_id": request_id, "approved": True}
    tour.served.sim("POST", "/events", json=decision)
    target_id = tour.ask("GET", f"/targets/request-custom/{request_id}").json()["target_id"]
    tour.ask("GET", f"/targets/{target_id}")
    tour.ask("GET", f"/experiments/{tour.create({**FULL, 'target_id': target_id})['experiment_id']}")
    webhook = tour.ask("POST", "/webhooks", json=_HOOK).json()["id"]
    tour.ask("POST", "/webhooks", json={**_HOOK, "headers": {"Host": "x"}})  # 422
    tour.ask("GET", "/webhooks")
    tour.ask("PATCH", f"/webhooks/{webhook}", json={"headers": {"Host": "x"}})  # 422
    tour.ask("PATCH", f"/webhooks/{webhook}", json={"url": "http://example.org/hook"})  # 400
    for body in ({**_HOOK, "enabled": False}, {"secret": None}, {}):
        tour.ask("PATCH", f"/webhooks/{webhook}", json=body)
    tour.ask("DELETE", f"/webhooks/{webhook}")
    restrictions = {
        "allowed_actions": ["list", "read", "issue"],
        "allowed_org_ids": [tour.core.seeded.organization_id],
        "allowed_resources": ["experiment", "token"],
        "expires_at": "2099-01-01T00:00:00Z",
        "non_destructive": True,
        "payment_policy": [_X402],
        "read_only": True,
    }
    child = _attenuate(tour, tour.core.seeded.member_token, restrictions)
    _attenuate(tour, child["token"], {"read_only": True}, attenuated_parent_token_id=child["id"])
    tour.ask("GET", "/tokens")
    mint = {
        "org": {"type": "new_org", "name": "X"},
        "user": {"email": "a@x.example", "name": "A"},
        "role": "viewer",
    }
    mint |= {"name": "first", "expires_at": _in_a_week(tour)}
    partner = tour.core.seeded.partner_token
    minted = tour.ask("POST", "/partners/mint-token", token=partner, json=mint).json()
    tour.ask("POST", "/partners/mint-token", token=partner, json=mint)  # 409
    existing = {
        "org": {"type": "existing_org", "id": minted["organization_id"]},
        "user": {"email": "b@x.example"},
    }
    tour.ask("POST", "/partners/mint-token", token=partner, json=existing)


def _in_a_week(tour: Tour) -> str:
    now = tour.core.lab.clock.now(tour.core.seeded.organization_id)
    return (now + timedelta(days=7)).isoformat()


def _attenuate(tour: Tour, token: str, restrictions: dict[str, Any], **fields: Any) -> dict[str, Any]:
    body = {"token": token, "name": "narrow", "attenuation": restrictions, **fields}
    made: dict[str, Any] = tour.ask("POST", "/tokens/attenuate", json=body).json()
    return made


def _refuse(tour: Tour) -> None:
    """Every call without a token, with one that may not, with an id that is not there, without and with a bad body."""
    member = tour.core.seeded.member_token
    for_targets = _attenuate(tour, member, {"allowed_resources": ["target"]})["token"]
    for_sequences = _attenuate(tour, member, {"allowed_resources": ["sequence"]})["token"]
    bad = {
        "experiments.estimate": {"experiment_spec": spec(n_replicates=9)},
        "quotes.reject": {"reason": "price"},
    }
    for operation in list_operations():
        path = _unknown_path(operation)
        body = {"json": {}} if operation.body_schema else {}
        tour.served.http.request(operation.method, f"/api/v1{path}")
        about_targets = operation.path.startswith("/api/v1/targets")
        narrow = for_sequences if about_targets else for_targets
        tour.ask(operation.method, path, token=narrow, **body)
        if operation.operation_id == "tokens.revoke":
            continue
        token = tour.core.seeded.partner_token if operation.is_for_partners else member
        tour.ask(operation.method, path, token=token, **body)
        if operation.body_schema:
            tour.ask(operation.method, path, token=token)  # 415
            if operation.operation_id in bad:
                tour.ask(operation.method, path, json=bad[operation.operation_id])
    for target, sequences in ((UNKNOWN, {"a": "MKV"}), (PRICED["id"], {"a": "M1"})):
        wrong = {**FULL, "target_id": target, "sequences": sequences}
        for path in ("/experiments", "/experiments/cost-estimate"):
            tour.ask("POST", path, json={"experiment_spec": wrong, **({} if "-" in path else {"name": "x"})})
    draft = tour.create(FULL)
    tour.ask("PATCH", f"/experiments/{draft['experiment_id']}", json={"n_replicates": 9})  # 400
    wrong = {"experiment_code": draft["experiment_code"], "sequences": [{"name": "z", "aa_string": "M1"}]}
    tour.ask("POST", "/sequences", json=wrong)  # 422
    tour.ask("POST", "/sequences", json={**wrong, "experiment_code": "X-1-1"})  # 404
    conflict = {"json": {"experiment_spec": FULL, "payment": {"method": _X402}}}
    headers = {"Authorization": f"Bearer {member}", tour.words.header("Payment-Method"): _MPP}
    refusal = tour.served.http.post("/api/v1/experiments", headers=headers, **conflict)
    assert refusal.json()["code"] == "payment_method_selector_conflict"


def _unknown_path(operation: Operation) -> str:
    path = operation.path.removeprefix("/api/v1")
    for parameter in operation.parameters:
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", UNKNOWN)
    return path


def _fail(tour: Tour) -> None:
    """Every call where the service is too busy or broken; an order that breaks after its invoice."""
    for operation in list_operations():
        path = _unknown_path(operation)
        for status in (429, 500):
            with _fault(
                tour, "status", operation, path, status=status, retry_after=1 if status == 429 else None
            ):
                tour.ask(operation.method, path)
    database = next(call for call in list_operations() if call.operation_id == "health.check_database")
    with _fault(tour, "status", database, "/info/health-db", status=503, fields={"db": "unavailable"}):
        tour.ask("GET", "/info/health-db")
    tour.served.fault("partial_create", "/experiments")
    body = {"experiment_spec": FULL, "name": "x", "auto_accept_quote": True}
    refusal = tour.ask("POST", "/experiments", json=body)
    assert {"experiment_id", "provider_invoice_id", "provider_hosted_invoice_url"} <= tour.read(
        refusal
    ).keys()


@contextmanager
def _fault(tour: Tour, action: str, operation: Operation, path: str, **details: Any) -> Any:
    options = {name: value for name, value in details.items() if value is not None}
    number = tour.served.fault(action, path, method=operation.method, **options)
    yield
    assert tour.served.used(number) == 1, operation.operation_id


def _revoke(tour: Tour) -> None:
    """The last: it ends the token."""
    tour.ask("POST", "/tokens/revoke")
