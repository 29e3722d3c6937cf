"""How the client makes each call of the interface: a method with every argument set, and the models of its answers.

What a call sends is taken from the request that goes out, not from a list: `sent(call)` catches it before the network.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx
from pydantic import AliasChoices, BaseModel

from prefect_assay.client import AssayClient
from prefect_assay.client import parameters as where
from prefect_assay.errors import AssayError
from prefect_assay.models import (
    billing,
    custom_target,
    estimate,
    experiment,
    identity,
    page,
    partner,
    result,
    service,
    stored,
    target,
    tokens,
    update,
    webhook,
)
from prefect_assay.models.experiment import CreateRequest
from prefect_assay.models.partner import MintRequest, NewOrg
from prefect_assay.models.sequences import Sequence
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.tokens import Attenuation

_FREE = frozenset({"sequences", "performance"})  # objects whose names the caller chose
KEPT = " (kept)"
UUID = "a152981a-9bee-5f99-8978-d6ebfda0b88f"
_DAY = "2099-01-01T00:00:00Z"
_CREATED = [
    test("created_at", "2026-01-01") for test in (where.equ, where.geq, where.gtr, where.leq, where.lss)
]
_LIST: dict[str, Any] = {"filter": "is_null(name)", "search": "x", "sort": "name", "limit": 5, "offset": 1}
_PLAIN = {"limit": 5, "offset": 1}
_METADATA = {
    "type": "ScFv",
    "VH": "E",
    "VL": "D",
    "linker": "GS",
    "framework_regions": {"ch": "a", "cl": "b"},
    "tag_location": "N",
    "chain_order": "VH-VL",
}
_DESIGNS = [Sequence(name="a", aa_string="MKV", control=True, metadata=_METADATA)]


def _spec() -> ExperimentSpec:
    return ExperimentSpec.model_validate(
        {
            "experiment_type": "affinity",
            "method": "bli",
            "target_id": UUID,
            "sequences": {"a": {"aa_string": "MKV", "control": True, "metadata": _METADATA}},
            "n_replicates": 2,
            "antigen_concentrations": [10.0],
            "parameters": {"temperature": 25},
        }
    )


def _order() -> CreateRequest:
    return CreateRequest(
        experiment_spec=_spec(),
        name="x",
        skip_draft=True,
        auto_accept_quote=True,
        payment_method="x402-exact",
        webhook_url="https://example.org/hook",
        webhook_secret="s" * 32,
    )


def _all_restrictions() -> Attenuation:
    return Attenuation(
        allowed_actions=("read",),
        allowed_org_ids=(UUID,),
        allowed_resources=("experiment",),
        expires_at=_DAY,
        non_destructive=True,
        payment_policy=("x402-exact",),
        read_only=True,
    )


@dataclass(frozen=True)
class ClientCall:
    """A method of the client, called with everything, and what it reads from a success."""

    name: str
    call: Callable[[AssayClient], Any]
    models: tuple[type[BaseModel], ...] = ()
    held: str | None = None


def _by(name: str, /, *reads: type[BaseModel], args: Iterable[Any] = (), **kwargs: Any) -> ClientCall:
    def call(client: AssayClient) -> Any:
        value = getattr(client, name)(*args, **kwargs)
        return next(iter(value), None) if hasattr(value, "__next__") else value

    return ClientCall(name, call, reads)


def _listed(name: str, row: type[BaseModel], /, **kwargs: Any) -> ClientCall:
    return _by(name, page.Page[row], **kwargs)  # type: ignore[valid-type]


_E = "/experiments/{experiment_id}"
_QUOTE = {"purchase_order_number": "PO", "notes": "n"}
_MODIFIED = {
    "name": "n",
    "description": "d",
    "target_id": UUID,
    "antigen_concentrations": [1.0],
    "n_replicates": 2,
    "parameters": {"a": 1},
    "sequences": _DESIGNS,
    "webhook_url": "https://example.org/hook",
}
CLIENT: dict[str, ClientCall] = {
    "GET /experiments": _listed(
        "experiments",
        experiment.ExperimentSummary,
        **_LIST,
        status="done",
        state="done",
        experiment_type="affinity",
        where=_CREATED,
    ),
    "POST /experiments": _by(
        "create", experiment.Created, experiment.QuoteAcceptance, args=[_order()], payment_header="x402-exact"
    ),
    "POST /experiments/cost-estimate": _by("estimate", estimate.CostEstimate, args=[_spec()]),
    f"GET {_E}": _by("experiment", experiment.Experiment, args=[UUID]),
    f"PATCH {_E}": _by("modify", experiment.Modified, args=[UUID], **_MODIFIED),
    f"GET {_E}/invoice": _by("invoice", billing.ExperimentInvoice, args=[UUID]),
    f"GET {_E}/quote": _by("quote", billing.Quote, args=[UUID]),
    f"GET {_E}/quote/pdf": _by("quote_pdf", args=[UUID]),
    f"POST {_E}/submit": _by("submit", experiment.Submitted, args=[UUID]),
    f"POST {_E}/quote/confirm": _by("confirm_quote", experiment.QuoteAcceptance, args=[UUID], **_QUOTE),
    f"GET {_E}/results": _listed("results", result.Result, args=[UUID]),
    f"GET {_E}/sequences": _listed("experiment_sequences", stored.StoredSequence, args=[UUID], **_PLAIN),
    f"GET {_E}/updates": _listed("experiment_updates", update.Update, args=[UUID]),
    "POST /sequences": _by("add_sequences", stored.AddedSequences, args=["ORG-001-001", _DESIGNS]),
    "GET /sequences": _listed(
        "sequences", stored.StoredSequence, search="x", sort="name", experiment_id=UUID, **_PLAIN
    ),
    "GET /sequences/{sequence_id}": _by("sequence", stored.StoredSequence, args=[UUID]),
    "GET /targets": _listed(
        "targets",
        target.Target,
        **_LIST,
        selfservice_only=True,
        detailed=True,
        show_conjugated=True,
        name="x",
        vendor_name="x",
    ),
    "GET /targets/{target_id}": _by("target", target.Target, args=[UUID]),
    "GET /targets/request-custom": _listed("custom_targets", custom_target.CustomTarget, **_PLAIN),
    "POST /targets/request-custom": _by(
        "request_custom_target",
        custom_target.CustomTarget,
        name="x",
        product_id="p",
        sequence="MKV",
        pdb_id="1ABC",
        vendor="v",
        note="n",
        product_url="https://example.org/p",
        molecular_weight=1.5,
    ),
    "GET /targets/request-custom/{request_id}": _by("custom_target", custom_target.CustomTarget, args=[UUID]),
    "GET /results": _listed(
        "result_summaries",
        result.ResultSummary,
        filter="is_null(title)",
        sort="title",
        where=_CREATED,
        **_PLAIN,
    ),
    "GET /results/{result_id}": _by("result", result.Result, args=[UUID]),
    "GET /updates": _listed("updates", update.Update, filter="is_null(name)", sort="name", **_PLAIN),
    "GET /quotes": _listed("quotes", billing.Quote, where=_CREATED, **_PLAIN),
    "GET /quotes/{quote_id}": _by("quote_by_id", billing.Quote, args=["qt_1"]),
    "POST /quotes/{quote_id}/confirm": _by(
        "confirm_quote_by_id", experiment.QuoteAcceptance, args=["qt_1"], **_QUOTE
    ),
    "POST /quotes/{quote_id}/reject": _by(
        "reject_quote", billing.Quote, args=["qt_1", "price"], feedback="f"
    ),
    "POST /invoices/{invoice_id}/pay": ClientCall(
        "pay", lambda client: client.pay("in_1"), held="PayAnswer.body"
    ),
    "GET /invoices": _listed("invoices", billing.Invoice, **_PLAIN),
    "GET /invoices/{invoice_id}": _by("invoice_by_id", billing.Invoice, args=["in_1"]),
    "GET /invoices/{invoice_id}/pdf": _by("invoice_pdf", args=["in_1"]),
    "POST /tokens/attenuate": _by(
        "attenuate_token",
        tokens.AttenuatedToken,
        args=["t", _all_restrictions(), "n"],
        attenuated_parent_token_id=UUID,
    ),
    "GET /tokens": _listed("tokens", tokens.TokenRecord, **_PLAIN),
    "POST /tokens/revoke": _by("revoke_token", tokens.Revocation),
    "POST /partners/mint-token": _by(
        "mint_token",
        partner.MintedToken,
        args=[MintRequest(org=NewOrg(name="x"), email="a@b.example", expires_at=_DAY)],
    ),
    "GET /webhooks": _by("webhooks", webhook.Webhook),
    "POST /webhooks": _by(
        "create_webhook", webhook.Webhook, args=["https://example.org"], secret="s" * 32, headers={"X-A": "b"}
    ),
    "PATCH /webhooks/{webhook_id}": _by(
        "update_webhook",
        webhook.Webhook,
        args=[UUID],
        url="https://example.org",
        secret="s" * 32,
        headers={"X-A": "b"},
        enabled=True,
    ),
    "DELETE /webhooks/{webhook_id}": _by("delete_webhook", args=[UUID]),
    "GET /whoami": _by("whoami", identity.Identity),
    "GET /info/health": _by("health", service.Health),
    "GET /info/health-db": _by("health_db", service.Health),
    "POST /feedback/submit": _by(
        "feedback",
        service.FeedbackReceipt,
        args=["feedback", UUID],
        title="t",
        human_note="n",
        json_body={"a": 1},
    ),
    "GET /openapi.json": _by("openapi"),
}


@dataclass(frozen=True)
class Sent:
    """What the client sent for a call, and the error it makes of each status."""

    method: str
    path: str
    query: frozenset[str]
    body: frozenset[str]


@cache
def sent(call: str) -> Sent:
    """The request of a call with everything set."""
    seen: list[httpx.Request] = []
    _answered(call, 400, seen)
    request = seen[0]
    content = json.loads(request.content) if request.content else None
    return Sent(
        request.method,
        request.url.path.removeprefix("/api/v1"),
        frozenset(request.url.params.keys()),
        frozenset(paths(content)),
    )


@cache
def error_of(call: str, status: int) -> str | None:
    """Name of the error that the client makes of a status; None when it is an answer."""
    return _answered(call, status, [])


def _answered(call: str, status: int, seen: list[httpx.Request]) -> str | None:
    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(status, json={"error": "e", "request_id": "req_1"})

    transport = httpx.MockTransport(answer)
    with AssayClient(
        "https://lab.example", "token", transport=transport, retries=0, sleep=lambda _: None
    ) as client:
        try:
            CLIENT[call].call(client)
        except AssayError as error:
            return type(error).__name__
    return None


def matches(call: str, method: str, path: str) -> bool:
    """Whether a request is this call."""
    wanted, template = call.split()
    return method == wanted and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) is not None


def paths(value: Any, prefix: str = "", *, free: bool = False) -> set[str]:
    """Every field of a JSON value, with dots; names that the caller chose become `*`."""
    found: set[str] = set()
    if isinstance(value, list):
        for item in value:
            found |= paths(item, prefix or "[]")
    if isinstance(value, dict):
        for name, inner in value.items():
            place = f"{prefix}.{'*' if free else name}".lstrip(".")
            found |= {place} | paths(inner, place, free=name in _FREE)
    return found


def reader_of(call: str, field: str) -> str | None:
    """Where the client keeps a field of an answer: `Model.field`, the free object that holds it, or None."""
    names = field.removeprefix("[].").split(".")
    found = [place for model in CLIENT[call].models if (place := _resolved(model, names))]
    # A field of its own in any of the models before a field that is only kept.
    return min(found, key=lambda place: place.endswith(KEPT), default=CLIENT[call].held)


def _resolved(model: type[BaseModel], names: list[str]) -> str | None:
    first, rest = names[0], names[1:]
    for name, info in model.model_fields.items():
        alias = info.validation_alias
        spellings = {name, *(alias.choices if isinstance(alias, AliasChoices) else [alias] if alias else [])}
        if first in spellings:
            inner = _models_in(info.annotation)
            if rest and inner:
                return _resolved(inner[0], rest)
            return f"{_name(model)}.{name}"
    # Fields without a name of their own are kept as they came.
    return f"{_name(model)}{KEPT}" if model.model_config.get("extra") == "allow" else None


def _name(model: type[BaseModel]) -> str:
    return model.__name__.partition("[")[0]


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    from typing import get_args

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]
