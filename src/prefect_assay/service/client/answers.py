"""Is an answer about what was asked for? Every operation on one record compares the ids that its answer shows.

An answer that names something else counts as one that was not received: a read is repeated, and fails with
`MixedAnswer`; an acting call has an unknown outcome. So it never reaches a ledger or an archive. An answer that shows
no id, as the contract allows for most, contradicts nothing.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeVar

from prefect_assay.errors import MixedAnswer
from prefect_assay.service.client.http.request import Answer, Operation
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.experiment import ExperimentSummary
from prefect_assay.service.models.identifiers import normalize_id

T = TypeVar("T")

_DEPTH_MAX: Final = 4  # deeper objects are of no known answer
_OF_THE_USER: Final = frozenset({"metadata", "parameters", "sequences", "summary"})  # may hold any key


def require_answer_about(asked: str, shown: Iterable[object], what: str) -> None:
    """Compare the ids that an answer shows with the one that was asked for; what is not text shows nothing.

    Raises:
        MixedAnswer: the answer names another one.
    """
    for other in shown:
        if isinstance(other, str) and other and normalize_id(other) != normalize_id(asked):
            raise MixedAnswer(f"the answer names {what} {other[:100]!a}, and {asked!a} was asked for")


def require_experiment(operation: Operation[T], experiment_id: str) -> Operation[T]:
    """The operation, whose answer has to be about this experiment: one record, or every row of a list."""
    return _checked(
        operation, lambda value: require_answer_about(experiment_id, find_experiment_ids(value), "experiment")
    )


def require_record(
    operation: Operation[T], record_id: str, *, fields: tuple[str, ...] = ("id",)
) -> Operation[T]:
    """The operation, whose answer has to have this id in one of the fields, if it shows any of them."""

    def check(value: Any) -> None:
        shown = [getattr(value, name, None) for name in fields]
        ids = [normalize_id(one) for one in shown if isinstance(one, str) and one]
        if normalize_id(record_id) not in ids:
            require_answer_about(record_id, ids, fields[0])

    return _checked(operation, check)


def _checked(operation: Operation[T], check: Callable[[T], None]) -> Operation[T]:
    def read(answer: Answer) -> T:
        value = operation.read(answer)
        check(value)
        return value

    return replace(operation, read=read)


def find_experiment_ids(value: object, depth: int = 0) -> Iterator[object]:
    """The ids of experiments that an answer shows: in a model of the service's, or in JSON as it came."""
    if depth > _DEPTH_MAX:
        return
    if isinstance(value, Page | list):
        for row in value.items if isinstance(value, Page) else value:
            yield from find_experiment_ids(row, depth + 1)
    elif isinstance(value, dict):
        yield value.get("experiment_id")
        yield _id_inside(value.get("experiment"))
        for name, inside in value.items():
            if name not in _OF_THE_USER and isinstance(inside, dict | list):
                yield from find_experiment_ids(inside, depth + 1)
    else:
        if isinstance(value, ExperimentSummary):
            yield value.id
            yield (value.model_extra or {}).get("experiment_id")
        yield getattr(value, "experiment_id", None)
        yield _id_inside(getattr(value, "experiment", None))


def _id_inside(experiment: object) -> object:
    """The id of an experiment that is shown inside another record (service-shapes, Sequences)."""
    if not isinstance(experiment, dict):
        return None
    return next((experiment[name] for name in ("experiment_id", "id") if experiment.get(name)), None)
