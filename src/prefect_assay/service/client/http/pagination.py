"""Read a list page by page, lazily, while rows move under the reader (contract 4.1).

Lists are newest first, so each new row pushes the others back by one, and a row that leaves pulls them forward. Each
page therefore starts at the last row already seen. If the page shows a seen row, nothing lies unread between the two. If
not, rows have left in front: the page is discarded, and reading steps back until a seen row shows.
"""

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from prefect_assay.errors import UnexpectedAnswer
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX

T = TypeVar("T")

_LIMIT_MIN: Final = 2  # one row of overlap and one of progress
REQUESTS_MAX: Final = 10_000  # a list need not end


def paginate(
    name: str,
    fetch: Callable[[int, int], Page[T]],
    key: Callable[[T], str],
    *,
    page_size: int = PAGE_LIMIT_MAX,
    fetch_after: Callable[[int, str], Page[T]] | None = None,
) -> Iterator[T]:
    """Yield the rows of one list, each once. Pages are read as the rows are consumed.

    Args:
        name: the list in an error's message, such as `GET /tokens`.
        fetch: reads the page for a limit (2 to 100 rows) and an offset.
        key: the id of a row.
        page_size: rows per request; below 2 counts as 2, above 100 as 100.
        fetch_after: reads the page after a cursor. A service of the earlier variant (contract 9.4) names the row to go on
            from in `next_cursor`.

    Raises:
        UnexpectedAnswer: the list does not end.
    """
    limit = min(max(page_size, _LIMIT_MIN), PAGE_LIMIT_MAX)
    seen: set[str] = set()
    cursors: list[str] = []
    offset = 0
    for _ in range(REQUESTS_MAX):
        page = fetch_after(limit, cursors[-1]) if fetch_after and cursors else fetch(limit, offset)
        has_cursor = fetch_after is not None and (page.next_cursor is not None or bool(cursors))
        rows: dict[str, T] = {}
        for row in page.items:
            rows.setdefault(key(row), row)
        if offset > 0 and not has_cursor and seen.isdisjoint(rows):
            offset = max(0, offset - limit + 1)
            continue
        fresh = [row for row_id, row in rows.items() if row_id not in seen]
        seen.update(rows)
        yield from fresh
        if has_cursor:
            if page.next_cursor is None or page.next_cursor in cursors:  # a repeated one leads in a circle
                return
            cursors.append(page.next_cursor)
            continue
        following = offset + page.count - 1
        # Contract 4.1: until fewer than `limit` items return, unless by `total` the service has more and only keeps
        # its pages shorter. The other test ends the reading of a service that ignores the offset.
        is_last = page.count < limit and offset + page.count >= page.total
        if is_last or (not fresh and (page.count < limit or following >= page.total)):
            return
        offset = following
    raise UnexpectedAnswer(
        f"{name}: the list has not ended after {REQUESTS_MAX:,} pages. Narrow it with a filter; if it cannot be that "
        "long, tell the laboratory"
    )
