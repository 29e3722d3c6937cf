"""Sends events, best effort, once per fact. Nothing here fails a run or makes it wait for long.

The id of an event is that of its fact: every run and every server gives it the same one. Prefect's server keeps an id
once, but fires automations again for one that is repeated after half an hour. A run executes the same lines at each
wake-up, so it remembers in a label what it has sent. The label is written after the events have left the process: a run
that is killed in between sends the same ids again within seconds.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Thread
from typing import Final, TypeVar

from prefect.context import FlowRunContext
from prefect.events import emit_event
from prefect.events.worker import EventsWorker

from prefect_assay.campaigns.events.kinds import Fact

EVENTS_LABEL: Final = "assay.events"  # of a run: the beginnings of the ids that it has sent

_ID_LENGTH: Final = 10
_SENT_MAX: Final = 3_000  # some 300 experiments; a loop of a thousand rounds must not fill the label
_FLUSH_SECONDS: Final = 2.0
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)

_log = logging.getLogger("prefect_assay.campaigns.events")

T = TypeVar("T")


@dataclass
class _Recording:
    """What one execution of a run has sent, and what its facts concern."""

    began: datetime
    sent: list[str]
    changed: bool = False
    concerns: dict[str, str | None] = field(default_factory=dict)

    def add(self, fact: Fact) -> None:
        self.sent.append(_shorten(fact))
        self.changed = True


_RECORDING: ContextVar[_Recording | None] = ContextVar("assay_events", default=None)


@contextmanager
def record_facts(
    sent: object, *, began: datetime | None = None, keep: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Send each fact of the block once.

    Args:
        sent: the run's label as of its start.
        began: when the run was created: an older fact is another run's news.
        keep: stores the new label, once the events have left this process.
    """
    known = sent.split() if isinstance(sent, str) else []
    record = _Recording(began or _BEGINNING, known)
    token = _RECORDING.set(record)
    try:
        yield
    finally:
        _RECORDING.reset(token)
        if record.changed and keep is not None and flush_events():
            _ignore_failure(lambda: keep(" ".join(record.sent[-_SENT_MAX:])))


def describe_subject(*, campaign_id: str, order_key: str | None = None, account: str | None = None) -> None:
    """Name the campaign, the order and the account of all further facts in this recording that do not name their own."""
    record = _RECORDING.get()
    if record is not None:
        record.concerns = {"campaign_id": campaign_id, "order_key": order_key, "account": account}


def is_news(fact_time: datetime | None) -> bool:
    """Return True if a fact of this time, if it is known, is not older than the run."""
    record = _RECORDING.get()
    return record is None or fact_time is None or fact_time >= record.began


def emit_fact(fact: Fact, *, news: bool = True) -> None:
    """Send the event of a fact, unless this run has sent it before. `news=False` only remembers it as sent.

    Outside of a flow run this does nothing. Prefect adds the run with its flow, deployment, work pool and tags.
    """
    if FlowRunContext.get() is None:
        return
    record = _RECORDING.get()
    if record is None:
        send_event(fact)
    elif _shorten(fact) not in record.sent:
        missing = {name: value for name, value in record.concerns.items() if getattr(fact, name) is None}
        if not news or send_event(fact.model_copy(update=missing)):
            record.add(fact)


def send_event(fact: Fact) -> bool:
    """Hand an event to Prefect's buffer; True if it was taken. It occurs now, because Prefect hides future events."""

    def hand_over() -> bool:
        sent = emit_event(
            event=fact.event,
            resource=make_resource(fact),
            related=list_related(fact),
            payload=fact.payload(),
            id=fact.id,
        )
        return sent is not None

    return _ignore_failure(hand_over) or False


def make_resource(fact: Fact) -> dict[str, str]:
    """The resource of a fact: id, name, and the labels that automations match by."""
    return {
        "prefect.resource.id": fact.resource_id,
        "prefect.resource.name": fact.name,
        **fact.properties(),
    }


def list_related(fact: Fact) -> list[dict[str, str]]:
    """The campaign and order of a fact. Prefect adds the run, with its flow, deployment and tags."""
    named = [
        ("campaign", f"assay.campaign.{fact.campaign_id}" if fact.campaign_id else None, fact.campaign_id),
        ("order", f"assay.order.{fact.order_key}" if fact.order_key else None, fact.order_key),
    ]
    return [
        {"prefect.resource.id": resource_id, "prefect.resource.role": role}
        | ({"prefect.resource.name": name} if name else {})
        for role, resource_id, name in named
        if resource_id and resource_id != fact.resource_id
    ]


def flush_events(seconds: float = _FLUSH_SECONDS) -> bool:
    """Wait until the buffered events have left this process; False if that takes longer, as without a server."""

    def empty() -> bool:
        # Its own thread: Prefect's wait has no time-out, and its sender reconnects for minutes.
        waiter = Thread(target=EventsWorker.instance().wait_until_empty, daemon=True)
        waiter.start()
        waiter.join(seconds)
        return not waiter.is_alive()

    return _ignore_failure(empty) or False


def _shorten(fact: Fact) -> str:
    return fact.id.hex[:_ID_LENGTH]


def _ignore_failure(step: Callable[[], T]) -> T | None:
    try:
        return step()
    except Exception:  # noqa: BLE001 - an event must not fail what it reports
        _log.debug("An event could not be sent", exc_info=True)
        return None
