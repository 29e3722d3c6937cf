"""One page of a list (contract 4.1)."""

from typing import Generic, TypeVar

from prefect_assay.models.base import WireModel

T = TypeVar("T")


class Page(WireModel, Generic[T]):
    """`total` counts matches across all pages, `count` the items here, `offset` is echoed.

    `next_cursor` is set where a service of the earlier variant (contract 9.4) has a further page; such a service
    has neither offsets nor totals, and `total` is then the number of items here.
    """

    items: tuple[T, ...]
    total: int
    count: int
    offset: int
    next_cursor: str | None = None
