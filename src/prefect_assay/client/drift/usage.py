"""What the client uses of the interface, taken from the client itself.

The parameters and the body of a sample are what the client may send; the model of its answer is what it reads.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, get_args
from urllib.parse import unquote

from pydantic import AliasChoices, BaseModel

from prefect_assay.client.drift.document import above
from prefect_assay.client.drift.samples import SAMPLE_ID, USES, Sample, Use
from prefect_assay.client.http.address import API_PREFIX
from prefect_assay.client.http.pagination import Pager
from prefect_assay.client.http.request import NO_BODY
from prefect_assay.client.operations.pdf import Pdf

# Below these stand the user's own keys or free-form values: nothing there is the service's.
_FREE: Final = frozenset({"parameters", "metadata", "headers", "json_body"})
_KEYED: Final = frozenset({"experiment_spec.sequences"})


@dataclass(frozen=True, slots=True)
class Usage:
    """What the client uses of one operation: places of `drift_document`, without the status of an answer.

    Attributes:
        sent: parameters and body fields that it may send.
        always: those of them that every request carries which carries what they stand in.
        read: for each answer field that it reads, the names it is read under, and whether it must be there.
    """

    sent: frozenset[str]
    always: frozenset[str]
    read: dict[str, tuple[tuple[str, ...], bool]]


def usage() -> dict[str, Usage]:
    """What the client uses, by operation as `drift_document` names it."""
    found: dict[str, Usage] = {}
    for use in USES:
        built = [_request(sample) for sample in use.samples]
        carried = [frozenset(_sent(body, names)) for _, names, body in built]
        sent = frozenset[str]().union(*carried)
        found[built[0][0]] = Usage(
            sent=sent,
            # a list may always be asked for without any parameter
            always=frozenset() if use.listed else frozenset(p for p in sent if _always(p, carried)),
            read=_all_read(use),
        )
    return found


def _always(place: str, carried: Iterable[frozenset[str]]) -> bool:
    holder = above(place)
    return all(place in one for one in carried if holder is None or holder in one)


def _request(sample: Sample) -> tuple[str, tuple[str, ...], object]:
    """Operation, names of parameters and headers, and body."""
    if isinstance(sample, Pdf):
        return f"GET {_plain('/' + sample.path)}", (), NO_BODY
    operation = sample.operation() if isinstance(sample, Pager) else sample
    if operation is None:
        raise RuntimeError("a walk that has not begun has a first operation")
    request = operation.request
    names = [f"query {name}" for name, _ in request.params]
    names += [f"header {name.lower()}" for name in request.headers]
    return f"{request.method} {_plain(request.path)}", tuple(names), request.json


def _plain(path: str) -> str:
    return unquote(path).removeprefix(API_PREFIX).replace(SAMPLE_ID, "{}")


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


def _all_read(use: Use) -> dict[str, tuple[tuple[str, ...], bool]]:
    """`total`, `count` and `offset` help with paging where they are there; without `items` there is no list."""
    read = _read(use.reads, "items[]." if use.listed else "") | {name: ((name,), False) for name in use.more}
    if use.listed:
        read |= {name: ((name,), name == "items") for name in ("items", "total", "offset")}
    return read


def _read(kinds: Iterable[type[BaseModel]], place: str) -> dict[str, tuple[tuple[str, ...], bool]]:
    found: dict[str, tuple[tuple[str, ...], bool]] = {}
    for kind in kinds:
        for name, field in kind.model_fields.items():
            alias = field.validation_alias
            names = tuple(str(c) for c in alias.choices) if isinstance(alias, AliasChoices) else (name,)
            found[place + name] = (tuple(place + each for each in names), field.is_required())
            for below, many in _models(field.annotation):
                found |= _read((below,), f"{place}{name}{'[]' if many else ''}.")
    return found


def _models(annotation: Any, *, many: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    """The models in an annotation, and whether they stand in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, many
    for part in get_args(annotation):
        yield from _models(part, many=many or getattr(annotation, "__origin__", None) is tuple)
