"""Delivers webhooks from the durable outbox (contract 6): signed, retried, and journalled.

Delivery happens outside every transaction, because receivers call the lab back before they answer. A row leaves
the outbox when it is acknowledged, refused for good, or out of retries.
"""

import hashlib
import hmac
import json
import threading
import time
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import httpx

from prefect_assay.lab import times
from prefect_assay.lab.core import Lab
from prefect_assay.lab.faults import WebhookFaults
from prefect_assay.lab.store import Db, Row
from prefect_assay.models.vocabulary import WEBHOOK_RETRIES_MAX

API_VERSION: Final = "2025-01"
EVENT: Final = "experiment_update"
TIMEOUT_SECONDS: Final = 5.0
BACKOFF_SECONDS: Final = 30.0  # doubles; on the lab's clock unless the settings say otherwise
REAL_BACKOFF_SECONDS: Final = 0.5
_POLL_SECONDS: Final = 0.5
_SERVER_ERROR: Final = 500
_OK: Final = range(200, 300)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One POST, ready to be sent."""

    delivery_id: str
    url: str
    body: bytes
    signature: str
    fault: str | None


def sign(body: bytes, secret: str) -> str:
    """`sha256=<hex>`, HMAC-SHA256 of the raw body."""
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


class Courier:
    """Sends what is due, in order, one at a time."""

    def __init__(self, lab: Lab, faults: WebhookFaults) -> None:
        self._lab = lab
        self._faults = faults
        self._sending = threading.RLock()
        self._stopping = False
        # trust_env: a proxy setting must not carry loopback deliveries away.
        self._http = httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False, follow_redirects=False)
        self._thread = threading.Thread(target=self._run, name="lab-courier", daemon=True)

    def start(self) -> None:
        """Start the background thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the background thread."""
        self._stopping = True
        self._lab.changed()
        self._thread.join(timeout=5)
        self._http.close()

    def _run(self) -> None:
        while not self._stopping:
            seen = self._lab.changes
            for org_id in self._waiting():
                self.deliver(org_id)
            self._lab.wait(seen, _POLL_SECONDS if self._waiting() else None)

    def _waiting(self) -> list[str]:
        with self._lab.store.transaction() as db:
            return [row["org_id"] for row in db.all("SELECT DISTINCT org_id FROM outbox")]

    def deliver(self, org_id: str) -> None:
        """Send everything due now, and return when it is done."""
        with self._sending:
            while not self._stopping and (row := self._due(org_id)):
                self._send(row)

    def settle(self, org_id: str) -> None:
        """Send everything including retries, as if their back-off had passed (the end of an advance)."""
        with self._sending:
            while not self._stopping and (row := self._first(org_id)):
                pause = row["due_real"] - time.time()
                if self._lab.settings.retry_on_real_clock and pause > 0:
                    time.sleep(pause)
                self._send(row)

    def _first(self, org_id: str) -> Row | None:
        with self._lab.store.transaction() as db:
            return db.one("SELECT * FROM outbox WHERE org_id = ? ORDER BY due_at, id LIMIT 1", org_id)

    def _due(self, org_id: str) -> Row | None:
        with self._lab.store.transaction() as db:
            return db.one(
                "SELECT * FROM outbox WHERE org_id = ? AND due_at <= ? AND due_real <= ?"
                " ORDER BY due_at, id LIMIT 1",
                org_id,
                self._lab.clock.now(org_id),
                time.time(),
            )

    def _send(self, row: Row) -> None:
        with self._lab.store.transaction() as db:
            attempt = self._prepare(db, row)
            if attempt is None:
                db.run("DELETE FROM outbox WHERE id = ?", row["id"])
                return
        status, error = None, None
        if attempt.fault != "drop":
            status, error = self._post(attempt)
        if attempt.fault == "double":
            status, error = self._post(attempt)
        self._settle_attempt(row, attempt, status, error)

    def _prepare(self, db: Db, row: Row) -> Attempt | None:
        """The signed body for this attempt; the URL is read now, because it can change at any time."""
        experiment = db.one("SELECT * FROM experiments WHERE id = ?", row["experiment_id"])
        update = db.one("SELECT * FROM updates WHERE id = ?", row["update_id"])
        if experiment is None or update is None or not experiment["webhook_url"]:
            return None
        now = self._lab.clock.now(row["org_id"])
        delivery_id = str(uuid.uuid4())
        content = json.dumps(body(experiment, update, delivery_id, now)).encode()
        fault = self._faults.take()
        secret = self._secret(db, experiment)
        signature = sign(content, f"not {secret}" if fault == "bad_signature" else secret)
        return Attempt(delivery_id, experiment["webhook_url"], content, signature, fault)

    def _secret(self, db: Db, experiment: Row) -> str:
        """The experiment's, else the organisation's, else the deployment's (contract 6, rule 2)."""
        org = db.one("SELECT webhook_secret FROM organizations WHERE id = ?", experiment["org_id"])
        own = experiment["webhook_secret"] or (org or {}).get("webhook_secret")
        return str(own or self._lab.settings.deployment_secret)

    def _post(self, attempt: Attempt) -> tuple[int | None, str | None]:
        header = self._lab.settings.words.header
        headers = {
            "Content-Type": "application/json",
            header("Event"): EVENT,
            header("Delivery-Id"): attempt.delivery_id,
            header("Signature"): attempt.signature,
        }
        try:
            answer = self._http.post(attempt.url, content=attempt.body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return None, type(error).__name__
        return answer.status_code, None

    def _settle_attempt(self, row: Row, attempt: Attempt, status: int | None, error: str | None) -> None:
        attempts = row["attempts"] + 1
        failed_for_now = attempt.fault != "drop" and (status is None or status >= _SERVER_ERROR)
        again = failed_for_now and attempts <= WEBHOOK_RETRIES_MAX
        outcome = "retry" if again else "dropped" if attempt.fault == "drop" else "failed"
        if status in _OK:
            outcome = "delivered"
        with self._lab.store.transaction() as db:
            self._journal(db, row, attempt, status=status, error=error, outcome=outcome)
            if again:
                self._postpone(db, row, attempts)
            else:
                db.run("DELETE FROM outbox WHERE id = ?", row["id"])

    def _postpone(self, db: Db, row: Row, attempts: int) -> None:
        factor = 2.0 ** (attempts - 1)
        if self._lab.settings.retry_on_real_clock:
            changes: dict[str, Any] = {"due_real": time.time() + factor * REAL_BACKOFF_SECONDS}
        else:
            now = self._lab.clock.now(row["org_id"])
            changes = {"due_at": times.later(now, seconds=factor * BACKOFF_SECONDS)}
        db.update("outbox", row["id"], attempts=attempts, **changes)

    def _journal(
        self, db: Db, row: Row, attempt: Attempt, *, status: int | None, error: str | None, outcome: str
    ) -> None:
        db.insert(
            "deliveries",
            {
                "delivery_id": attempt.delivery_id,
                "org_id": row["org_id"],
                "experiment_id": row["experiment_id"],
                "update_id": row["update_id"],
                "url": attempt.url,
                "attempt": row["attempts"] + 1,
                "sent_at": self._lab.clock.now(row["org_id"]),
                "fault": attempt.fault,
                "status": status,
                "error": error,
                "outcome": outcome,
            },
        )


def body(experiment: Row, update: Row, delivery_id: str, now: datetime) -> dict[str, Any]:
    """The delivery's body (contract 6)."""
    return {
        "delivery_id": delivery_id,
        "event": EVENT,
        "timestamp": times.stamp(now),
        "api_version": API_VERSION,
        "data": {
            "type": "experiment.update",
            "experiment_id": experiment["id"],
            "experiment_code": experiment["code"],
            "organization_id": experiment["org_id"],
            "update_id": update["id"],
            "name": update["name"],
            "description": update["description"],
            "update_type": update["type"],
            "eta": experiment["eta"],
            "created_at": update["created_at"],
        },
    }
