"""Every call of the client, with everything that it can send and with as little as possible, as it goes over the wire.

Nothing is sent: a transport in this process answers. What a call sends and reads is compared with the description.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from inspect import Parameter, getmembers, ismethod, signature
from operator import attrgetter
from typing import Any, Final

import httpx
from pydantic import SecretStr

from prefect_assay.errors import AssayError
from prefect_assay.service.client import AssayClient
from prefect_assay.service.client.resources.resource import Resource
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.sequences import ProteinSequence
from prefect_assay.service.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.service.models.tokens import (
    Attenuation,
    ExistingOrg,
    MintRequest,
    NewOrg,
)
from support.description import Operation, find_operation

ID: Final = "00000000-0000-4000-8000-000000000000"
# They read what other calls describe, or the description itself.
NO_CALLS: Final = {
    "documents.download",
    "documents.iterate",
    "experiments.list_states",
    "invoices.find_for_experiment",
    "service.get_openapi",
}
_URL: Final = "https://example.org"
_LATER: Final = datetime(9999, 1, 1, tzinfo=UTC)
_METADATA: Final = {"type": "ScFv", "VH": "E", "VL": "D", "tag_location": "N"}
_SPEC: Final = ExperimentSpec(
    experiment_type="affinity",
    method="bli",
    target_id=ID,
    sequences={"a": SequenceValue(aa_string="MKT", control=True, metadata=_METADATA)},
    n_replicates=3,
    antigen_concentrations=(1.0,),
    parameters={},
)
_LEAST_SPEC: Final = ExperimentSpec(
    experiment_type="expression", sequences={"a": SequenceValue(aa_string="MKT")}
)
_DESIGN: Final = ProteinSequence(name="a", aa_string="MKT", control=True, metadata=_METADATA)
_MINT: Final = MintRequest(
    org=NewOrg(name="a"), email="a@b.example", user_name="a", role="member", name="a", expires_at=_LATER
)
# By parameter, or by method and parameter. Any other id is ID, any other text "a".
_ALL: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("selfservice_only", "detailed", "show_conjugated", "enabled"), True),
    **dict.fromkeys(("url", "webhook_url"), _URL),
    **dict.fromkeys(("designs", "sequences"), (_DESIGN,)),
    **dict.fromkeys(("limit", "offset"), 1),
    "where": (),
    "antigen_concentrations": [1.0],
    "attenuation": Attenuation(
        allowed_actions=("read",),
        allowed_org_ids=(ID,),
        allowed_resources=("result",),
        expires_at=_LATER,
        non_destructive=True,
        payment_policy=("x402-exact",),
        read_only=True,
    ),
    "experiments.create.request": CreateRequest(
        experiment_spec=_SPEC,
        name="a",
        skip_draft=True,
        auto_accept_quote=True,
        payment_method="x402-exact",
        webhook_url=_URL,
        webhook_secret=SecretStr("0" * 32),
    ),
    "tokens.mint.request": _MINT,
    "headers": {"a": "b"},
    "n_replicates": 3,
    "parameters": {},
    "invoices.pay.headers": {},  # the rail names the headers of a credential
    "payment_header": "x402-exact",
    "pdb_id": "1ABC",
    "reason": "price",
    "secret": "0" * 32,
    "sequence": "MKT",
    "spec": _SPEC,
}
# For required parameters with several forms.
_LEAST: Final[Mapping[str, Any]] = {
    "attenuation": Attenuation(),
    "experiments.create.request": CreateRequest(experiment_spec=_LEAST_SPEC, name="a"),
    "designs": (ProteinSequence(name="a", aa_string="MKT"),),
    "tokens.mint.request": MintRequest(org=NewOrg(name="a"), email="a@b.example"),
    "custom_targets.request.sequence": "MKT",
    "spec": _LEAST_SPEC,
}
_OTHERWISE: Final = {**_LEAST, "tokens.mint.request": _MINT.model_copy(update={"org": ExistingOrg(id=ID)})}


@dataclass(frozen=True, slots=True)
class ClientCall:
    """One call of the client and its requests: with everything set, with as little as possible, and in another form."""

    method: str
    arguments: tuple[dict[str, Any], ...]
    requests: tuple[httpx.Request, ...]
    operation: Operation

    @property
    def bodies(self) -> tuple[Any, ...]:
        """The JSON bodies of its requests."""
        return tuple(json.loads(request.content) for request in self.requests if request.content)


@cache
def list_client_calls() -> tuple[ClientCall, ...]:
    """Every call of the client to the service."""
    with AssayClient("https://lab.example", "token") as client:
        return tuple(
            _make_call(name, method)
            for name, method in list_methods(client).items()
            if not name.endswith(".iterate") and name not in NO_CALLS
        )


def list_methods(client: AssayClient) -> Mapping[str, Any]:
    """Every method of every resource, such as `experiments.create`."""
    resources = {name: value for name, value in vars(client).items() if isinstance(value, Resource)}
    return {
        f"{name}.{verb}": method
        for name, resource in resources.items()
        for verb, method in getmembers(resource, ismethod)
        if not verb.startswith("_")
    }


def _make_call(name: str, method: Any) -> ClientCall:
    arguments = tuple(_arguments(name, method, least) for least in (None, _LEAST, _OTHERWISE))
    requests = tuple(_record(name, one) for one in arguments)
    operation = find_operation(requests[0].method, requests[0].url.path)
    assert operation is not None, f"{name} sends {requests[0]}"
    return ClientCall(name, arguments, requests, operation)


def answer_call(call: ClientCall, status: int, body: Any) -> Any:
    """What the client makes of an answer to a call; raises what the client raises."""
    transport = httpx.MockTransport(lambda _: httpx.Response(status, json=body))
    with AssayClient("https://lab.example", "token", transport=transport, retries=0) as client:
        return collect(attrgetter(call.method)(client)(**call.arguments[0]))


def collect(value: Any) -> Any:
    """The value of a call; all rows where they are fetched as they are consumed."""
    return list(value) if isinstance(value, Iterator) else value


def _record(method: str, arguments: dict[str, Any]) -> httpx.Request:
    sent: list[httpx.Request] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(404, json={"error": "no", "request_id": "req_1"})

    with (
        AssayClient(
            "https://lab.example", "token", transport=httpx.MockTransport(refuse), retries=0
        ) as client,
        suppress(AssayError),
    ):
        collect(attrgetter(method)(client)(**arguments))
    assert sent, f"{method} sends nothing"
    return sent[0]


def _arguments(name: str, method: Any, least: Mapping[str, Any] | None) -> dict[str, Any]:
    """Every parameter; with `least`, which takes precedence, only the required ones and those in it."""
    values = {}
    for parameter in signature(method).parameters.values():
        words = (f"{name}.{parameter.name}", parameter.name)
        required = parameter.default is Parameter.empty
        if least is None or required or words[0] in least:
            default = ID if parameter.name.endswith("_id") else "a"
            values[parameter.name] = next(
                (table[word] for table in (least or {}, _ALL) for word in words if word in table), default
            )
    if name == "experiments.modify":
        values.pop("status", None)  # a field of the earlier variant (contract 9.4)
    return values
