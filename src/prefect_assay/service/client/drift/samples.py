"""The arguments that operations are built with, to see what the client may send. Nothing is sent."""

from datetime import UTC, datetime
from typing import Any, Final

from pydantic import SecretStr

from prefect_assay.service.client.http.request import UNSET
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.sequences import ProteinSequence
from prefect_assay.service.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.service.models.tokens import (
    Attenuation,
    ExistingOrg,
    MintRequest,
    NewOrg,
)
from prefect_assay.service.models.vocabulary import ExperimentType, Method, PaymentMethod

ID: Final = "{id}"
_UUID: Final = "00000000-0000-4000-8000-000000000000"
_URL: Final = "https://example.org"
_LATER: Final = datetime(9999, 1, 1, tzinfo=UTC)
_METADATA: Final[dict[str, Any]] = {
    "type": "ScFv",
    "VH": "E",
    "VL": "D",
    "linker": "GS",
    "framework_regions": {"ch": "a", "cl": "b"},
    "tag_location": "N",
    "chain_order": "VH-VL",
}
_SPEC: Final = ExperimentSpec(
    experiment_type=ExperimentType.AFFINITY,
    method=Method.BLI,
    target_id=_UUID,
    sequences={"a": SequenceValue(aa_string="MKT", control=True, metadata=_METADATA)},
    n_replicates=3,
    antigen_concentrations=(1.0,),
    parameters={},
)
_LEAST_SPEC: Final = ExperimentSpec(
    experiment_type=ExperimentType.EXPRESSION, sequences={"a": SequenceValue(aa_string="MKT")}
)
_DESIGN: Final = ProteinSequence(name="a", aa_string="MKT", control=True, metadata=_METADATA)
_MINT: Final = MintRequest(
    org=NewOrg(name="a"), email="a@b.example", user_name="a", role="member", name="a", expires_at=_LATER
)
# By parameter, or by operation and parameter. Any other id in a path is ID, any other text "a".
ALL: Final[dict[str, Any]] = {
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
    "pay.headers": {},  # the rail names the headers of a credential
    "payment_header": PaymentMethod.X402_EXACT,
    "product_url": _URL,
    "pdb_id": "1ABC",
    "reason": "price",
    "secret": "0" * 32,
    "sequence": "MKT",
    "spec": _SPEC,
}
# For required parameters with several forms, and where these are not enough.
LEAST: Final[dict[str, Any]] = {
    "attenuation": Attenuation(),
    "create.request": CreateRequest(experiment_spec=_LEAST_SPEC, name="a"),
    "designs": (ProteinSequence(name="a", aa_string="MKT"),),
    "mint_token.request": MintRequest(org=NewOrg(name="a"), email="a@b.example"),
    "request_custom_target.sequence": "MKT",
    "spec": _LEAST_SPEC,
}
OTHERWISE: Final = {**LEAST, "mint_token.request": _MINT.model_copy(update={"org": ExistingOrg(id=_UUID)})}
