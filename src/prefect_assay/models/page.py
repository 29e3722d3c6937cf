"""One page of a list (contract 4.1)."""

from typing import Generic, TypeVar

from prefect_assay.models.base import WireModel

T = TypeVar("T")


class Page(WireModel, Generic[T]):
    """`total` counts matches across all pages, `count` the items here, `offset` is echoed."""

    items: tuple[T, ...]
    total: int
    count: int
    offset: int
