"""Every operation of the client, built with everything set and with as little as possible.

The client says which operations there are, what they take and what they read. Nothing here is sent: `drift_usage`
reads off what the client may send, must send and reads.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from inspect import Parameter, getmembers, isfunction, signature
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, SecretStr

from prefect_assay.client import AssayClient
from prefect_assay.client.http.pagination import Pager
from prefect_assay.client.http.request import UNSET, Operation
from prefect_assay.client.operations.pdf import Pdf
from prefect_assay.models.experiment import CreateRequest
from prefect_assay.models.page import Page
from prefect_assay.models.partner import ExistingOrg, MintRequest, NewOrg
from prefect_assay.models.sequences import Sequence
from prefect_assay.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.models.tokens import Attenuation
from prefect_assay.models.vocabulary import ExperimentType, Method, PaymentMethod

SAMPLE_ID: Final = "{id}"
_UUID: Final = "00000000-0000-4000-8000-000000000000"
_URL: Final = "https://example.org"
_LATER: Final = datetime(9999, 1, 1, tzinfo=UTC)
_SPEC: Final = ExperimentSpec(
    experiment_type=ExperimentType.AFFINITY,
    method=Method.BLI,
    target_id=_UUID,
    sequences={"a": SequenceValue(aa_string="MKT", control=True, metadata={"type": "IgG"})},
    n_replicates=3,
    antigen_concentrations=(1.0,),
    parameters={},
)
_LEAST_SPEC: Final = ExperimentSpec(
    experiment_type=ExperimentType.EXPRESSION, sequences={"a": SequenceValue(aa_string="MKT")}
)
_DESIGN: Final = Sequence(name="a", aa_string="MKT", control=True, metadata={"type": "IgG"})
_MINT: Final = MintRequest(
    org=NewOrg(name="a"), email="a@b.example", user_name="a", role="member", name="a", expires_at=_LATER
)
# By parameter, or by operation and parameter. Any other id of a path is SAMPLE_ID, any other text "a".
_ALL: Final[dict[str, Any]] = {
    **dict.fromkeys(("selfservice_only", "detailed", "show_conjugated", "enabled"), True),
    **dict.fromkeys(("modify.target_id", "request_uuid", "attenuated_parent_token_id"), _UUID),
    **dict.fromkeys(("url", "webhook_url"), _URL),
    **dict.fromkeys(("designs", "modify.sequences"), (_DESIGN,)),
    "limit": 1,
    "offset": 0,
    "where": (),
    "antigen_concentrations": [1.0],
    "attenuation": Attenuation(
        allowed_actions=("read",),
        allowed_org_ids=(_UUID,),
        allowed_resources=("result",),
        expires_at=_LATER,
        non_destructive=True,
        payment_policy=("x402-exact",),
        read_only=True,
    ),
    "create.request": CreateRequest(
        experiment_spec=_SPEC,
        name="a",
        skip_draft=True,
        auto_accept_quote=True,
        payment_method=PaymentMethod.X402_EXACT,
        webhook_url=_URL,
        webhook_secret=SecretStr("0" * 32),
    ),
    "feedback_type": "feedback",
    "headers": {"a": "b"},
    "json_body": {"a": 1},
    "mint_token.request": _MINT,
    "modify.status": UNSET,  # a field of the earlier variant (contract 9.4)
    "n_replicates": 3,
    "parameters": {},
    "pay.headers": {},  # a credential's headers are named by its rail
    "payment_header": PaymentMethod.X402_EXACT,
    "product_url": _URL,
    "reason": "price",
    "secret": "0" * 32,
    "sequence": "MKT",
    "spec": _SPEC,
}
# Where the required parameters have several forms, or are not enough.
_LEAST: Final[dict[str, Any]] = {
    "attenuation": Attenuation(),
    "create.request": CreateRequest(experiment_spec=_LEAST_SPEC, name="a"),
    "designs": (Sequence(name="a", aa_string="MKT"),),
    "mint_token.request": MintRequest(org=NewOrg(name="a"), email="a@b.example"),
    "request_custom_target.sequence": "MKT",
    "spec": _LEAST_SPEC,
}
_OTHERWISE: Final = {**_LEAST, "mint_token.request": _MINT.model_copy(update={"org": ExistingOrg(id=_UUID)})}
_MORE: Final = {"pay": ("already_paid",)}

Sample = Operation[Any] | Pager[Any] | Pdf


@dataclass(frozen=True, slots=True)
class Use:
    """One operation of the client.

    Attributes:
        name: the client's method.
        samples: with everything set, with as little as possible, and with another form of a field.
        reads: what its answer, or a row of it, is read as; several where the status decides. Empty for files.
        listed: whether the answer is a list.
        more: fields of the answer that are read without a model.
    """

    name: str
    samples: tuple[Sample, ...]
    reads: tuple[type[BaseModel], ...]
    listed: bool
    more: tuple[str, ...]


def _uses() -> Iterator[Use]:
    """The operations, without those that walk over several and without the description itself."""
    for name, call in getmembers(AssayClient, isfunction):
        make: Any = getattr(call, "__wrapped__", None)
        if make is None or name.startswith(("iter_", "openapi")):
            continue
        answer = signature(make).return_annotation
        if (get_origin(answer) or answer) in {Operation, Pager, Pdf}:
            _, *parameters = signature(call).parameters.values()
            samples = [_sample(make, name, parameters, values) for values in (None, _LEAST, _OTHERWISE)]
            yield Use(name, tuple(samples), *_read(answer), _MORE.get(name, ()))


def _sample(
    make: Callable[..., Sample], operation: str, parameters: list[Parameter], least: dict[str, Any] | None
) -> Sample:
    """With every parameter; with `least`, which has precedence, only with those that are required or in it."""
    values = {}
    for parameter in parameters:
        words = (f"{operation}.{parameter.name}", parameter.name)
        required = parameter.default is Parameter.empty
        if least is None or required or words[0] in least:
            default = SAMPLE_ID if required and parameter.name.endswith("_id") else "a"
            found = [table[word] for table in (least or {}, _ALL) for word in words if word in table]
            values[parameter.name] = found[0] if found else default
    return make(**values)


def _read(answer: Any) -> tuple[tuple[type[BaseModel], ...], bool]:
    """The models that an operation reads, by its return annotation, and whether it reads a list of them."""
    kind = next(iter(get_args(answer)), None)
    if isinstance(kind, type) and issubclass(kind, Page):
        kind = kind.model_fields["items"].annotation
    models = [k for k in (kind, *get_args(kind)) if isinstance(k, type) and issubclass(k, BaseModel)]
    return tuple(models), get_origin(kind) is tuple or get_origin(answer) is Pager


USES: Final = tuple(_uses())
