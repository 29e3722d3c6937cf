"""Moves the lab's clocks: carries out what falls due, in order, and delivers webhooks in between.

One transaction moves the clock, carries out the effect and removes the row.
"""

import contextlib
import threading
from datetime import UTC, datetime
from typing import Final

from assay_lab.experiments import state_machine
from assay_lab.kernel import schedule, times
from assay_lab.kernel.concurrency import KeyedLocks, KeyedWorkers
from assay_lab.kernel.refusals import Refusal
from assay_lab.requests.core import Lab
from assay_lab.webhooks.sender import Sender

_FAR: Final = datetime(9000, 1, 1, tzinfo=UTC)
STEPS_MAX: Final = 1_000_000
_IDLE_SECONDS: Final = 5.0
_BUSY_SECONDS: Final = 0.01


class ClockDriver:
    """Advances clocks on request, and runs the `scaled` and `auto` ones in background threads."""

    def __init__(self, lab: Lab, sender: Sender) -> None:
        self._lab = lab
        self._sender = sender
        self._moving = KeyedLocks()
        self._workers = KeyedWorkers("lab-clock", self._tend)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="lab-clock-driver", daemon=True)

    def start(self) -> None:
        """Start the background thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the background thread."""
        self._stopping = True
        self._sender.halt()
        self._lab.changed()
        self._thread.join(timeout=5)
        self._workers.join(5)

    def advance(self, org_id: str, until: datetime) -> int:
        """Move the clock forward with everything due done and delivered; the number of events."""
        with self._moving.lock(org_id):
            if until < self._lab.clock.now(org_id):
                raise Refusal(400, "the clock moves forward only")
            if until >= _FAR:
                raise Refusal(400, "the lab's calendar ends with the year 8999")
            self._sender.deliver(org_id)
            steps = self._go(org_id, until, passive=True)
            if not self._stopping:  # else the lab continues from here after its restart
                self._set(org_id, until)
            self._sender.deliver(org_id, wait=True)
            self._lab.changed()
        return steps

    def to_next(self, org_id: str) -> int:
        """Move to the next active row of the due-queue, and carry out all that is due then; the number of events."""
        with self._moving.lock(org_id), self._lab.store.transaction() as db:
            item = schedule.find_following(db, org_id, passive=False)
        if item is None:
            return 0
        return self.advance(org_id, max(times.read(item["due_at"]), self._lab.clock.now(org_id)))

    def until_idle(self, org_id: str) -> int:
        """Advance until the due-queue is empty; what waits for the customer stays waiting."""
        steps = 0
        while steps <= STEPS_MAX:
            taken = self.to_next(org_id)
            again_at = self._sender.waits_until(org_id)
            if again_at:  # a retry, on which the customer may act
                taken += self.advance(org_id, again_at)
            elif not taken:
                return steps
            steps += taken
        raise Refusal(409, "the lab does not come to rest")

    def _set(self, org_id: str, moment: datetime) -> None:
        with self._lab.store.transaction() as db:
            self._lab.clock.set(db, org_id, moment)

    def _go(self, org_id: str, until: datetime, *, passive: bool) -> int:
        """Carry out and deliver what falls due until then, each at its own lab time; the number of events."""
        steps = 0
        while not self._stopping:
            again_at = self._sender.waits_until(org_id)
            halt = min(until, again_at) if again_at else until
            if self._step(org_id, halt, passive=passive):
                steps += 1
            elif again_at and again_at <= until:
                self._set(org_id, again_at)
                self._sender.deliver(org_id)
            else:
                break
        return steps

    def _step(self, org_id: str, until: datetime, *, passive: bool) -> bool:
        """Carry out the next step that is due until then; whether there was one."""
        with self._lab.store.transaction() as db:
            item = schedule.find_following(db, org_id, until, passive=passive)
            if item is None:
                return False  # signalling no change would wake this clock's own thread, again and again
            now = max(self._lab.clock.now(org_id), times.read(item["due_at"]))
            state_machine.apply_due(self._lab, db, item, now)
            running = self._lab.clock.row(org_id)["mode"] == "scaled"
            if not running:
                self._lab.clock.set(db, org_id, now)
        if running:
            self._lab.changed()  # the sender's own thread delivers; a slow receiver must not stop the clock
        else:
            # A receiver sees the experiment as it was when the update was written, not at the end.
            self._sender.deliver(org_id)
        return True

    def _run(self) -> None:
        while not self._stopping:
            seen = self._lab.changes
            pauses = [_IDLE_SECONDS]
            for org_id in self._organizations():
                self._workers.call(org_id)  # a thread each: an advance of one must not stop the other clocks
                with contextlib.suppress(Refusal):  # a reset has taken the organization away
                    pauses.append(self._pause(org_id))
            self._lab.wait(seen, min(pauses))

    def _organizations(self) -> list[str]:
        with self._lab.store.transaction() as db:
            return db.column("SELECT id FROM clocks WHERE mode <> 'manual'")

    def _pause(self, org_id: str) -> float:
        if self._lab.clock.row(org_id)["mode"] != "scaled":
            return _IDLE_SECONDS
        with self._lab.store.transaction() as db:
            item = schedule.find_following(db, org_id, passive=True)
        if item is None:
            return _IDLE_SECONDS
        return max(_BUSY_SECONDS, self._lab.clock.real_seconds_until(org_id, times.read(item["due_at"])))

    def _tend(self, org_id: str) -> None:
        with self._moving.lock(org_id):
            mode = self._lab.clock.row(org_id)["mode"]
            if mode == "auto":
                # Jumps to the next active row; expiring quotes would end every wait for a person.
                self._go(org_id, _FAR, passive=False)
                self._sender.deliver(org_id, wait=True)
            elif mode == "scaled":
                while not self._stopping and self._step(org_id, self._lab.clock.now(org_id), passive=True):
                    pass
                self._lab.clock.checkpoint(org_id)
