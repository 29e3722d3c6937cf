"""What the client uses of each call: what it sends, by the description, and what it reads, by the models of the answers."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, get_args

from pydantic import AliasChoices, BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from prefect_assay.service.description import list_calls, load_description
from prefect_assay.service.drift.document import facts_of
from prefect_assay.service.models import (
    billing,
    experiment,
    result,
    sequences,
    spec,
    tokens,
    update,
)
from prefect_assay.service.models.base import DECIDES, WireModel

_MODULES: Final = (billing, experiment, result, sequences, spec, tokens, update)
# One value of each JSON type; a field that takes all of them is read whatever value it has.
_ODD: Final = (None, True, 1.5, "odd", ["odd"], {"odd": 1})


@dataclass(frozen=True, slots=True)
class Read:
    """How the client reads one field of an answer."""

    names: tuple[str, ...]  # where it looks for the field
    required: bool  # an answer without it cannot be read
    takes_null: bool
    tolerant: bool  # whatever its value, the answer can be read


# Of a list only its rows are required.
_PAGING: Final[Mapping[str, Read]] = {
    "items": Read(("items",), required=True, takes_null=False, tolerant=False),
    **{name: Read((name,), required=False, takes_null=True, tolerant=True) for name in ("total", "offset")},
}


@dataclass(frozen=True, slots=True)
class Usage:
    """The places of `document`, without the status of an answer, that the client uses of one call."""

    sent: frozenset[str] = frozenset()  # parameters and body fields that it may send
    always: frozenset[str] = frozenset()  # those of them that each request with their parent place carries
    is_list: bool = False
    read: Mapping[str, Read] = field(
        default_factory=dict
    )  # the fields of its answers, by the name of the model


@cache
def usage_by_operation() -> Mapping[str, Usage]:
    """What the client uses, by call as `document` names it."""
    requests = facts_of(_describe_requests())
    return {
        name: _usage(raw, requests[name])
        for name, raw, _ in list_calls(load_description())
        if raw.get("x-sent") is not False
    }


def _usage(raw: Mapping[str, Any], request: Mapping[str, Mapping[str, Any]]) -> Usage:
    places = {place: fact for place, fact in request.items() if not place.startswith(("answer", "refusals"))}
    rows = [_row_schema(schema) for schema in _answer_schemas(raw)]
    kinds = (_model_of(name) for name, _ in rows)
    models = tuple(dict.fromkeys(model for model in kinds if model is not None))
    is_list = any(is_list for _, is_list in rows)
    return Usage(
        sent=frozenset(places),
        always=frozenset(place for place, fact in places.items() if fact["required"]),
        is_list=is_list,
        read={**_list_read_fields(models, "items[]."), **_PAGING}
        if is_list
        else _list_read_fields(models, ""),
    )


def _describe_requests() -> Mapping[str, Any]:
    """The description with what the client sends: without what it never does, and what it always does as required."""
    parameters = load_description()["components"]["parameters"]

    def is_sent(part: Any) -> bool:
        if isinstance(part, Mapping):
            part = parameters.get(str(part.get("$ref")).rpartition("/")[2], part)
        return not isinstance(part, Mapping) or part.get("x-sent") is not False

    def select(part: Any) -> Any:
        if isinstance(part, list):
            return [select(one) for one in part if is_sent(one)]
        if not isinstance(part, dict):
            return part
        # The keys of a free object are the user's, whichever of them the service knows.
        is_free = part.get("additionalProperties") is True
        kept = {name: select(one) for name, one in part.items() if not (is_free and name == "properties")}
        always = part.get("x-always-sent")
        return {**kept, "required": [*part.get("required", ()), *always]} if always else kept

    selected: Mapping[str, Any] = select(load_description())
    return selected


def _answer_schemas(raw: Mapping[str, Any]) -> Iterator[str]:
    """The names of the schemas of accepted answers."""
    for status, answer in raw["responses"].items():
        schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
        if status.startswith("2") and "$ref" in schema:
            yield _name_of(schema)


def _row_schema(name: str) -> tuple[str, bool]:
    """The schema of the rows of a list, and True; the schema itself and False for anything else."""
    schema = _schemas()[name]
    rows = schema if schema.get("type") == "array" else schema.get("properties", {}).get("items", {})
    row = rows.get("items", {}) if isinstance(rows, Mapping) else {}
    return (_name_of(row), True) if "$ref" in row else (name, False)


def _model_of(name: str) -> type[BaseModel] | None:
    """The model that reads a schema; None where the client keeps the answer as it is."""
    model_name = _schemas()[name].get("x-model", name)
    model = next((vars(module)[model_name] for module in _MODULES if model_name in vars(module)), None)
    return model if isinstance(model, type) and issubclass(model, WireModel) else None


def _schemas() -> Mapping[str, Any]:
    schemas: Mapping[str, Any] = load_description()["components"]["schemas"]
    return schemas


def _name_of(schema: Mapping[str, Any]) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _list_read_fields(
    kinds: Iterable[type[BaseModel]], place: str, *, tolerant: bool = False
) -> dict[str, Read]:
    reads: dict[str, Read] = {}
    for kind in kinds:
        one: dict[str, Read] = {}
        for name, info in kind.model_fields.items():
            choices = info.validation_alias
            names = tuple(map(str, choices.choices)) if isinstance(choices, AliasChoices) else (name,)
            # What decides nothing is left out where it, or anything below, cannot be read.
            left_out = tolerant or not (info.is_required() or DECIDES in info.metadata)
            one[place + name] = Read(
                tuple(place + alias for alias in names),
                required=info.is_required() and not tolerant,
                takes_null=left_out or not info.is_required() or _takes(info, None),
                tolerant=left_out or all(_takes(info, value) for value in _ODD),
            )
            for below, many in _models_in(info.annotation):
                inner = f"{place}{name}{'[]' if many else ''}."
                one |= _list_read_fields((below,), inner, tolerant=left_out)
        reads |= {name: _stricter(read, reads.get(name, read)) for name, read in one.items()}
    return reads


def _stricter(one: Read, other: Read) -> Read:
    """Of two models of one answer, the status decides which one reads it."""
    return Read(
        one.names,
        required=one.required or other.required,
        takes_null=one.takes_null and other.takes_null,
        tolerant=one.tolerant and other.tolerant,
    )


def _takes(field: FieldInfo, value: object) -> bool:
    try:
        TypeAdapter(field.rebuild_annotation()).validate_python(value)
    except ValidationError:
        return False
    return True


def _models_in(annotation: Any, *, many: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, many
    for part in get_args(annotation):
        yield from _models_in(part, many=many or getattr(annotation, "__origin__", None) is tuple)
