"""Read a list page by page, lazily, while rows move under the reader (contract 4.1).

Lists are newest first, so each new row pushes the others back by one, and a row that leaves pulls them forward. Each
page therefore starts at the last row already seen. If the page shows a seen row, nothing lies unread between the two. If
not, rows have left in front: the page is discarded, and reading steps back until a seen row shows.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from prefect_assay.errors import UnexpectedAnswer
from prefect_assay.service.client.http.request import Operation
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX

T = TypeVar("T")
A = TypeVar("A")
R_co = TypeVar("R_co", covariant=True)

_LIMIT_MIN: Final = 2  # one row of overlap and one of progress
REQUESTS_MAX: Final = 10_000  # a list need not end


class Walk(Protocol[A, R_co]):
    """Several requests in a row, each decided by the answers before."""

    def operation(self) -> Operation[A] | None:
        """The next request, or None when the walk is over."""
        ...

    def feed(self, answer: A) -> Sequence[R_co]:
        """Take the last operation's answer; return the rows that it yields."""
        ...


def steps(walk: Walk[A, Any]) -> Iterator[Operation[A]]:
    """The requests of a walk that is fed between them; UnexpectedAnswer if it does not end."""
    sent = 0
    while (operation := walk.operation()) is not None:
        sent += 1
        if sent > REQUESTS_MAX:
            raise UnexpectedAnswer(
                f"{operation.request}: the list has not ended after {REQUESTS_MAX:,} pages. Narrow it with a filter; "
                "if it cannot be that long, tell the laboratory"
            )
        yield operation


class Pager(Generic[T]):
    """A walk over the rows of one list. No id is yielded twice.

    `fetch` makes the operation for a limit (2 to 100 rows) and an offset. A service of the earlier variant (contract
    9.4) names the row to go on from, `next_cursor`; where a page carries one, `after` makes the next operation.
    """

    def __init__(
        self,
        fetch: Callable[[int, int], Operation[Page[T]]],
        key: Callable[[T], str],
        *,
        limit: int = PAGE_LIMIT_MAX,
        after: Callable[[int, str], Operation[Page[T]]] | None = None,
    ) -> None:
        self._fetch = fetch
        self._after = after
        self._cursors: list[str] = []
        self._key = key
        self._limit = min(max(limit, _LIMIT_MIN), PAGE_LIMIT_MAX)
        self._offset = 0
        self._seen: set[str] = set()
        self._over = False

    def operation(self) -> Operation[Page[T]] | None:
        """The next page, or None after the last."""
        if self._over:
            return None
        if self._after is not None and self._cursors:
            return self._after(self._limit, self._cursors[-1])
        return self._fetch(self._limit, self._offset)

    def feed(self, answer: Page[T]) -> Sequence[T]:
        """The rows not seen before."""
        if self._after is not None and (answer.next_cursor is not None or self._cursors):
            return self._by_cursor(answer)
        keys = {self._key(row) for row in answer.items}
        if self._offset > 0 and not keys & self._seen:
            self._offset = max(0, self._offset - self._limit + 1)
            return ()
        fresh = self._fresh(answer)
        following = self._offset + answer.count - 1
        # Contract 4.1: until fewer than `limit` items return, unless by `total` the service has more and only keeps
        # its pages shorter. The other test ends a walk over a service that ignores the offset.
        last = answer.count < self._limit and self._offset + answer.count >= answer.total
        self._over = last or (not fresh and (answer.count < self._limit or following >= answer.total))
        self._offset = following
        return fresh

    def _by_cursor(self, answer: Page[T]) -> Sequence[T]:
        cursor = answer.next_cursor
        # a repeated cursor would lead in a circle
        self._over = cursor is None or cursor in self._cursors
        if cursor is not None:
            self._cursors.append(cursor)
        return self._fresh(answer)

    def _fresh(self, answer: Page[T]) -> list[T]:
        fresh: list[T] = []
        for row in answer.items:
            if self._key(row) not in self._seen:
                self._seen.add(self._key(row))
                fresh.append(row)
        return fresh
