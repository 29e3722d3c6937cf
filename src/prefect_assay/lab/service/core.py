"""One running lab: its parts, its snapshots, and `LabCore.perform`, the whole service without a web framework."""

import json
import sqlite3
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from prefect_assay.lab.api import Route, find
from prefect_assay.lab.experiments.clock_driver import ClockDriver
from prefect_assay.lab.kernel.concurrency import Gate
from prefect_assay.lab.kernel.faults import FaultList, WebhookFaults
from prefect_assay.lab.kernel.refusals import Refusal, database_away
from prefect_assay.lab.kernel.settings import LabSettings
from prefect_assay.lab.requests.core import Answer, Call, Lab
from prefect_assay.lab.service import seeding
from prefect_assay.lab.service.faults import FaultQueue, Limiter, RateLimit
from prefect_assay.lab.service.journal import Journal, name_caller
from prefect_assay.lab.service.seeding import Seeded
from prefect_assay.lab.tokens import sessions
from prefect_assay.lab.tokens.principal import ANONYMOUS, Principal
from prefect_assay.lab.webhooks.sender import Sender

KEPT_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of the lab, with a copy of the database in memory; `position` is its latest journal entry."""

    id: str
    name: str | None
    position: int
    seeded: Seeded
    database: sqlite3.Connection = field(repr=False)
    faults: list[list[Any]] = field(repr=False)
    limit: RateLimit | None = field(repr=False)

    def view(self) -> dict[str, Any]:
        """As the control surface shows it."""
        return {"id": self.id, "name": self.name, "journal_position": self.position}


class Snapshots:
    """The snapshots of one lab process, oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, Snapshot] = {}

    def keep(self, snapshot: Snapshot) -> None:
        """Add one; 409 when full."""
        with self._lock:
            if len(self._kept) >= KEPT_MAX:
                snapshot.database.close()
                raise Refusal(409, f"there are {KEPT_MAX} snapshots already; delete some")
            self._kept[snapshot.id] = snapshot

    def all(self) -> list[Snapshot]:
        """All of them, oldest first."""
        with self._lock:
            return list(self._kept.values())

    def find(self, snapshot_id: str) -> Snapshot:
        """The snapshot with this id; 404 for an unknown one."""
        with self._lock:
            found = self._kept.get(snapshot_id)
        if found is None:
            raise Refusal(404, f"no snapshot {snapshot_id!r}")
        return found

    def delete(self, snapshot_id: str) -> None:
        """Forget one. Its copy is freed when no restore reads it any more."""
        self.find(snapshot_id)
        with self._lock:
            self._kept.pop(snapshot_id, None)

    def close(self) -> None:
        """Free all copies."""
        with self._lock:
            for snapshot in self._kept.values():
                snapshot.database.close()
            self._kept.clear()


