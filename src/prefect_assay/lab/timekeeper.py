"""Moves the lab's clocks: carries out what falls due, in order, and delivers webhooks in between.

One step is one transaction: the clock moves to the due time, the effect happens and the row goes. A crash in
between leaves all of it or none of it.
"""

import threading
from datetime import datetime
from typing import Final

from prefect_assay.lab import machine, schedule, times
from prefect_assay.lab.core import Lab
from prefect_assay.lab.courier import Courier
from prefect_assay.lab.refusals import Refusal
from prefect_assay.lab.store import Row

STEPS_MAX: Final = 1_000_000
_IDLE_SECONDS: Final = 5.0


class Timekeeper:
    """Advances clocks on request, and runs the `scaled` and `auto` ones in a background thread."""

    def __init__(self, lab: Lab, courier: Courier) -> None:
        self._lab = lab
        self._courier = courier
        self._moving = threading.RLock()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="lab-timekeeper", daemon=True)

    def start(self) -> None:
        """Start the background thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the background thread."""
        self._stopping = True
        self._lab.changed()
        self._thread.join(timeout=5)

    def advance(self, org_id: str, until: datetime) -> int:
        """Move the clock to a moment; returns when everything due is done and delivered.

        Returns:
            How many things happened.

        Raises:
            Refusal: 400 when the moment lies in the past.
        """
        with self._moving:
            if until < self._lab.clock.now(org_id):
                raise Refusal(400, "the clock moves forward only")
            steps = 0
            while self._step(org_id, until, passive=True):
                steps += 1
            self._set(org_id, until)
            self._courier.settle(org_id)
        return steps

    def to_next(self, org_id: str) -> int:
        """Move to the next thing the lab does, and do all that is due there."""
        with self._moving, self._lab.store.transaction() as db:
            item = schedule.following(db, org_id, passive=False)
        return self.advance(org_id, self._moment(org_id, item)) if item else 0

    def until_idle(self, org_id: str) -> int:
        """Move on until the lab has nothing more to do; what waits for the customer stays waiting."""
        steps = 0
        while taken := self.to_next(org_id):
            steps += taken
            if steps > STEPS_MAX:
                raise Refusal(409, "the lab does not come to rest")
        return steps

    def _moment(self, org_id: str, item: Row) -> datetime:
        return max(times.read(item["due_at"]), self._lab.clock.now(org_id))

    def _set(self, org_id: str, moment: datetime) -> None:
        with self._lab.store.transaction() as db:
            self._lab.clock.set(db, org_id, moment)
        self._lab.changed()

    def _step(self, org_id: str, until: datetime, *, passive: bool) -> bool:
        """One due thing, if there is one until then."""
        with self._lab.store.transaction() as db:
            item = schedule.following(db, org_id, passive=passive)
            if item is None or times.read(item["due_at"]) > until:
                return False
            at = self._moment(org_id, item)
            runs_by_itself = self._lab.clock.row(org_id)["mode"] == "scaled"
            if not runs_by_itself:
                self._lab.clock.set(db, org_id, at)
            machine.apply(self._lab, db, item, at)
        if runs_by_itself:
            self._lab.changed()  # the courier's own thread delivers; a slow receiver must not stop the clock
        else:
            # A receiver sees the experiment as it was when the update was written, not at the end.
            self._courier.deliver(org_id)
        return True

    def _run(self) -> None:
        while not self._stopping:
            seen = self._lab.changes
            with self._moving:
                pauses = [self._tend(org_id) for org_id in self._organizations()]
            self._lab.wait(seen, min([_IDLE_SECONDS, *pauses]))

    def _organizations(self) -> list[str]:
        with self._lab.store.transaction() as db:
            return [row["id"] for row in db.all("SELECT id FROM clocks WHERE mode <> 'manual'")]

    def _tend(self, org_id: str) -> float:
        """Do what a running clock has due; real seconds until there is more."""
        row = self._lab.clock.row(org_id)
        if row["mode"] == "auto":
            # Jumps to whatever comes next, but never expires a quote: that would end every wait for a person.
            while not self._stopping and self._step(org_id, _FAR, passive=False):
                pass
            self._courier.settle(org_id)
            return _IDLE_SECONDS
        while not self._stopping and self._step(org_id, self._lab.clock.now(org_id), passive=True):
            pass
        self._lab.clock.checkpoint(org_id)
        with self._lab.store.transaction() as db:
            item = schedule.following(db, org_id, passive=True)
        return (
            self._lab.clock.real_seconds_until(org_id, times.read(item["due_at"])) if item else _IDLE_SECONDS
        )


_FAR: Final = times.parse("9000-01-01")
