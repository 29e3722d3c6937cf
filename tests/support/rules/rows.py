"""The table of what is refused: each row is one wrong request, played against the description, the client and the lab.

`tests/rules/test_table.py` plays it. The client refuses before anything is sent, the description's schema does not fit, and
the lab answers with the row's status when the client's check is bypassed. Where a side cannot refuse, the row says so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from lab_support.core import PRICED, spec
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.sequences import ProteinSequence
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.tokens import Attenuation, MintRequest

UNKNOWN: Final = "00000000-0000-4000-8000-000000000000"
LISTS: Final = (
    *("experiments.list", "targets.list", "quotes.list", "invoices.list", "updates.list", "results.list"),
    *("sequences.list", "tokens.list", "custom_targets.list"),
)
FOUR: Final = {f"s{n}": "MKV" + "A" * n for n in range(1, 5)}
THERMO: Final = {"experiment_type": "thermostability", "method": None, "target_id": None}
BINNING: Final = {"experiment_type": "epitope_binning", "method": None, "sequences": FOUR}
DOUBLE: Final = [{"name": "a", "aa_string": "MKV"}, {"name": "b", "aa_string": "mkv"}]
_AMINO: Final = "ACDEFGHIKLMNPQRSTVWY"
# Contract 1: RFC 3339, which a reader of datetimes may take loosely.
_NO_TIMES: Final = ("2099-01-01", "2099-01-01 00:00:00Z", "2099-01-01T00:00:00", "4070908800", 4070908800)
_TAGGED: Final = {"aa_string": "MKV", "metadata": {"tag_location": "N"}}
_TYPED: Final = {"aa_string": "MKV:GHI", "metadata": {"type": "IgG"}}


@dataclass(frozen=True, slots=True)
class Row:
    """One wrong request.

    Attributes:
        rules: the rules that it breaks, separated by spaces.
        call: the `operationId` of the call, or `lists` for the query of every list.
        wrong: what differs from a good body, or the query.
        place: the field that both sides name.
        status: what the lab answers.
        sides: who refuses: `c`lient, `d`escription, `l`ab. A typed client cannot even be asked for some, and some rules
            are beyond a schema.
    """

    rules: str
    call: str
    wrong: Any
    place: str
    status: int = 400
    sides: str = "cdl"

    def __str__(self) -> str:
        return f"{self.call}-{self.wrong}"[:70]


def many(count: int) -> dict[str, str]:
    """That many different sequences."""
    return {f"s{n}": "MKV" + _AMINO[n // 20] + _AMINO[n % 20] for n in range(count)}


def binning(count: int) -> dict[str, Any]:
    """A specification of epitope binning with that many sequences."""
    return spec(experiment_type="epitope_binning", method=None, sequences=many(count))


def _specs(
    rules: str, place: str, *changes: dict[str, Any], status: int = 400, sides: str = "cdl"
) -> list[Row]:
    return [
        Row(rules, "experiments.create", {"experiment_spec": spec(**change)}, place, status, sides)
        for change in changes
    ]


def _rows(rules: str, call: str, place: str, *wrong: Any, status: int = 400, sides: str = "cdl") -> list[Row]:
    return [Row(rules, call, one, place, status, sides) for one in wrong]


# fmt: off
_CREATE: Final = "experiments.create"
ROWS: Final[tuple[Row, ...]] = (
    # The specification (contract 2.2, 2.3 and 8).
    *_specs("2.2.type", "experiment_type", *({"experiment_type": kind} for kind in ("sequencing", "", "Affinity", 7, None))),
    *_specs("2.2.method", "method", {"method": None}, THERMO | {"method": "bli"}, BINNING | {"method": "spr"}, {"method": "elisa"}),
    *_specs("2.2.target 7.400.target_id", "target_id", {"target_id": None}, BINNING | {"target_id": None}, {"target_id": "EGFR"}, {"target_id": UNKNOWN[:-1]}),
    *_specs("2.2.target 7.400.inapplicable", "target_id", THERMO | {"target_id": PRICED["id"]}, {"experiment_type": "expression", "method": None}),
    *_specs("2.2.replicates 7.400.inapplicable 8.replicates.binning", "n_replicates", BINNING | {"n_replicates": 3}),
    *_specs("8.replicates", "n_replicates", *({"n_replicates": count} for count in (0, 6, -1, 2.5))),
    *_specs("8.replicates", "n_replicates", {"n_replicates": True}, {"n_replicates": "3"}, sides="dl"),
    *_specs("2.2.concentrations", "antigen_concentrations", THERMO | {"antigen_concentrations": [1.0]}, {"experiment_type": "screening", "antigen_concentrations": [1.0]}, {"antigen_concentrations": []}, {"antigen_concentrations": [-0.1]}),
    *_specs("2.2.sequences", "sequences", {"sequences": {}}, {"sequences": None}, {"sequences": {"a": 5}}, {"sequences": {"a": {"control": True}}}, {"sequences": {"a": {"aa_string": "MKV", "kind": "x"}}}, {"sequences": {" ": "MKV"}}),
    *_specs("2.2.sequences", "notes", {"notes": "hello"}),
    *_specs("8.binning", "sequences", *(BINNING | {"sequences": many(count)} for count in (1, 3, 29, 32))),
    *_specs("8.binning", "sequences", *(BINNING | {"sequences": many(count)} for count in (5, 27)), sides="cl"),
    *_specs("2.3.letters 7.422.letters", "sequences", *({"sequences": {"a": text}} for text in ("MKX", "M1", "MKV*", "MK V", "MKV:", "", "MK\u017f")), status=422),
    *_specs("2.3.duplicates 7.400.duplicate", "sequences", {"sequences": {"a": "MKV", "b": "mkv"}}, {"sequences": {"a": _TAGGED, "b": _TAGGED}}, {"sequences": {"a": _TYPED, "b": _TYPED}}, sides="cl"),
    # Creating (contract 4.2 and 8).
    *_rows("4.2.create.fields", _CREATE, "name", {"name": ""}),
    *_rows("4.2.create.fields", _CREATE, "experiment_spec", {"experiment_spec": None}),
    Row("4.2.create.fields", _CREATE, {"skip_draft": "yes"}, "skip_draft", sides="dl"),
    Row("4.2.create.fields", _CREATE, {"auto_accept_quote": 1}, "auto_accept_quote", sides="dl"),
    Row("4.2.create.fields", _CREATE, {"idempotency_key": "x"}, "idempotency_key"),
    *_rows("4.2.create.url", _CREATE, "webhook_url", *({"webhook_url": url} for url in ("http://example.org/hook", "ftp://example.org", "//example.org", "https://a b/", "hook"))),
    *_rows("4.2.create.url", _CREATE, "webhook_url", {"webhook_url": "https://"}, {"webhook_url": "https://h.example:99999"}, sides="cl"),
    Row("8.secret", _CREATE, {"webhook_url": "https://example.org", "webhook_secret": "x" * 31}, "webhook_secret"),
    *_rows("4.2.create.method", _CREATE, "payment", *({"payment": payment} for payment in ({"method": "async_invoice"}, {"method": "cash"}))),
    *_rows("4.2.create.method", _CREATE, "payment", {"payment": {}}, {"payment": {"method": None}}, sides="dl"),
    Row("4.2.create.auto 7.400.auto", _CREATE, {"experiment_spec": spec(**THERMO), "auto_accept_quote": True}, "auto_accept_quote", sides="cl"),
    # Changes (contract 4.2).
    *_rows("4.2.patch.fields", "experiments.modify", "n_replicates", {"n_replicates": 9}),
    *_rows("4.2.patch.fields", "experiments.modify", "n_replicates", {"n_replicates": "3"}, sides="dl"),
    *_rows("4.2.patch.fields", "experiments.modify", "name", {"name": ""}),
    *_rows("4.2.patch.fields", "experiments.modify", "target_id", {"target_id": "EGFR"}),
    *_rows("4.2.patch.fields", "experiments.modify", "webhook_url", {"webhook_url": "http://example.org"}),
    *_rows("4.2.patch.fields", "experiments.modify", "antigen_concentrations", {"antigen_concentrations": [-1.0]}),
    *_rows("4.2.patch.fields", "experiments.modify", "sequences", {"sequences": []}),
    *_rows("4.2.patch.fields", "experiments.modify", "name", {"sequences": [{"aa_string": "MKV"}]}),
    *_rows("4.2.patch.fields", "experiments.modify", "webhook_secret", {"webhook_secret": "x" * 40}),
    *_rows("4.2.patch.fields", "experiments.modify", "status", {"status": "done"}, sides="dl"),
    *_rows("4.2.patch.3 7.400.duplicate", "experiments.modify", "sequences", {"sequences": DOUBLE}, sides="cl"),
    # Sequences (contract 4.3).
    *_rows("4.3.entries", "sequences.add", "sequences", {"sequences": []}),
    *_rows("4.3.entries", "sequences.add", "aa_string", {"sequences": [{"name": "z"}]}),
    *_rows("4.3.entries", "sequences.add", "tag", {"sequences": [{"name": "z", "aa_string": "MKV", "tag": 1}]}),
    *_rows("4.3.entries", "sequences.add", "sequences", {"sequences": [{"name": "", "aa_string": "MKV"}]}),
    *_rows("4.3.entries", "sequences.add", "sequences", *({"sequences": [{"name": "z", "aa_string": text}]} for text in ("", "MK1")), status=422),
    *_rows("4.3.entries 7.400.duplicate", "sequences.add", "sequences", {"sequences": [{"name": "z", "aa_string": "MKV"}, {"name": "z", "aa_string": "GHI"}]}, {"sequences": DOUBLE}, sides="cl"),
    *_rows("4.3.entries", "sequences.add", "experiment_code", {"experiment_code": ""}, sides="c"),
    # Quotes (published shapes).
    *_rows("shapes.quote.reason", "quotes.reject", "reason", {"reason": None}, {"reason": "mood"}),
    *_rows("shapes.quote.reason", "quotes.reject", "feedback", {"feedback": 5}, sides="dl"),
    *_rows("shapes.quote.reason", "quotes.reject", "x", {"x": 1}),
    # Tokens (contract 4.6).
    *_rows("4.6.attenuate.fields", "tokens.attenuate", "allowed_actions", *({"attenuation": {"allowed_actions": value}} for value in (["fly"], "read", []))),
    *_rows("4.6.attenuate.fields", "tokens.attenuate", "allowed_org_ids", {"attenuation": {"allowed_org_ids": ["x"]}}),
    *_rows("4.6.attenuate.fields", "tokens.attenuate", "allowed_resources", {"attenuation": {"allowed_resources": ["moon"]}}, sides="dl"),
    *_rows("4.6.attenuate.fields", "tokens.attenuate", "payment_policy", {"attenuation": {"payment_policy": ["cash"]}}, sides="dl"),
    *_rows("4.6.attenuate.fields", "tokens.attenuate", "read_only", {"attenuation": {"read_only": "yes"}}, sides="dl"),
    *_rows("4.6.attenuate.fields", "tokens.attenuate", "expires_at", {"attenuation": {"expires_at": "soon"}}),
    *_rows("4.6.attenuate.fields", "tokens.attenuate", "expires_at", *({"attenuation": {"expires_at": text}} for text in _NO_TIMES), sides="dl"),
    *_rows("4.6.attenuate.fields", "tokens.attenuate", "expires_at", {"attenuation": {"expires_at": "2099-01-01T00:00Z"}}, sides="l"),
    *_rows("4.6.attenuate.fields", "tokens.attenuate", "expires_at", {"attenuation": {"expires_at": "2020-01-01T00:00:00Z"}}, sides="cl"),
    *_rows("4.6.attenuate.fields", "tokens.attenuate", "allowed_everything", {"attenuation": {"allowed_everything": True}}),
    *_rows("4.6.attenuate.fields", "tokens.attenuate", "name", {"name": ""}),
    *_rows("4.6.attenuate.fields", "tokens.attenuate", "token", {"token": ""}, sides="cl"),
    *_rows("4.6.attenuate.fields", "tokens.attenuate", "attenuated_parent_token_id", {"attenuated_parent_token_id": "y"}),
    *_rows("4.6.mint.type", "partners.mint_token", "org", {"org": None}, {"org": {"type": "old_org"}}, {"org": {"type": "existing_org", "id": "x"}}, {"org": {"type": "new_org", "name": ""}}),
    *_rows("4.6.mint.type", "partners.mint_token", "email", {"user": {"email": "nobody"}}, {"user": {}}),
    *_rows("4.6.mint.type", "partners.mint_token", "expires_at", *({"expires_at": text} for text in _NO_TIMES), sides="dl"),
    *_rows("4.6.mint.type", "partners.mint_token", "expires_at", {"expires_at": "2020-01-01T00:00:00Z"}, sides="cl"),
    *_rows("4.6.mint.type", "partners.mint_token", "role", {"role": "partner"}, sides="dl"),
    # Webhooks of the organization, custom targets and feedback (published shapes).
    *_rows("shapes.webhooks", "webhooks.create", "url", {"url": "http://hooks.example.org/x"}, {"url": "ftp://hooks.example.org/"}, {"url": ""}),
    *_rows("shapes.webhooks", "webhooks.create", "url", {"url": "https://"}, sides="cl"),
    *_rows("shapes.webhooks 8.secret", "webhooks.create", "secret", {"secret": "x" * 31}),
    *_rows("shapes.webhooks", "webhooks.create", "headers", {"headers": {"X Y": "x"}}, {"headers": {"X-A": "one\r\nX-B: two"}}, status=422, sides="cl"),
    *_rows("shapes.custom", "targets.request_custom", "sequence", {"sequence": None}),
    *_rows("shapes.custom", "targets.request_custom", "sequence", {"sequence": "MKZ"}, {"sequence": ""}, status=422, sides="cl"),
    *_rows("shapes.custom", "targets.request_custom", "name", {"name": ""}),
    *_rows("shapes.custom", "targets.request_custom", "product_id", {"product_id": ""}),
    *_rows("shapes.custom", "targets.request_custom", "pdb_id", {"pdb_id": "egfr"}, sides="dl"),
    *_rows("shapes.custom", "targets.request_custom", "seller", {"seller": "x"}),
    *_rows("shapes.feedback", "feedback.submit", "request_uuid", {"request_uuid": "x"}, {"request_uuid": None}, sides="dl"),
    *_rows("shapes.feedback", "feedback.submit", "feedback_type", {"feedback_type": "praise"}, sides="dl"),
    *_rows("shapes.feedback", "feedback.submit", "stars", {"stars": 5}, sides="dl"),
    *_rows("shapes.feedback", "feedback.submit", "title", {"title": 1}, sides="dl"),
    # Lists (contract 4.1 and 8).
    *_rows("8.limit 7.400.parameter", "lists", "limit", *({"limit": limit} for limit in (0, 101, -1)), sides="cl"),
    *_rows("8.limit 7.400.parameter", "lists", "limit", *({"limit": limit} for limit in ("x", "", "1.0")), sides="l"),
    *_rows("8.offset 7.400.parameter", "lists", "offset", {"offset": -1}, sides="cl"),
    *_rows("8.offset 7.400.parameter", "lists", "offset", {"offset": "x"}, {"offset": 2**63}, sides="l"),
    *_rows("8.sort", "lists", "sort", *({"sort": ",".join([form] * 9)} for form in ("id", "-id", "id:desc", "desc(text(id))")), sides="cl"),
    *_rows("4.1.filter 7.400.parameter", "lists", "filter", *({"filter": text} for text in ("eq(nothing,1)", "(", "eq(id)", "like(id,x)", "id", "eq(id,x", "eq(id,x))", "in(id)", "and()", "not(a,b)", "eq(at(id,x),1)", "is_null()", '"', "(" * 50)), sides="l"),
    *_rows("4.1.filter 7.400.parameter", "lists", "nothing", {"equ(nothing)": "1"}, sides="l"),
    *_rows("4.1.filter 7.400.parameter", "lists", "sort", {"sort": "desc("}, {"sort": "nothing"}, {"sort": "like(id)"}, sides="l"),
)
# fmt: on


def _list(client: AssayClient, query: dict[str, Any]) -> None:
    for name in LISTS:
        resource, _, verb = name.partition(".")
        getattr(getattr(client, resource), verb)(**query)


def _create(client: AssayClient, body: dict[str, Any]) -> None:
    fields = dict(body)
    if "payment" in fields:
        fields["payment_method"] = fields.pop("payment")["method"]
    client.experiments.create(CreateRequest.model_validate(fields))


def _estimate(client: AssayClient, body: dict[str, Any]) -> None:
    client.experiments.estimate_cost(ExperimentSpec.model_validate(body["experiment_spec"]))


def _entries(fields: dict[str, Any]) -> dict[str, Any]:
    if "sequences" in fields:
        fields["sequences"] = [ProteinSequence(**entry) for entry in fields["sequences"]]
    return fields


def _mint(client: AssayClient, body: dict[str, Any]) -> None:
    fields = {
        **body,
        **{{"email": "email", "name": "user_name"}[name]: value for name, value in body["user"].items()},
    }
    fields.pop("user")
    client.tokens.mint(MintRequest.model_validate(fields))


def _attenuate(client: AssayClient, body: dict[str, Any]) -> None:
    fields = {**body, "attenuation": Attenuation(**body["attenuation"])}
    client.tokens.attenuate(**fields)


# How the client makes each call from the body that the row describes.
BY_CLIENT: Final[dict[str, Callable[[AssayClient, dict[str, Any]], Any]]] = {
    "lists": _list,
    "experiments.create": _create,
    "experiments.estimate": _estimate,
    "experiments.modify": lambda client, body: client.experiments.modify("x", **_entries(body)),
    "sequences.add": lambda client, body: client.sequences.add(
        body["experiment_code"], _entries(body)["sequences"]
    ),
    "quotes.reject": lambda client, body: client.quotes.reject("q", **body),
    "tokens.attenuate": _attenuate,
    "partners.mint_token": _mint,
    "webhooks.create": lambda client, body: client.webhooks.create(**body),
    "targets.request_custom": lambda client, body: client.custom_targets.request(**body),
}
