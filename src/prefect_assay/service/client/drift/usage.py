"""Lists what the client sends and reads, from the client itself.

Every operation is built with everything set and with as little as possible; nothing is sent. The parameters and the
body of these samples are what the client may send; the model of an answer is what it reads.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from inspect import Parameter, getmembers, isfunction, signature
from typing import Any, Final, get_args, get_origin
from urllib.parse import unquote

from pydantic import AliasChoices, BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from prefect_assay.service.client import AssayClient
from prefect_assay.service.client.drift.document import above
from prefect_assay.service.client.drift.samples import (
    ALL,
    ID,
    LEAST,
    OTHERWISE,
)
from prefect_assay.service.client.http.address import API_PREFIX
from prefect_assay.service.client.http.pagination import Pager
from prefect_assay.service.client.http.request import NO_BODY, Operation
from prefect_assay.service.client.operations.results import Pdf
from prefect_assay.service.models.base import DECIDES, Page

_MORE: Final = {"pay": ("already_paid",)}
# Below these are the user's own keys or free-form values, which the service does not define.
_FREE: Final = frozenset({"parameters", "metadata", "headers", "json_body"})
_KEYED: Final = frozenset({"experiment_spec.sequences"})
# One value of each JSON type; a field that takes all of them is read whatever value it has.
_ODD: Final = (None, True, 1.5, "odd", ["odd"], {"odd": 1})
_NOT_DESCRIBED: Final = ("iter_", "openapi")  # walks over a described list; the description itself

Sample = Operation[Any] | Pager[Any] | Pdf


@dataclass(frozen=True, slots=True)
class Use:
    """One operation of the client; `make` builds it."""

    method: str
    make: Callable[..., Sample]
    # With everything set, with as little as possible, and with another form of a field
    arguments: tuple[dict[str, Any], ...]
    # The models of its answer, or of a row; several where the status decides. Empty for files
    reads: tuple[type[BaseModel], ...]
    listed: bool
    more: tuple[str, ...]  # fields of the answer that are read without a model

    @property
    def operation(self) -> str:
        """The operation as `document` names it."""
        return _request(self.make(**self.arguments[0]))[0]


@dataclass(frozen=True, slots=True)
class Read:
    """How the client reads one field of an answer."""

    names: tuple[str, ...]  # where it looks for the field
    required: bool  # an answer without it cannot be read
    takes_null: bool
    tolerant: bool  # whatever its value, the answer can be read


@dataclass(frozen=True, slots=True)
class Usage:
    """The places of `document`, without the status of an answer, that the client uses of one operation."""

    sent: frozenset[str]  # parameters and body fields that it may send
    always: frozenset[str]  # those of them that each request with their parent place carries
    read: dict[str, Read]  # the fields of its answers, by the name of the model


def usage_by_operation() -> dict[str, Usage]:
    """What the client uses, by operation as `document` names it."""
    return {use.operation: _usage(use) for use in USES}


def _uses() -> Iterator[Use]:
    """The operations, without those that walk over several and without the description itself."""
    for name, call in getmembers(AssayClient, isfunction):
        make: Any = getattr(call, "__wrapped__", None)
        if make is None or name.startswith(_NOT_DESCRIBED):
            continue
        answer = signature(make).return_annotation
        if (get_origin(answer) or answer) in {Operation, Pager, Pdf}:
            _, *parameters = signature(call).parameters.values()
            arguments = tuple(_arguments(name, parameters, least) for least in (None, LEAST, OTHERWISE))
            yield Use(name, make, arguments, *_models_of_answer(answer), _MORE.get(name, ()))


def _arguments(operation: str, parameters: list[Parameter], least: dict[str, Any] | None) -> dict[str, Any]:
    """Every parameter; with `least`, which takes precedence, only the required ones and those in it."""
    values = {}
    for parameter in parameters:
        words = (f"{operation}.{parameter.name}", parameter.name)
        required = parameter.default is Parameter.empty
        if least is None or required or words[0] in least:
            default = ID if required and parameter.name.endswith("_id") else "a"
            found = [table[word] for table in (least or {}, ALL) for word in words if word in table]
            values[parameter.name] = found[0] if found else default
    return values


def _models_of_answer(answer: Any) -> tuple[tuple[type[BaseModel], ...], bool]:
    kind = next(iter(get_args(answer)), None)
    if isinstance(kind, type) and issubclass(kind, Page):
        kind = kind.model_fields["items"].annotation
    models = [k for k in (kind, *get_args(kind)) if isinstance(k, type) and issubclass(k, BaseModel)]
    return tuple(models), get_origin(kind) is tuple or get_origin(answer) is Pager


def _usage(use: Use) -> Usage:
    carried = []
    for arguments in use.arguments:
        _, names, body = _request(use.make(**arguments))
        carried.append(frozenset(_sent(body, names)))
    sent = frozenset[str]().union(*carried)
    # a list may always be requested without any parameter
    always = frozenset() if use.listed else frozenset(place for place in sent if _always(place, carried))
    return Usage(sent=sent, always=always, read=_all_read(use))


def _always(place: str, carried: Iterable[frozenset[str]]) -> bool:
    holder = above(place)
    return all(place in one for one in carried if holder is None or holder in one)


def _request(sample: Sample) -> tuple[str, tuple[str, ...], object]:
    """Operation, names of parameters and headers, and body."""
    if isinstance(sample, Pdf):
        return f"GET {_plain('/' + sample.url)}", (), NO_BODY
    operation = sample.operation() if isinstance(sample, Pager) else sample
    if operation is None:
        raise RuntimeError("a walk that has not begun has a first operation")
    request = operation.request
    names = [f"query {name}" for name, _ in request.params]
    names += [f"header {name.lower()}" for name in request.headers]
    return f"{request.method} {_plain(request.path)}", tuple(names), request.json


def _plain(path: str) -> str:
    return unquote(path).removeprefix(API_PREFIX).replace(ID, "{}")


def _sent(body: object, names: Iterable[str]) -> Iterator[str]:
    yield from names
    if body is not NO_BODY:
        yield "body"
        yield from (f"body {place}" for place in _places(body, ""))


def _places(value: object, place: str) -> Iterator[str]:
    if isinstance(value, dict) and place.rpartition(".")[2] not in _FREE:
        for name, below in value.items():
            inner = "*" if place in _KEYED else str(name)
            here = f"{place}.{inner}" if place else inner
            yield here
            yield from _places(below, here)
    if isinstance(value, list) and value:
        yield f"{place}[]"
        yield from _places(value[0], f"{place}[]")


def _all_read(use: Use) -> dict[str, Read]:
    """Of a list only `items` is required; `total` and `offset` are used where present."""
    read = _read(use.reads, "items[]." if use.listed else "")
    read |= {name: _loosely(name) for name in use.more}
    if use.listed:
        read |= {name: _loosely(name) for name in ("total", "offset")}
        read["items"] = Read(("items",), required=True, takes_null=False, tolerant=False)
    return read


def _loosely(name: str) -> Read:
    return Read((name,), required=False, takes_null=True, tolerant=True)


def _read(kinds: Iterable[type[BaseModel]], place: str, *, tolerant: bool = False) -> dict[str, Read]:
    found: dict[str, Read] = {}
    for kind in kinds:
        one: dict[str, Read] = {}
        for name, field in kind.model_fields.items():
            alias = field.validation_alias
            names = tuple(str(c) for c in alias.choices) if isinstance(alias, AliasChoices) else (name,)
            # What decides nothing is left out where it, or anything below, cannot be read.
            left_out = tolerant or not (field.is_required() or DECIDES in field.metadata)
            one[place + name] = Read(
                tuple(place + each for each in names),
                required=field.is_required() and not tolerant,
                takes_null=left_out or not field.is_required() or _takes(field, None),
                tolerant=left_out or all(_takes(field, value) for value in _ODD),
            )
            for below, many in _models(field.annotation):
                inner = f"{place}{name}{'[]' if many else ''}."
                one |= _read((below,), inner, tolerant=left_out)
        found |= {name: _stricter(read, found.get(name, read)) for name, read in one.items()}
    return found


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


def _models(annotation: Any, *, many: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, many
    for part in get_args(annotation):
        yield from _models(part, many=many or getattr(annotation, "__origin__", None) is tuple)


USES: Final = tuple(_uses())
