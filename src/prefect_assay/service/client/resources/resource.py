"""What every resource is made with: a sender, and the one shape of a list request (contract 4.1)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Final, Generic, Protocol, TypeVar

from pydantic import BaseModel

from prefect_assay.service.client.answers import require_experiment
from prefect_assay.service.client.checks import check_page
from prefect_assay.service.client.decoding import read_page
from prefect_assay.service.client.filters import Condition, Filter, Sorting, and_, eq
from prefect_assay.service.client.http.exchange import Download
from prefect_assay.service.client.http.pagination import paginate
from prefect_assay.service.client.http.request import Operation, Request, encode_query
from prefect_assay.service.client.parameters import FieldTest, encode_tests
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.vocabulary import snake_case

_STATUSES: Final = frozenset({"status", "state"})

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


class Sender(Protocol):
    """Sends what a resource has built; `AssayClient` does."""

    @property
    def base_url(self) -> str:
        """The service's address, without `/api/v1`."""
        ...

    def run(self, operation: Operation[T]) -> T:
        """Carry out one operation."""
        ...

    def stream(self, file: Download) -> Iterator[bytes]:
        """Yield a file piece by piece."""
        ...


class Resource:
    """The calls of one resource."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery(Generic[M]):
    """Which rows of a list are asked for. `fields` are the list's own parameters, `key` is the id of a row.

    With `experiment_id`, a row that names another experiment is an error.
    """

    path: str
    row: type[M]
    filter: Condition | None = None
    search: str | None = None
    sort: Sorting | None = None
    where: Sequence[FieldTest] = ()
    fields: Mapping[str, object] = field(default_factory=dict)
    key: Callable[[M], str] = attrgetter("id")
    experiment_id: str | None = None

    def select(
        self,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        *,
        fields: Mapping[str, object] | None = None,
        experiment_id: str | None = None,
    ) -> "ListQuery[M]":
        """The same list, narrowed and sorted; statuses as the wire spells them (service-shapes, Wire words)."""
        return replace(
            self,
            filter=filter,
            search=search,
            sort=sort,
            where=where,
            fields={
                name: snake_case(value) if name in _STATUSES else value
                for name, value in (fields or {}).items()
            },
            experiment_id=experiment_id,
        )

    def build_page(self, limit: int | None, offset: int | None) -> Operation[Page[M]]:
        """GET one page; InvalidRequest for a limit, an offset or a sort beyond contract 4.1 and 8."""
        check_page(limit, offset, self.sort)
        params = encode_query(
            filter=self.filter,
            search=self.search,
            sort=self.sort,
            **self.fields,
            limit=limit,
            offset=offset,
        )
        operation = Operation(
            request=Request(
                method="GET", path=self.path, params=(*params, *encode_tests(self.where)), repeatable=True
            ),
            read=read_page(self.row),
        )
        return operation if self.experiment_id is None else require_experiment(operation, self.experiment_id)

    def iterate(self, sender: Sender, page_size: int) -> Iterator[M]:
        """Yield all rows, page by page."""
        return paginate(
            f"GET {self.path}",
            lambda limit, offset: sender.run(self.build_page(limit, offset)),
            self.key,
            page_size=page_size,
        )


def join_conditions(condition: Condition | None, **fields: object) -> Condition | None:
    """The condition, and one for each field that has a value; None without any."""
    conditions = [eq(name, value) for name, value in encode_query(**fields)]
    if not conditions:
        return condition
    if condition is not None:
        conditions.append(condition if isinstance(condition, Filter) else Filter(condition))
    return and_(*conditions)
