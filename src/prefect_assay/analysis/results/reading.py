"""The results in the service's answers. Never raises: the archive has the answers as they came.

Read are a list of results (service-shapes, Results), bare or under `items` (contract 4.1) or `results` (contract 9.4), and
one result as an object. The entries of a result are the list `summary`. Everything else is a line that names its file.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from operator import itemgetter
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from prefect_assay.service.models.answer_json import read_json
from prefect_assay.service.models.result import Result

_LISTS: Final = ("items", "results")
_UNREAD: Final = "it is archived as it came, and unread: ask the laboratory for its form"


def read_results(answers: Mapping[str, bytes]) -> tuple[tuple[Result, ...], tuple[str, ...]]:
    """The results in some answers, by file name, and a line for each part of an unknown shape.

    They are in the order of `created_at` if all have one, else as listed. Two results never share an id: where a service
    gives one to several, the next ones are `r-1-2`, `r-1-3`. One without an id has its number.
    """
    results: dict[str, Result] = {}
    lines: list[str] = []
    of_id: dict[str, list[Result]] = {}
    bodies = {name: _parse_answer(raw) for name, raw in answers.items()}
    listed: list[_ListedResult] = []
    for name, body in bodies.items():
        rows = _find_rows(body)
        if not rows:
            lines.append(f"raw/{name} has no {'list' if rows is None else 'rows'} of results")
        for number, row in enumerate(rows or (), start=1):
            place = f"raw/{name}, row {number}"
            result = _read_result(row)
            if result is None:
                lines.append(f"{place}: cannot be read")
            else:
                listed.append(_ListedResult(place, row, result))
    for place, row, listed_result in _sort_by_time(listed):
        result = listed_result
        if row.get("id") is None:
            result = result.model_copy(update={"id": f"row-{len(results) + 1}"})
        if not any(is_same_result(result, one) for one in of_id.get(result.id, ())):
            of_id.setdefault(result.id, []).append(result)
            result_id = next(one for one in _make_ids(result.id) if one not in results)
            results[result_id] = result.model_copy(update={"id": result_id})
            if not result.summary and not isinstance(row.get("summary"), list):
                lines.append(f"{place}: result {result_id} has no summary of a known shape; {_UNREAD}")
    return tuple(results.values()), (*lines, *_describe_rest(bodies))


def has_result_rows(answer: bytes) -> bool:
    """Whether an answer may hold results: all but an empty list."""
    return _find_rows(_parse_answer(answer)) != []


def read_sequence_names(answers: Iterable[bytes]) -> dict[str, str]:
    """The name of each sequence id in archived lists of sequences, which the contract does not have (4.3)."""
    rows = [row for body in answers for row in _find_rows(_parse_answer(body)) or () if isinstance(row, dict)]
    return {
        str(row["id"]): row["name"]
        for row in rows
        if row.get("id") is not None and isinstance(row.get("name"), str)
    }


def _parse_answer(raw: bytes) -> Any:
    """The JSON of an answer; None for anything else."""
    try:
        return read_json(raw)
    except ValueError:
        return None


def _find_rows(body: Any) -> list[Any] | None:
    """The rows of an answer; None where it has no list of a known form."""
    if isinstance(body, dict):
        if isinstance(body.get("summary"), list):
            return [body]
        body = next((body[name] for name in _LISTS if name in body), None)
    return body if isinstance(body, list) else None


class _ListedResult(NamedTuple):
    """A result with its place and its row as it came."""

    place: str
    row: Mapping[str, Any]
    result: Result


def _sort_by_time(listed: Sequence[_ListedResult]) -> Sequence[_ListedResult]:
    """The oldest first, which a later one corrects; as listed unless all have a time."""
    times = [one.result.created_at for one in listed]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return listed
    return [one for _, one in sorted(zip(known, listed, strict=True), key=itemgetter(0))]


def _read_result(row: Any) -> Result | None:
    """The result of a row; without an id, it is `row`."""
    if not isinstance(row, dict):
        return None
    result_id = row["id"] if row.get("id") is not None else "row"
    summary = row.get("summary")
    try:
        return Result.model_validate(
            {**row, "id": result_id, "summary": summary if isinstance(summary, list) else []}
        )
    except ValidationError:
        return None


def is_same_result(one: Result, other: Result) -> bool:
    """One result on two pages; the link to its package may have been signed again."""
    first, second = (
        (result.result_type, result.summary, (result.data_package_url or "").partition("?")[0])
        for result in (one, other)
    )
    return first == second


def _make_ids(result_id: str) -> Iterable[str]:
    yield result_id
    yield from (f"{result_id}-{number}" for number in count(2))


def _describe_rest(bodies: Mapping[str, Any]) -> list[str]:
    """A line where a list says that it has more than came."""
    lists = {name: body for name, body in bodies.items() if isinstance(body, dict)}
    if not lists:
        return []
    came = sum(len(_find_rows(body) or ()) for body in lists.values())
    totals = [total for body in lists.values() if type(total := body.get("total")) is int]
    name, last = list(lists.items())[-1]
    more = last.get("has_more") is True or last.get("next") or last.get("next_cursor")
    if not more and came >= max(totals, default=0):
        return []
    return [f"raw/{name} says that the service has more results than the {came} that came"]
