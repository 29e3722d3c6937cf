"""Delivers webhooks from the durable outbox (contract 6): signed, retried, and journalled.

Delivery happens outside every transaction, because receivers call the lab back before they answer. An attempt is
recorded after it was sent: a lab that crashes in between sends it again. Every organization has its own
thread, so that a slow or missing receiver delays no other.
"""

import threading
import time
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final

import httpx

from assay_lab.kernel.concurrency import KeyedLocks, KeyedWorkers
from assay_lab.kernel.faults import HOLDING, FaultList, WebhookFault
from assay_lab.kernel.store import Db, Row
from assay_lab.requests.core import Lab
from assay_lab.vocabulary import WEBHOOK_RETRIES_MAX
from assay_lab.webhooks import delivery, outbox
from assay_lab.webhooks.delivery import Attempt

BACKOFF_SECONDS: Final = 30.0  # doubles; on the lab's clock unless the settings say otherwise
REAL_BACKOFF_SECONDS: Final = 0.5
_POLL_SECONDS: Final = 0.5
_OK: Final = range(HTTPStatus.OK, HTTPStatus.MULTIPLE_CHOICES)


class Sender:
    """Sends what is due, per organization one at a time, and per experiment and destination in order."""

    def __init__(self, lab: Lab, faults: FaultList[WebhookFault]) -> None:
        self._lab = lab
        self._faults = faults
        self._sending = KeyedLocks()
        self._stopping = False
        self._timeout = lab.settings.webhook_timeout_seconds
        # trust_env: a proxy setting must not carry loopback deliveries away.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
        self._http = httpx.Client(
            timeout=self._timeout, limits=limits, trust_env=False, follow_redirects=False
        )
        self._workers = KeyedWorkers("lab-sender", self.deliver)
        self._thread = threading.Thread(target=self._run, name="lab-senders", daemon=True)

    def start(self) -> None:
        """Start the background threads."""
        self._thread.start()

    def halt(self) -> None:
        """Begin nothing more; what is queued stays queued."""
        self._stopping = True

    def stop(self) -> None:
        """End the background threads."""
        self.halt()
        self._lab.changed()
        self._thread.join(timeout=5)
        self._workers.join(self._timeout + 1)
        self._http.close()

    def _run(self) -> None:
        while not self._stopping:
            seen = self._lab.changes
            with self._lab.store.transaction() as db:
                waiting = outbox.list_organizations(db)
                ready = [
                    org_id for org_id in waiting if outbox.find_due(db, org_id, self._lab.clock.now(org_id))
                ]
            for org_id in ready:
                self._workers.call(org_id)
            self._lab.wait(seen, _POLL_SECONDS if waiting else None)

    def deliver(self, org_id: str, *, wait: bool = False) -> None:
        """Send everything due now; with `wait`, sit out back-offs on the real clock."""
        while not self._stopping and self._send_one(org_id, wait=wait):
            pass

    def waits_until(self, org_id: str) -> datetime | None:
        """The lab time of the next delivery that is not due yet: a retry, or a delayed one."""
        with self._lab.store.transaction() as db:
            return outbox.next_at(db, org_id, self._lab.clock.now(org_id))

    def _send_one(self, org_id: str, *, wait: bool) -> bool:
        with self._sending.lock(org_id):
            with self._lab.store.transaction() as db:
                row = outbox.find_due(db, org_id, self._lab.clock.now(org_id), wait=wait)
            if row is None:
                return False
            time.sleep(max(0.0, row["due_real"] - time.time()))
            self._send(row)
            return True

    def _send(self, row: Row) -> None:
        with self._lab.store.transaction() as db:
            attempt = delivery.prepare_attempt(self._lab, db, row, self._faults)
            if attempt is None:
                outbox.remove_delivery(db, row)
                return
            if attempt.action in HOLDING:
                self._hold(db, row, attempt)
                return
        status, error = None, None
        if attempt.action != "drop":
            status, error = delivery.post_attempt(self._http, attempt, self._timeout)
        if attempt.action == "double":
            status, error = delivery.post_attempt(self._http, attempt, self._timeout)
        self._record(row, attempt, status, error)

    def _hold(self, db: Db, row: Row, attempt: Attempt) -> None:
        seconds = attempt.fault.seconds if attempt.fault else None
        if attempt.action == "reorder":
            outbox.hold_delivery(db, row, "next", None)
        elif seconds is None:
            outbox.hold_delivery(db, row, "release", None)
        else:
            now = self._lab.clock.now(row["org_id"])
            outbox.hold_delivery(db, row, "time", now + timedelta(seconds=seconds))
        self._journal(db, row, attempt, status=None, error=None, outcome="held")

    def _record(self, row: Row, attempt: Attempt, status: int | None, error: str | None) -> None:
        """Journal a sent attempt; queue its retry, or remove the row."""
        attempts = row["attempts"] + 1
        dropped = attempt.action == "drop"
        failed_for_now = not dropped and (status is None or status >= HTTPStatus.INTERNAL_SERVER_ERROR)
        again = failed_for_now and attempts <= WEBHOOK_RETRIES_MAX
        outcome = "retry" if again else "dropped" if dropped else "failed"
        if status in _OK:
            outcome = "delivered"
        with self._lab.store.transaction() as db:
            self._journal(db, row, attempt, status=status, error=error, outcome=outcome)
            if again:
                self._postpone(db, row, attempts)
            else:
                outbox.remove_delivery(db, row)

    def _postpone(self, db: Db, row: Row, attempts: int) -> None:
        factor = 2.0 ** (attempts - 1)
        if self._lab.settings.retry_on_real_clock:
            changes: dict[str, Any] = {"due_real": time.time() + factor * REAL_BACKOFF_SECONDS}
        else:
            now = self._lab.clock.now(row["org_id"])
            changes = {"due_at": now + timedelta(seconds=factor * BACKOFF_SECONDS)}
        db.update("outbox", row["id"], attempts=attempts, **changes)

    def _journal(
        self, db: Db, row: Row, attempt: Attempt, *, status: int | None, error: str | None, outcome: str
    ) -> None:
        queued = ("org_id", "experiment_id", "update_id", "webhook_id")
        db.insert(
            "deliveries",
            {
                **{name: row[name] for name in queued},
                "delivery_id": attempt.delivery_id,
                "url": attempt.url,
                "attempt": row["attempts"] + 1,
                "sent_at": self._lab.clock.now(row["org_id"]),
                "fault": attempt.action,
                "headers": attempt.masked_headers,
                "body": attempt.body.decode(),
                "signed_with": attempt.signed_with,
                "status": status,
                "error": error,
                "outcome": outcome,
            },
        )
