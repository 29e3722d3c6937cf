"""The lab's virtual clock, one per organization; `clock_driver` moves it. It never goes back."""

import time
from datetime import UTC, datetime, timedelta

from assay_lab.kernel import times
from assay_lab.kernel.refusals import Refusal
from assay_lab.kernel.settings import SECONDS_PER_DAY_MIN, ClockMode, LabSettings
from assay_lab.kernel.store import Db, Row, Store


class Clock:
    """Lab time. In `scaled` mode it runs; otherwise it stays where it is until it is moved."""

    def __init__(self, store: Store, settings: LabSettings) -> None:
        self._store = store
        self._settings = settings
        # Real anchor of a running clock, per organization. Not stored: lab time stops while no lab runs.
        self._anchors: dict[str, float] = {}
        self._begin = time.monotonic()

    def create(self, db: Db, org_id: str) -> None:
        """Create the clock of a new organization."""
        self._anchors[org_id] = time.monotonic()
        db.insert(
            "clocks",
            {
                "id": org_id,
                "mode": self._settings.clock_mode,
                "seconds_per_day": self._settings.seconds_per_day,
                "now": self._settings.epoch or datetime.now(UTC),
            },
        )

    def row(self, org_id: str) -> Row:
        """Mode, rate and the stored time."""
        with self._store.transaction() as db:
            row = db.get("clocks", org_id)
        if row is None:
            raise Refusal(404, f"no clock for organization {org_id!r}")
        return row

    def now(self, org_id: str) -> datetime:
        """The organization's lab time."""
        row = self.row(org_id)
        now = times.read(row["now"])
        if row["mode"] != "scaled":
            return now
        anchor = self._anchors.setdefault(org_id, self._begin)
        return now + timedelta(days=(time.monotonic() - anchor) / row["seconds_per_day"])

    def set(self, db: Db, org_id: str, moment: datetime) -> None:
        """Move forward; a moment in the past leaves the clock as it is."""
        moment = max(moment, self.now(org_id))
        self._anchors[org_id] = time.monotonic()
        db.update("clocks", org_id, now=moment)

    def checkpoint(self, org_id: str) -> None:
        """Store a running clock's time, so that it does not fall back when the lab ends."""
        with self._store.transaction() as db:
            self.set(db, org_id, self.now(org_id))

    def change_mode(self, org_id: str, mode: ClockMode, seconds_per_day: float | None) -> None:
        """Switch the mode; lab time continues from where it is."""
        if seconds_per_day is not None and seconds_per_day < SECONDS_PER_DAY_MIN:
            raise Refusal(400, f"seconds_per_day must be at least {SECONDS_PER_DAY_MIN}")
        with self._store.transaction() as db:
            row = self.row(org_id)
            self.set(db, org_id, self.now(org_id))
            rate = seconds_per_day or row["seconds_per_day"]
            db.update("clocks", org_id, mode=mode, seconds_per_day=rate)

    def real_seconds_until(self, org_id: str, moment: datetime) -> float:
        """How long a scaled clock takes to reach a moment, in real seconds."""
        rate = float(self.row(org_id)["seconds_per_day"])
        return max(0.0, (moment - self.now(org_id)) / timedelta(days=1) * rate)
