"""The results in the service's answers (contract 4.2: not shown). Never raises: the archive has the answers as they came.

A list under any of its names, in an envelope or by design; results with their entries under any name, or rows that are
entries themselves. What has none of these forms is a line that names its file.
"""

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, Final

from pydantic import ValidationError

from prefect_assay.models.archived import read_json
from prefect_assay.models.result import Replicate, Result, ResultEntry

_LISTS: Final = ("items", "results", "data", "result", "rows", "entries", "values", "measurements", "records")
_NAMES: Final = frozenset({"name", "sequence_name", "sequence", "sequence_id", "aa_string"})
_OF_RESULT: Final = frozenset({"id", "result_id", "experiment_id", "title", "created_at", "size_bytes"})
_MEASURED: Final = (
    frozenset({*ResultEntry.model_fields, *Replicate.model_fields}) - _NAMES - {"result_type", "replicate"}
)


def results_in(answers: Mapping[str, bytes]) -> tuple[tuple[Result, ...], tuple[str, ...]]:
    """The results in some answers, by file name, and a line for each part that is none of a known shape.

    Two results never share an id: where a service gives one to several, the next ones are `r-1-2`, `r-1-3`. One without an id
    has its number.
    """
    found: dict[str, Result] = {}
    lines: list[str] = []
    of_id: dict[str, list[Result]] = {}
    bodies = {name: _parsed(raw) for name, raw in answers.items()}
    for name, body in bodies.items():
        rows = _rows(body)
        if not rows:
            lines.append(f"raw/{name} has no {'list' if rows is None else 'rows'} of results")
        for number, row in enumerate(rows or (), start=1):
            result = _result(row, len(found) + 1)
            if result is None:
                lines.append(f"raw/{name}, row {number}: cannot be read")
            elif not any(_same(result, one) for one in of_id.get(result.id, ())):
                of_id.setdefault(result.id, []).append(result)
                own = next(one for one in _ids(result.id) if one not in found)
                found[own] = result.model_copy(update={"id": own})
                if not result.summary and not isinstance(row.get("summary"), list):
                    lines.append(f"raw/{name}, row {number}: result {own} has no summary of a known shape")
    return tuple(found.values()), (*lines, *_rest(bodies))


def sequence_names(answers: Iterable[bytes]) -> dict[str, str]:
    """The name of each sequence id in archived lists of sequences, which the contract does not have (4.3)."""
    rows = [row for body in answers for row in _rows(_parsed(body)) or () if isinstance(row, dict)]
    return {
        str(row["id"]): row["name"]
        for row in rows
        if row.get("id") is not None and isinstance(row.get("name"), str)
    }


def _parsed(raw: bytes) -> Any:
    """JSON, or a line of it per row; None for anything else."""
    try:
        return read_json(raw)
    except ValueError:
        pass
    try:
        return [read_json(line) for line in raw.splitlines() if line.strip()]
    except ValueError:
        return None


def _rows(body: Any) -> list[Any] | None:
    """The rows of an answer; None where it has no list."""
    if isinstance(body, list):
        return body
    if not isinstance(body, dict):
        return None
    if "result_type" in body or isinstance(body.get("summary"), list | dict) or _is_entry(body):
        return [body]
    inner = (_rows(body[name]) for name in _LISTS if isinstance(body.get(name), list | dict))
    found = next((rows for rows in inner if rows is not None), None)
    return _by_name(body) if found is None else found


def _by_name(value: Mapping[str, Any]) -> list[Any] | None:
    """Entries under the names of their designs."""
    entries = all(isinstance(one, dict) and _MEASURED & one.keys() for one in value.values())
    return [{"name": name, **one} for name, one in value.items()] if value and entries else None


def _is_entry(row: Any) -> bool:
    """Whether a row names a design and has a value of it."""
    return isinstance(row, dict) and any(row.get(name) is not None for name in _NAMES) and _measures(row)


def _measures(row: Mapping[str, Any]) -> bool:
    numbers = (type(value) in {int, float} for name, value in row.items() if name not in _OF_RESULT)
    return bool(_MEASURED & row.keys()) or any(numbers)


def _entries(row: Mapping[str, Any]) -> list[Any]:
    summary = row.get("summary")
    if isinstance(summary, list):
        return summary
    if isinstance(summary, dict):
        return _by_name(summary) or []
    if _is_entry(row):
        return [{name: value for name, value in row.items() if name not in _OF_RESULT}]
    lists = (_rows(row[name]) or [] for name in _LISTS if isinstance(row.get(name), list | dict))
    return next((rows for rows in lists if any(_is_entry(one) or _is_bare(one) for one in rows)), [])


def _is_bare(one: Any) -> bool:
    """An entry of a known kind that names no design."""
    return isinstance(one, dict) and bool(_MEASURED & one.keys())


def _result(row: Any, number: int) -> Result | None:
    if not isinstance(row, dict):
        return None
    own = next((row[name] for name in ("id", "result_id") if row.get(name) is not None), f"row-{number}")
    rest = {name: value for name, value in row.items() if name != "result_id"}
    try:
        return Result.model_validate({**rest, "id": own, "summary": _entries(row)})
    except ValidationError:
        return None


def _same(one: Result, other: Result) -> bool:
    """One result on two pages; the link to its package may have been signed again."""
    first, second = (
        (result.result_type, result.summary, (result.data_package_url or "").partition("?")[0])
        for result in (one, other)
    )
    return first == second


def _ids(own: str) -> Iterable[str]:
    yield own
    yield from (f"{own}-{number}" for number in count(2))


def _rest(bodies: Mapping[str, Any]) -> list[str]:
    """A line where a list says that it has more than came."""
    lists = {name: body for name, body in bodies.items() if isinstance(body, dict)}
    if not lists:
        return []
    came = sum(len(_rows(body) or ()) for body in lists.values())
    totals = [total for body in lists.values() if type(total := body.get("total")) is int]
    name, last = list(lists.items())[-1]
    more = last.get("has_more") is True or last.get("next") or last.get("next_cursor")
    if not more and came >= max(totals, default=0):
        return []
    return [f"raw/{name} says that the service has more results than the {came} that came"]
