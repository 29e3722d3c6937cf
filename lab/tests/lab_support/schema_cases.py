"""Brings generated requests nearer to the lab: real ids, and orders that keep the rules among fields.

Only what was generated to be valid is touched; what was made invalid on purpose stays so.
"""

import zlib
from typing import Any

from schemathesis import GenerationMode
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from assay_lab.api import ROUTES, operation_id
from assay_lab.measure.assays import BINDING_TYPES, METHOD_TYPES
from assay_lab.vocabulary import ExperimentType
from lab_support.core import PRICED
from lab_support.described import body_schema, find_problems, without_nulls

# Why a request that fits its schema may be refused with 400 or 422 all the same.
_RULES_BEYOND_THE_SCHEMA = {
    "sequences.add": "names and residues must not repeat, also among what the experiment has",
    "experiments.modify": "fields must fit the experiment's type, sequences must differ",
    "experiments.submit": "a draft without a target cannot be submitted",
    "experiments.get_invoice": "an unknown experiment is a 400 here (contract 7)",
    "invoices.pay": "a challenge (402) answers a call without a credential",
    "targets.request_custom": "one of two fields must be set",
    "tokens.attenuate": "the token must be a real one, and the expiry must lie ahead",
    "webhooks.create": "the address must be a public one, headers have reserved names",
    "webhooks.modify": "the address must be a public one, headers have reserved names",
    "partners.mint_token": "the expiry must lie ahead, the organization must be the partner's",
}
_ROUTES = {operation_id(route): route for route in ROUTES}
_ORDERS = frozenset({"experiments.create", "experiments.estimate"})
# Texts with a grammar of their own, which no schema tells: made up they are refused, so most are replaced.
_LANGUAGES = {
    "filter": ("is_not_null({0})", "not(is_null({0}))", 'or(eq(text({0}),"a, b"),is_null({0}))'),
    "sort": ("desc({0})", "-{0}", "+{0},{0}", "{0}:asc", "asc(text({0}))"),
}


def made_real(case: Any, ids: dict[str, list[str]], codes: list[str]) -> list[Any]:
    """Put real ids and codes into three of four cases, and mend as many orders.

    Returns:
        Checks that do not apply: acceptance, where JSON Schema cannot say everything that is asked for.
    """
    operation = case.operation.definition.raw["operationId"]
    chance = zlib.crc32(repr((case.path_parameters, case.query, case.body)).encode())
    real = chance % 4 > 0
    if real and _valid(case, ParameterLocation.PATH):
        for name in set(case.path_parameters or ()) & set(ids):
            case.path_parameters[name] = ids[name][chance % len(ids[name])]
    body = case.body if _valid(case, ParameterLocation.BODY) and isinstance(case.body, dict) else {}
    if real and "experiment_code" in body:
        body["experiment_code"] = codes[chance % len(codes)]
    mended = real and operation in _ORDERS and bool(body)
    if mended:
        _mend(case, body)
    spoken = _LANGUAGES.keys() & set(case.query or ())
    if real and _valid(case, ParameterLocation.QUERY):
        for name in spoken:
            phrases = _LANGUAGES[name]
            case.query[name] = phrases[chance % len(phrases)].format("id")  # every list has this column
        spoken = frozenset()
        if chance % 5 == 1:  # generated conditions hardly ever leave an item
            for name in set(case.query) - {"limit", "sort"}:
                del case.query[name]
    unsure = (operation in _ORDERS and not mended) or operation in _RULES_BEYOND_THE_SCHEMA
    excused = [positive_data_acceptance] if unsure or spoken else []
    return [*excused, negative_data_rejection] if _is_odd_by_nulls_alone(operation, case.body) else excused


def _is_odd_by_nulls_alone(name: str, body: Any) -> bool:
    schema = body_schema(_ROUTES[name]) if name in _ROUTES else None
    return schema is not None and isinstance(body, dict) and not find_problems(without_nulls(body), schema)


def _valid(case: Any, location: ParameterLocation) -> bool:
    component = case.meta.components.get(location) if case.meta else None
    return component is not None and component.mode == GenerationMode.POSITIVE


def _mend(case: Any, body: dict[str, Any]) -> None:
    """Make an order keep the rules of its type (contract 2.2 and 4.2)."""
    spec = body["experiment_spec"]
    kind = spec["experiment_type"]
    _mend_sequences(spec)
    spec.pop("method", None)
    spec.pop("target_id", None)
    if kind in METHOD_TYPES:
        spec["method"] = "bli"
    if kind in BINDING_TYPES:
        spec["target_id"] = PRICED["id"]
    else:
        body.pop("auto_accept_quote", None)
    if kind != ExperimentType.AFFINITY:
        spec.pop("antigen_concentrations", None)
    if body.get("webhook_url"):
        body["webhook_url"] = "https://hooks.example/updates"
    if body.get("payment") and case.headers:
        case.headers.pop("X-Service-Payment-Method", None)


def _mend_sequences(spec: dict[str, Any]) -> None:
    if spec["experiment_type"] == ExperimentType.EPITOPE_BINNING:
        spec["sequences"] = {f"binder {number}": "ACDE" + number * "F" for number in range(4)}
        spec.pop("n_replicates", None)
        return
    if spec.get("n_replicates"):
        spec["n_replicates"] = int(spec["n_replicates"])  # 1.0 is whole to JSON Schema, and not to the lab
    spec["sequences"] = dict(list(spec["sequences"].items())[:1])
    for value in spec["sequences"].values():
        if isinstance(value, dict):
            value.pop("metadata", None)
