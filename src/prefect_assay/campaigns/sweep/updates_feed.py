"""Reads one token's feed of updates up to a watermark. Nothing here wakes a run."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from prefect_assay.campaigns.sweep.watermarks import Watermark
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX

# Rows that are recognized by their ids: one page of the list.
_DEPTH: Final = PAGE_LIMIT_MAX
_ROWS_MAX: Final = 10_000  # of one reading, where none of them is known
_DIGEST: Final = 12


@dataclass(frozen=True)
class FeedPage:
    """The new updates of a token's feed, and the watermark behind them."""

    updates: int
    newest: Mapping[str, datetime]  # the time of the newest new update, by experiment
    mark: Watermark


def read_feed(client: AssayClient, mark: Watermark, now: datetime) -> FeedPage:
    """Read the new updates, newest first. In the first reading those of one page are new.

    A row is new if it is not among those that the watermark knows: a wrong time, or a row that comes a little late, hides
    no other. Reading goes on until all known rows are passed.
    """
    unmet = set(mark.seen)
    fresh = last = 0
    news: dict[str, datetime] = {}
    seen: list[str] = []
    for rows, update in enumerate(client.updates.iterate(), start=1):
        digest = hashlib.sha256(update.id.encode()).hexdigest()[:_DIGEST]
        if len(seen) < _DEPTH:
            seen.append(digest)
        if digest in mark.seen:
            unmet.discard(digest)
            last = rows
        else:
            fresh += 1
            news.setdefault(update.experiment_id, update.timestamp or now)
        passed = last and (not unmet or rows - last >= _DEPTH)
        if rows >= _DEPTH and (not mark.read or passed or rows >= _ROWS_MAX):
            break
    return FeedPage(fresh, news, mark.model_copy(update={"read": True, "seen": tuple(seen) or mark.seen}))
