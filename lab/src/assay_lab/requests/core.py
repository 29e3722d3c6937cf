"""The lab's parts, the requests it takes and the answers it gives, without any web framework.

Handlers are plain functions `Call -> Answer` that refuse by raising `Refusal`.
"""

import json
import math
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic_core import from_json

from assay_lab.kernel.clock import Clock
from assay_lab.kernel.faults import FaultList, PaymentFault
from assay_lab.kernel.refusals import Refusal, not_found
from assay_lab.kernel.settings import API_PREFIX, LabSettings
from assay_lab.kernel.store import Db, Row, Store
from assay_lab.measure import LandscapeRules, open_landscape
from assay_lab.tokens.principal import Principal
from assay_lab.tokens.registry import Tokens

_INT64_MAX = 2**63 - 1
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Lab:
    """The parts of one lab, and the signal that wakes its background threads."""

    def __init__(self, settings: LabSettings) -> None:
        self.settings = settings
        self.landscape = open_landscape(settings.landscape) if settings.landscape else None
        self.landscape_rules = LandscapeRules(
            missing=settings.landscape_missing,
            kd_noise=settings.landscape_kd_noise,
            tm_noise=settings.landscape_tm_noise,
            seed=settings.seed,
        )
        self.store = Store(settings.database)
        self.clock = Clock(self.store, settings)
        self.tokens = Tokens(self.store, self.clock, settings.token_prefix)
        self.payment_faults = FaultList[PaymentFault]()
        self._changed = threading.Condition()
        self._changes = 0

    def changed(self) -> None:
        """Wake the background threads: there may be work."""
        with self._changed:
            self._changes += 1
            self._changed.notify_all()

    @property
    def changes(self) -> int:
        """How often something changed; read it before looking for work."""
        return self._changes

    def wait(self, seen: int, seconds: float | None) -> None:
        """Sleep until there was a change after `seen`, or until the time is up."""
        with self._changed:
            self._changed.wait_for(lambda: self._changes != seen, seconds)

    def portal_url(self, kind: str, key: str) -> str:
        """Address of a browser page; its unguessable key is the only protection."""
        return f"{self.settings.base_url}/portal/{kind}/{key}/"

    def api_url(self, path: str) -> str:
        """Absolute address of an API path."""
        return f"{self.settings.base_url}{API_PREFIX}{path}"


@dataclass(frozen=True, slots=True)
class Call:
    """One authenticated request. Header names are lower case and still in wire words."""

    lab: Lab
    who: Principal
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def now(self) -> datetime:
        """Lab time of the caller's organization."""
        return self.lab.clock.now(self.who.org_id)

    def service_header(self, suffix: str) -> str | None:
        """A header whose name begins with the service's (contract 1), such as `Payment-Method`."""
        return self.headers.get(self.lab.settings.words.header(suffix).lower())

    def json(self) -> Any:
        """The JSON body; 415 without one, 400 when it is malformed (contract 7)."""
        media_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json" or not self.body.strip():
            raise Refusal(415, "a JSON body sent as application/json is required")
        try:
            # The first reading refuses deep nesting, NaN and bad text; the second, fields given twice and 1e400.
            from_json(self.body, allow_inf_nan=False)
            return json.loads(self.body, object_pairs_hook=_refuse_repeated, parse_float=_refuse_infinite)
        except ValueError as error:
            raise Refusal(400, f"malformed JSON body: {error}") from error


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers and body: bytes for a file, None without a body, else JSON in neutral words."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"field given twice: {', '.join(twice)}")
    return fields


def _refuse_infinite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large")
    return number


def uuid_or_none(text: str) -> str | None:
    """The canonical form of a UUID written with hyphens; None for other text."""
    return text.lower() if _UUID.fullmatch(text) else None


def read_integer(text: str, name: str, *, low: int, high: int = _INT64_MAX) -> int:
    """A whole number from a query string; 400 for other text or out of range."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    if number is None or not low <= number <= high:
        raise Refusal(400, f"{name} must be a whole number from {low} to {high}, not {text!r}")
    return number


def require_owned(db: Db, call: Call, table: str, key: str | None, what: str, *, by: str = "id") -> Row:
    """The caller's organization's row with this key; the 404 does not reveal what exists elsewhere."""
    sql = f"SELECT * FROM {table} WHERE {by} = ? AND org_id = ?"  # noqa: S608 - own names
    row = db.one(sql, key, call.who.org_id)
    if row is None:
        raise not_found(what)
    return row


def experiment_of(db: Db, call: Call) -> Row:
    """The caller's organization's experiment that the path names."""
    return require_owned(db, call, "experiments", uuid_or_none(call.path["experiment_id"]), "experiment")