class LabCore:
    """A lab without a web layer. `seeded` holds the tokens of this start."""

    def __init__(self, settings: LabSettings | None = None) -> None:
        self.lab = Lab(settings or LabSettings())
        self.faults = FaultQueue()
        self.webhook_faults = WebhookFaults()
        self.limiter = Limiter()
        self.journal = Journal()
        self.snapshots = Snapshots()
        self.sender = Sender(self.lab, self.webhook_faults)
        self.clock_driver = ClockDriver(self.lab, self.sender)
        self.seeded = seeding.start(self.lab)
        lists = (self.faults, self.webhook_faults, self.lab.payment_faults)
        self._fault_lists: tuple[FaultList[Any], ...] = lists
        self._gate = Gate()  # reset and restore wait for the requests inside
        self._threads = False

    def start(self) -> None:
        """Start the background threads: running clocks and webhook delivery."""
        self._threads = True
        self.sender.start()
        self.clock_driver.start()

    def close(self) -> None:
        """Stop the threads and close the database."""
        if self._threads:
            self.clock_driver.stop()
            self.sender.stop()
        self.snapshots.close()
        self.lab.store.close()

    def reset(self) -> seeding.Seeded:
        """Empty the lab: data, clocks, faults, rate limit and journals. Snapshots stay."""
        with self._exclusive():
            for faults in self._fault_lists:
                faults.clear()
            self.limiter.set(None)
            self.journal.clear()
            self.seeded = seeding.reset(self.lab)
            self.lab.clock.refresh()
        self.lab.changed()
        return self.seeded

    def snapshot(self, name: str | None = None) -> Snapshot:
        """Keep the lab as it is now. Requests go on meanwhile; each is in it completely or not at all."""
        with self.clock_driver.paused(), self.sender.paused():
            self.lab.clock.checkpoint_all()
            taken = Snapshot(
                id=f"snap_{uuid.uuid4().hex[:12]}",
                name=name,
                position=self.journal.position,
                seeded=self.seeded,
                database=self.lab.store.copy(),
                faults=[faults.save() for faults in self._fault_lists],
                limit=self.limiter.limit,
            )
        self.snapshots.keep(taken)
        return taken

    def restore(self, snapshot_id: str) -> seeding.Seeded:
        """Restore a snapshot: its tokens are valid again, lab time is what it was. 404 for an unknown one."""
        snapshot = self.snapshots.find(snapshot_id)
        with self._exclusive():
            self.lab.store.replace(snapshot.database)
            self.lab.clock.refresh()
            for faults, saved in zip(self._fault_lists, snapshot.faults, strict=True):
                faults.load(saved)
            self.limiter.set(snapshot.limit)
            self.journal.rewind(snapshot.position)
            self.seeded = snapshot.seeded
        self.lab.changed()
        return self.seeded

    def sign_in_link(self, email: str) -> str:
        """The link that signs a user in to the portal; 404 when there is no such user."""
        with self.lab.store.transaction() as db:
            if db.one("SELECT 1 FROM users WHERE email = ?", email.lower()) is None:
                raise Refusal(404, f"no user {email!r}")
        return sessions.sign_in_link(self.lab.settings, email)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold requests, clocks and deliveries. The gate closes last, because receivers call the lab back."""
        with self.clock_driver.paused(), self.sender.paused(), self._gate.closed():
            yield

    def request(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        json_body: Any = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request without HTTP, for unit tests; `path` is relative to /api/v1. Refuses as the service."""
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        sent.setdefault("authorization", f"Bearer {token or self.seeded.member_token}")
        body = b""
        if json_body is not None:
            sent.setdefault("content-type", "application/json")
            body = json.dumps(json_body).encode()
        routes, parameters = find(path)
        if method not in routes:
            raise Refusal(404, "no such path")
        return self.perform(routes[method], path=parameters, query=query or {}, headers=sent, body=body)

    def perform(
        self,
        route: Route,
        *,
        path: Mapping[str, str],
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes,
        wait: bool = True,
    ) -> Answer:
        """Authenticate, check the role, and handle.

        Raises:
            Refusal: as the service.
            BlockingIOError: another thread holds the lab, and `wait` is off (for event loops).
        """
        store = nullcontext() if wait else self.lab.store.held()
        with store, self._gate.inside(wait=wait):
            try:
                who = self._authorized(route, headers)
                return route.handler(Call(self.lab, who, path, query, headers, body))
            finally:
                if route.writes:
                    self.lab.changed()

    def _authorized(self, route: Route, headers: Mapping[str, str]) -> Principal:
        if route.open:
            return ANONYMOUS
        try:
            who = self.lab.tokens.authenticate(headers.get("authorization"))
        except sqlite3.Error as error:
            if HTTPStatus.SERVICE_UNAVAILABLE not in route.refuses:
                raise
            raise database_away() from error  # the token is looked up in what the call asks about
        name_caller(who.org_id, who.token_id)
        self.lab.tokens.authorize(who, route.action, route.resource, destructive=route.destructive)
        return who
