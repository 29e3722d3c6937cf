"""Moves the lab's clocks: carries out what falls due, in order, and delivers webhooks in between.

In one transaction the clock moves to the due time, the effect happens and the row goes. A crash in between leaves
all of it or none of it. Steps that nobody is told of share a transaction.
"""

import contextlib
import threading
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Final

from prefect_assay.lab.kernel import schedule, times
from prefect_assay.lab.kernel.keyed_locks import Turns
from prefect_assay.lab.kernel.keyed_workers import Crew
from prefect_assay.lab.kernel.refusals import Refusal
from prefect_assay.lab.kernel.store import Row
from prefect_assay.lab.laboratory import machine, milestones
from prefect_assay.lab.requests.core import Lab
from prefect_assay.lab.webhooks import outbox
from prefect_assay.lab.webhooks.sender import Courier

STEPS_MAX: Final = 1_000_000
_STEPS_AT_ONCE: Final = 500  # requests wait in between
_AHEAD: Final = 4  # reads so many times what could be done together last
_IDLE_SECONDS: Final = 5.0
_BUSY_SECONDS: Final = 0.01


class Timekeeper:
    """Advances clocks on request, and runs the `scaled` and `auto` ones in background threads."""

    def __init__(self, lab: Lab, courier: Courier) -> None:
        self._lab = lab
        self._courier = courier
        self._moving = Turns()
        self._crew = Crew("lab-clock", self._tend)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="lab-timekeeper", daemon=True)

    def start(self) -> None:
        """Start the background thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the background thread."""
        self._stopping = True
        self._courier.halt()
        self._lab.changed()
        self._thread.join(timeout=5)
        self._crew.join(5)

    def held(self) -> AbstractContextManager[None]:
        """While it is open, no clock moves."""
        return self._moving.held()

    def advance(self, org_id: str, until: datetime) -> int:
        """Move the clock to a moment; when everything due is done and delivered, return the number of events.

        A moment in the past is refused with 400.
        """
        with self._moving.turn(org_id):
            if until < self._lab.clock.now(org_id):
                raise Refusal(400, "the clock moves forward only")
            if until >= _FAR:
                raise Refusal(400, "the lab's calendar ends with the year 8999")
            self._courier.deliver(org_id)
            steps = self._go(org_id, until, passive=True)
            if not self._stopping:  # else the lab goes on from here when it starts again
                self._set(org_id, until)
            self._courier.deliver(org_id, wait=True)
            self._lab.changed()
        return steps

    def to_next(self, org_id: str) -> int:
        """Move to the next thing the lab does, and do all that is due there."""
        with self._moving.turn(org_id), self._lab.store.transaction() as db:
            item = schedule.following(db, org_id, passive=False)
        return self.advance(org_id, self._moment(org_id, item)) if item else 0

    def until_idle(self, org_id: str) -> int:
        """Move on until the lab has nothing more to do; what waits for the customer stays waiting."""
        steps = 0
        while steps <= STEPS_MAX:
            taken = self.to_next(org_id)
            again_at = self._courier.waits_until(org_id)
            if again_at:  # a retry is the lab's to make, and what it is told may set the customer going
                taken += self.advance(org_id, again_at)
            elif not taken:
                return steps
            steps += taken
        raise Refusal(409, "the lab does not come to rest")

    def _moment(self, org_id: str, item: Row) -> datetime:
        return max(times.read(item["due_at"]), self._lab.clock.now(org_id))

    def _set(self, org_id: str, moment: datetime) -> None:
        with self._lab.store.transaction() as db:
            self._lab.clock.set(db, org_id, moment)

    def _go(self, org_id: str, until: datetime, *, passive: bool) -> int:
        """Do and deliver what falls due until then, each at its own lab time; the number of events."""
        steps = 0
        while not self._stopping:
            again_at = self._courier.waits_until(org_id)
            halt = min(until, again_at) if again_at else until
            if taken := self._steps(org_id, halt, passive=passive):
                steps += taken
            elif again_at and again_at <= until:
                self._set(org_id, again_at)
                self._courier.deliver(org_id)
            else:
                break
        return steps

    def _steps(self, org_id: str, until: datetime, *, passive: bool) -> int:
        """The next due things until then, up to the first that somebody is told of; how many."""
        try:
            return self._together(org_id, until, _STEPS_AT_ONCE, passive=passive)
        except Exception:  # noqa: BLE001 - the step that fails raises again, alone
            # Nothing of it has happened; what comes before the step that fails happens all the same.
            return self._together(org_id, until, 1, passive=passive)

    def _together(self, org_id: str, until: datetime, limit: int, *, passive: bool) -> int:
        with self._lab.store.transaction() as db:
            now, taken = self._lab.clock.now(org_id), 0
            # What still has to be delivered goes out before the next step, so that each is told of in time.
            limit = limit if outbox.empty(db, org_id) else 1
            ahead = 1
            while taken < limit:
                items = schedule.coming(
                    db, org_id, until, min(ahead, limit - taken), passive=passive, together=milestones.KINDS
                )
                if not items:
                    break
                done, now = machine.apply_all(self._lab, db, org_id, items, now)
                taken, ahead = taken + done, _AHEAD * done
                if not outbox.empty(db, org_id):
                    break
            runs_by_itself = self._lab.clock.row(org_id)["mode"] == "scaled"
            if taken and not runs_by_itself:
                self._lab.clock.set(db, org_id, now)
        if not taken:
            return 0  # telling of nothing would wake this clock's own thread, again and again
        if runs_by_itself:
            self._lab.changed()  # the courier's own thread delivers; a slow receiver must not stop the clock
        else:
            # A receiver sees the experiment as it was when the update was written, not at the end.
            self._courier.deliver(org_id)
        return taken

    def _run(self) -> None:
        while not self._stopping:
            seen = self._lab.changes
            pauses = [_IDLE_SECONDS]
            for org_id in self._organizations():
                self._crew.call(org_id)  # a thread each: an advance of one must not stop the others' clocks
                with contextlib.suppress(Refusal):  # a restore has taken the organisation away
                    pauses.append(self._pause(org_id))
            self._lab.wait(seen, min(pauses))

    def _organizations(self) -> list[str]:
        with self._lab.store.transaction() as db:
            return [row["id"] for row in db.all("SELECT id FROM clocks WHERE mode <> 'manual'")]

    def _pause(self, org_id: str) -> float:
        """Real seconds until a running clock has something due."""
        if self._lab.clock.row(org_id)["mode"] != "scaled":
            return _IDLE_SECONDS
        with self._lab.store.transaction() as db:
            item = schedule.following(db, org_id, passive=True)
        if item is None:
            return _IDLE_SECONDS
        return max(_BUSY_SECONDS, self._lab.clock.real_seconds_until(org_id, times.read(item["due_at"])))

    def _tend(self, org_id: str) -> None:
        """Do what a running clock has due."""
        with self._moving.turn(org_id):
            mode = self._lab.clock.row(org_id)["mode"]
            if mode == "auto":
                # Jumps to whatever comes next, but never expires a quote: that would end every wait for a person.
                self._go(org_id, _FAR, passive=False)
                self._courier.deliver(org_id, wait=True)
            elif mode == "scaled":
                while not self._stopping and self._steps(org_id, self._lab.clock.now(org_id), passive=True):
                    pass
                self._lab.clock.checkpoint(org_id)


_FAR: Final = times.parse("9000-01-01")
