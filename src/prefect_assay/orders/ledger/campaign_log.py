"""The log of one campaign or loop: who started it under which terms, its runs, questions, answers, and its end.

Layout: `<prefix>/LEDGERS/CAMPAIGNS/<campaign>/000001.json`, `<prefix>/LEDGERS/LOOPS/<loop>/000001.json`, and one small object
for each that is open, `<prefix>/LEDGERS/OPEN/<kind>-<id>.json`. The log is written with conditional writes, like that of an
order. `status`, `cancel`, jobs and the sweep read it; a flow run is never asked for the truth.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, TypeVar, assert_never

from pydantic import AwareDatetime, Field, TypeAdapter

from prefect_assay.archive.layout import (
    CAMPAIGN_LOGS_FOLDER,
    LEDGERS_FOLDER,
    LOOP_LOGS_FOLDER,
    OPEN_FOLDER,
    safe_name,
    safe_prefix,
)
from prefect_assay.archive.store import Store, join_key
from prefect_assay.errors import ArchiveError, Conflict, InputError
from prefect_assay.orders.ledger.log import Log, Record, last_numbers
from prefect_assay.orders.purchase import PurchaseSummary
from prefect_assay.orders.question import REJECT, UNNAMED, Question
from prefect_assay.service.models.base import StoredModel
from prefect_assay.service.models.billing import usd
from prefect_assay.service.models.vocabulary import PaymentMethod

V = TypeVar("V")

EXPIRED: Final = "expired"  # the decision of a question that nobody has answered in time
CLOSED: Final = "closed"  # that of a question that is no longer true, such as about a quote that has expired


class StartedKind(StrEnum):
    """What was started."""

    CAMPAIGN = "campaign"
    LOOP = "loop"


class Terms(StoredModel):
    """What a campaign was started under. Amounts are US cents without VAT.

    The first group is its identity: another service, organization or archive would hold another, empty ledger. The
    second names the account. A difference in the third group is a question to a person. The caps of the last may only
    fall.
    """

    service: str  # the canonical address
    organisation: str | None
    simulated: bool
    archive_id: str

    # For people only; nothing is decided by it.
    organisation_name: str | None = None
    account_name: str | None = None  # the block AssayAccount
    owner: str | None = None
    purchase_order: str | None = None
    cost_centre: str | None = None

    payment_method: PaymentMethod
    wallet: str | None = None  # what identifies the means of payment; never a secret
    payees: tuple[str, ...] = ()

    per_experiment_cents: int
    per_campaign_cents: int
    rolling_cents: int | None = None
    accept_quotes: bool
    deadline_days: int


class Started(Record):
    """A person or a schedule has started the campaign or the loop, or started it again under the same terms.

    `parameters` are those of its deployment's run, with each block as `{"$block": "type/name"}`. They hold no secret.
    `home` is the Prefect home whose sweep looks after it; None for a run without a deployment.
    """

    kind: Literal["started"] = "started"
    what: StartedKind
    name: str  # the campaign's or the loop's id
    terms: Terms
    deployment: str | None = None  # `flow/deployment`
    home: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    experiments: int | None = None  # planned
    requester: str | None = None
    requester_known_by: str | None = None  # how the name is known
    approved_by: str | None = None  # how the amount was said that may be spent without asking


class Ran(Record):
    """A flow run carries the campaign from now on; `restarted` if the sweep has started it."""

    kind: Literal["ran"] = "ran"
    run: str
    name: str
    restarted: bool = False
    why: str | None = None  # what had become of the earlier run


class ShownExperiment(StoredModel):
    """What an execution has seen of an experiment, for `status` and the timeline; nothing is decided by it."""

    experiment_id: str | None = None
    experiment_code: str | None = None
    stage: str
    status: str | None = None
    results_status: str | None = None
    problem: str | None = None
    expected: AwareDatetime | None = None  # when the laboratory expects results


class Looked(Record):
    """What has changed since the last look, by order key; `read_at` is the service's clock."""

    kind: Literal["looked"] = "looked"
    read_at: AwareDatetime
    experiments: dict[str, ShownExperiment]


class Asked(Record):
    """A question, in its `revision`; without an order it concerns the whole campaign. The other orders advance."""

    kind: Literal["asked"] = "asked"
    question_id: str
    revision: int
    question: Question
    order_key: str | None = None
    asked_at: AwareDatetime  # by the service's clock
    expires_at: AwareDatetime  # likewise


class Answered(Record):
    """A person's answer to exactly this revision, or `expired`."""

    kind: Literal["answered"] = "answered"
    question_id: str
    revision: int
    decision: str
    amount_cents: int | None = None
    answerer: str
    how: str  # the command, the form of the run, the form of `decide`


class Offered(Record):
    """What was about to be bought, as it was shown before anything was ordered."""

    kind: Literal["offered"] = "offered"
    purchase: PurchaseSummary


class Stopped(Record):
    """A person has canceled it. Only a person's `Reopened` opens it again."""

    kind: Literal["stopped"] = "stopped"
    person: str
    how: str


class Settled(Record):
    """What a cancellation left behind has been reported: nothing more can be withdrawn."""

    kind: Literal["settled"] = "settled"


class Reopened(Record):
    """A person has opened a stopped or ended campaign again."""

    kind: Literal["reopened"] = "reopened"
    person: str


class Adopted(Record):
    """Another Prefect home looks after it from now on."""

    kind: Literal["adopted"] = "adopted"
    home: str
    person: str


class Over(Record):
    """All of its orders are over, or it failed for certain before anything was ordered."""

    kind: Literal["over"] = "over"
    words: str
    complete: bool
    report: str | None = None


CampaignRecord = Annotated[
    Started | Ran | Looked | Asked | Answered | Offered | Stopped | Settled | Reopened | Adopted | Over,
    Field(discriminator="kind"),
]
_RECORDS: Final[TypeAdapter[CampaignRecord]] = TypeAdapter(CampaignRecord)


_LOG_FOLDERS: Final = {
    StartedKind.CAMPAIGN: CAMPAIGN_LOGS_FOLDER,
    StartedKind.LOOP: LOOP_LOGS_FOLDER,
}
_BY_NOBODY: Final = frozenset({EXPIRED, CLOSED})
_ENTRY: Final = re.compile(rf"(?P<what>{'|'.join(StartedKind)})-(?P<folder>[^/]+)\.json")


class _OpenEntry(StoredModel):
    """What an index entry says to people; its name alone is read."""

    what: StartedKind
    name: str


@dataclass(frozen=True)
class CampaignState:
    """What the log holds after all records so far."""

    count: int = 0
    started: Started | None = None  # the last one
    first_started: datetime | None = None
    home: str | None = None
    runs: dict[str, Ran] = field(default_factory=dict)  # by id, oldest first
    shown: dict[str, ShownExperiment] = field(default_factory=dict)  # by order key, as last seen
    read_at: datetime | None = None  # when the last change was seen, by the service's clock
    open_questions: dict[str, Asked] = field(default_factory=dict)  # by question id
    revisions: dict[str, int] = field(default_factory=dict)
    # The last of each question id that is not open again.
    decisions: dict[str, tuple[Asked, Answered]] = field(default_factory=dict)
    offered: Offered | None = None  # the last one
    stopped: Stopped | None = None
    settled: bool = False  # what a cancellation left behind is reported
    over: Over | None = None
    reopened: int = 0  # times

    @property
    def terms(self) -> Terms | None:
        """The recorded terms."""
        return self.started.terms if self.started else None

    @property
    def is_open(self) -> bool:
        """Return True if its orders are to be advanced."""
        return self.started is not None and self.stopped is None and self.over is None

    @property
    def needs_sweep(self) -> bool:
        """Return True if it is open, or its cancellation has not been reported to its end."""
        return self.is_open or (self.stopped is not None and not self.settled)

    @property
    def carrier(self) -> str | None:
        """The id of the run that carries it: the last one that has begun to."""
        return next(reversed(self.runs), None)

    @property
    def heard(self) -> frozenset[str]:
        """What persons have told it, by the ids of the records: answers and a cancellation. A change is news."""
        answers = {answered.id for _, answered in self.decisions.values()}
        return frozenset(answers | ({self.stopped.id} if self.stopped else set()))

    @property
    def restarts(self) -> tuple[datetime, ...]:
        """When the sweep has started another run."""
        return tuple(run.at for run in self.runs.values() if run.restarted)

    def decision_for(self, question_id: str, question: Question) -> Answered | None:
        """The answer to exactly this question; None while it is open, or open again, or for other figures."""
        known = self.decisions.get(question_id)
        return known[1] if known and known[0].question.digest == question.digest else None

    def _collect_agreed(self) -> dict[str, tuple[Asked, Answered]]:
        """The decisions that hold after a new start: what was rejected or not answered in time is asked again."""
        refusals = {REJECT, EXPIRED, CLOSED}
        return {key: one for key, one in self.decisions.items() if one[1].decision not in refusals}

    def apply(self, record: CampaignRecord) -> "CampaignState":
        """The state after one more record."""
        return replace(self, count=self.count + 1, **self._derive_changes(record))

    def _derive_changes(self, record: CampaignRecord) -> dict[str, Any]:  # noqa: C901, PLR0911, PLR0912 - one answer per kind
        match record:
            case Started():
                home = record.home if record.home is not None else self.home
                first = self.first_started or record.at
                return {
                    "started": record,
                    "first_started": first,
                    "home": home,
                    "over": None,
                    "decisions": self._collect_agreed(),
                }
            case Ran():
                return {"runs": {**_drop_entry(self.runs, record.run), record.run: record}}
            case Looked():
                return {"shown": {**self.shown, **record.experiments}, "read_at": record.read_at}
            case Asked():
                return {
                    "open_questions": {**self.open_questions, record.question_id: record},
                    "revisions": {**self.revisions, record.question_id: record.revision},
                    "decisions": _drop_entry(self.decisions, record.question_id),
                }
            case Answered():
                asked = self.open_questions.get(record.question_id)
                if asked is None or asked.revision != record.revision:
                    return {}  # never written: `answer` refuses it
                return {
                    "open_questions": _drop_entry(self.open_questions, record.question_id),
                    "decisions": {**self.decisions, record.question_id: (asked, record)},
                }
            case Offered():
                return {"offered": record}
            case Stopped():
                return {"stopped": record, "settled": False}
            case Settled():
                return {"settled": True}
            case Reopened():
                return {
                    "stopped": None,
                    "settled": False,
                    "over": None,
                    "decisions": self._collect_agreed(),
                    "reopened": self.reopened + 1,
                }
            case Adopted():
                return {"home": record.home}
            case Over():
                return {"over": record}
            case _:
                assert_never(record)


def _drop_entry(entries: Mapping[str, V], key: str) -> dict[str, V]:
    return {name: value for name, value in entries.items() if name != key}


def read_terms(store: Store, prefix: str, campaign_id: str) -> Terms | None:
    """The terms of a campaign: its account, and whether its service is simulated; None without a log.

    Raises:
        ArchiveError: the log is damaged, or the archive cannot be read.
    """
    return CampaignLog(store, prefix, campaign_id).read().terms


class CampaignLog:
    """Reads and writes the log of one campaign or loop."""

    def __init__(
        self,
        store: Store,
        prefix: str,
        name: str,
        what: StartedKind = StartedKind.CAMPAIGN,
        *,
        folder: str | None = None,
    ) -> None:
        """The log of an id; `folder` is the name of its folder where that alone is known."""
        self.store = store
        self.prefix = prefix
        self.name = name
        self.what = what
        self._folder = folder or safe_name(name)
        root = join_key(safe_prefix(prefix), LEDGERS_FOLDER)
        self.key = join_key(root, _LOG_FOLDERS[what], self._folder)  # of the log's folder
        self.index_key = join_key(root, OPEN_FOLDER, f"{what}-{self._folder}.json")
        self._log: Log[CampaignRecord] = Log(store, self.key, _RECORDS)
        self.state = CampaignState()

    @property
    def location(self) -> str:
        """The log's address, for people."""
        return self.store.location(self.key)

    def read(self) -> CampaignState:
        """The state after all records that exist now.

        Raises:
            ArchiveUnavailable: the archive cannot be read now, which is not an empty log.
            ArchiveError: the log is damaged, or another campaign's.
        """
        for record in self._log.read(self.state.count + 1, all_of_it=not self.state.count):
            if isinstance(record, Started):
                self._check_name(record.name)
            self.state = self.state.apply(record)
        return self.state

    def _check_name(self, name: str) -> None:
        if safe_name(name) != self._folder:
            raise ArchiveError(
                f"{self.location} holds the log of {self.what} {name}, which has another folder: a part of the archive was "
                "copied or renamed. Nothing is ordered or paid; restore it from a backup"
            )
        self.name = name

    def records(self) -> list[CampaignRecord]:
        """All records, oldest first: the campaign's timeline."""
        return list(self._log.read())

    def append(self, record: CampaignRecord) -> CampaignState:
        """Append a record whatever else was written meanwhile."""
        while not self._log.append(self.read().count + 1, record):
            pass
        self.state = self.state.apply(record)
        return self.state

    def append_unless_changed(self, record: CampaignRecord, seen: CampaignState) -> bool:
        """Append a record that was decided from `seen`; False if the log has changed since."""
        read_back = isinstance(record, Started | Stopped)
        is_written = self._log.append(seen.count + 1, record, read_back=read_back)
        if is_written and seen is self.state:
            self.state = seen.apply(record)
        else:
            self.read()
        return is_written

    def start(self, started: Started) -> CampaignState:
        """Record a start, which was decided from the state that this object last read.

        Raises:
            Conflict: somebody else has started it at the same moment under other terms; nothing was recorded.
        """
        seen = self.state
        while not self.start_unless_changed(started, seen):
            if self.state.terms not in (seen.terms, started.terms):
                raise Conflict(
                    f"{self.what} {self.name} was started by somebody else at the same moment, under other terms; this start "
                    "was not recorded and nothing was ordered. Look at its status, then start it again"
                )
            seen = self.state
        return self.state

    def start_unless_changed(self, started: Started, seen: CampaignState) -> bool:
        """Record a start that was decided from `seen`; False if the log has changed since.

        The index entry comes first: a kill in between leaves an entry that names no open campaign.
        """
        self._check_name(started.name)
        self.open_index()
        is_written = self.append_unless_changed(started, seen)
        if is_written:
            self.open_index()  # whoever closed the entry in between had not seen the record
        return is_written

    def note_run(self, run: str, name: str, *, restarted: bool = False, why: str | None = None) -> None:
        """Record that a run carries the campaign, once for each run; the last one counts."""
        if run not in self.read().runs:
            self.append(Ran(run=run, name=name, restarted=restarted, why=why))

    def ask(
        self,
        question_id: str,
        question: Question,
        *,
        order_key: str | None,
        now: datetime,
        expires_at: datetime,
        anew: bool = False,
    ) -> bool:
        """Record a question, or its next revision if it is asked with other figures or has expired.

        Returns False if it stands already, or if a person has answered exactly this question meanwhile. With `anew`, an
        answer that was used does not count any more.
        """
        while True:
            seen = self.read()
            standing = seen.open_questions.get(question_id)
            if standing is not None and standing.question.digest == question.digest:
                return False
            answered = seen.decision_for(question_id, question)
            if answered is not None and answered.decision not in _BY_NOBODY and not anew:
                return False
            asked = Asked(
                question_id=question_id,
                revision=seen.revisions.get(question_id, 0) + 1,
                question=question,
                order_key=order_key,
                asked_at=now,
                expires_at=expires_at,
            )
            if self.append_unless_changed(asked, seen):
                return True

    def answer(
        self,
        question_id: str,
        revision: int,
        decision: str,
        *,
        amount_cents: int | None,
        answerer: str,
        how: str,
        now: datetime,
        ceiling_cents: int | None = None,
    ) -> Answered:
        """Record an answer to exactly what was shown; of two answers at once, one counts.

        `now` is the service's clock. `amount_cents` is the amount that the person was shown, in US cents, or None where
        the question shows none; a rejection need not name it. `ceiling_cents` is the policy's ceiling for answers, which
        every decision needs that spends an amount.

        Raises:
            InputError: there is no such question, the decision is not one of its choices, it spends more than the
                ceiling, or another person has to answer; nothing was recorded.
            Conflict: the question was answered, has expired, has another amount, or was asked again with other figures;
                nothing was recorded.
        """
        while True:
            seen = self.read()
            asked = self.require_open(seen, question_id, revision)
            if decision == EXPIRED:
                _check_expired(asked, now)
            else:
                _check_answer(asked, decision, amount_cents, ceiling_cents, now)
                if decision != REJECT:
                    _check_second_person(asked, answerer, seen.started)
            record = Answered(
                question_id=question_id,
                revision=revision,
                decision=decision,
                amount_cents=None if decision in {EXPIRED, REJECT} else asked.question.amount_cents,
                answerer=answerer,
                how=how,
            )
            if self.append_unless_changed(record, seen):
                return record

    def close_question(self, question_id: str, revision: int) -> None:
        """Close a question that is no longer true, unless it was answered or asked again meanwhile."""
        asked = self.read().open_questions.get(question_id)
        if asked is not None and asked.revision == revision:
            record = Answered(
                question_id=question_id,
                revision=revision,
                decision=CLOSED,
                answerer="the service",
                how="a new reading",
            )
            self.append_unless_changed(record, self.state)

    def require_open(self, state: CampaignState, question_id: str, revision: int) -> Asked:
        """The open question in this revision; see `answer` for the errors."""
        asked = state.open_questions.get(question_id)
        if asked is None:
            before = state.decisions.get(question_id)
            if before is not None and before[0].revision == revision:
                raise Conflict(
                    f"question {question_id} was answered before: {before[1].decision}, by {before[1].answerer}; this answer "
                    "was not recorded"
                )
            named = ", ".join(state.open_questions) or "no open question"
            raise InputError(f"{self.what} {self.name} has {named}, and {question_id} is none of them")
        if asked.revision != revision:
            raise Conflict(
                f"question {question_id} is in revision {asked.revision} by now, and the answer is to revision {revision}; "
                "nothing was recorded. Read it again"
            )
        return asked

    def stop(self, person: str, how: str) -> CampaignState:
        """Record that a person has canceled it, once. The orders' ledgers are stopped by the caller."""
        while self.read().stopped is None:
            self.open_index()  # what the cancellation leaves behind is settled by the sweep
            self.append_unless_changed(Stopped(person=person, how=how), self.state)
        if self.state.needs_sweep:
            self.open_index()  # whoever closed the entry in between had not seen the record
        return self.state

    def reopen(self, person: str) -> CampaignState:
        """Record that a person has opened it again, if it was stopped or had ended."""
        while self.read().stopped is not None or self.state.over is not None:
            self.open_index()
            if self.append_unless_changed(Reopened(person=person), self.state):
                self.open_index()
                break
        return self.state

    def settle(self) -> None:
        """Record that the cancellation that this object last read is reported to its end, and close the index entry."""
        stopped = self.state.stopped or self.read().stopped
        while stopped is not None and self.read().stopped == stopped and not self.state.settled:
            self.append_unless_changed(Settled(), self.state)
        self.close_index()

    def finish(self, words: str, *, complete: bool, report: str | None = None) -> CampaignState:
        """Record the end, which was decided from the state that this object last read, and close the index entry.

        Somebody who has started or opened it again since then is not overruled: then it stays open.
        """
        seen = self.state if self.state.count else self.read()
        over = Over(words=words, complete=complete, report=report)
        while seen.over is None and not self.append_unless_changed(over, seen):
            if self.state.started is not seen.started or self.state.reopened != seen.reopened:
                break
            seen = self.state
        self.close_index()
        return self.state

    def open_index(self) -> bool:
        """Write the index entry, once; True if this call wrote it."""
        entry = _OpenEntry(what=self.what, name=self.name)
        return self.store.put_if_absent(self.index_key, entry.model_dump_json().encode(), "application/json")

    def close_index(self) -> bool:
        """Remove the index entry, unless it is needed; an entry that stays costs a reading in each sweep.

        False if it stays: it is needed, or the store does not allow to delete it.
        """
        if self.read().needs_sweep or not self.store.delete(self.index_key):
            return False
        if self.read().needs_sweep:  # somebody has opened it again in between
            self.open_index()
            return False
        return True


def _check_expired(asked: Asked, now: datetime) -> None:
    if now <= asked.expires_at:
        raise Conflict(
            f"question {asked.question_id} is open until {asked.expires_at:%Y-%m-%d %H:%M} UTC; nothing was recorded"
        )


def _check_answer(
    asked: Asked, decision: str, amount_cents: int | None, ceiling_cents: int | None, now: datetime
) -> None:
    """Refuse an answer to anything but what was shown, and one that spends too much."""
    question = asked.question
    if decision not in question.decisions:
        raise InputError(
            f"question {asked.question_id} takes {', '.join(question.decisions)}, and {decision!r} is none of them; "
            "nothing was recorded"
        )
    if now > asked.expires_at:
        raise Conflict(
            f"question {asked.question_id} expired at {asked.expires_at:%Y-%m-%d %H:%M} UTC; nothing was recorded"
        )
    amount = question.amount_cents
    if amount_cents != amount and not (decision == REJECT and amount_cents is None):
        shown = "without an amount" if amount is None else f"about {usd(amount)}"
        named = "no amount" if amount_cents is None else usd(amount_cents)
        raise Conflict(
            f"question {asked.question_id} is {shown}, and the answer names {named}; nothing was recorded. Read the question "
            "again, and answer with the amount that it shows"
        )
    if decision == REJECT or amount is None:
        return
    if ceiling_cents is None or amount > ceiling_cents:
        ceiling = "not known" if ceiling_cents is None else usd(ceiling_cents)
        raise InputError(
            f"question {asked.question_id} is about {usd(amount)}, and the ceiling for answers is {ceiling}; nothing was "
            "recorded. Raise answer_ceiling_usd of the spending policy first, or reject it"
        )


def _check_second_person(asked: Asked, answerer: str, started: Started | None) -> None:
    """Refuse an answer of whoever has asked for the campaign, where the policy asks for two persons."""
    if not asked.question.second_person:
        return
    requester = started.requester if started else None
    rule = f"question {asked.question_id} is about an amount for which the policy asks for two persons"
    if not answerer.strip() or answerer == UNNAMED:
        raise InputError(f"{rule}, and you gave no name; nothing was recorded. Answer again with your name")
    if requester is None:
        raise InputError(
            f"{rule}, and who has asked for it is not known; nothing was recorded. Cancel it, and start it again with the "
            "name of who asks for it"
        )
    if answerer.strip().casefold() == requester.strip().casefold():
        raise InputError(
            f"{rule}, and {requester} has asked for it; nothing was recorded. Have another person answer it"
        )


def list_open(store: Store, prefix: str) -> Iterator[CampaignLog]:
    """The logs that the index has as open, each to be read; an entry decides nothing. One listing, however many have ended.

    Raises:
        ArchiveUnavailable: the archive cannot be listed now, which is not an empty index.
    """
    folder = join_key(safe_prefix(prefix), LEDGERS_FOLDER, OPEN_FOLDER)
    for key in sorted(store.keys(folder)):
        entry = _ENTRY.fullmatch(key.removeprefix(f"{folder}/"))
        if entry is not None:
            yield CampaignLog(
                store, prefix, entry["folder"], StartedKind(entry["what"]), folder=entry["folder"]
            )


def list_logs(store: Store, prefix: str) -> Iterator[tuple[CampaignLog, int]]:
    """The logs of all campaigns and loops, each to be read, and the highest number of a record in each."""
    for what, name in _LOG_FOLDERS.items():
        root = join_key(safe_prefix(prefix), LEDGERS_FOLDER, name)
        for key, number in sorted(last_numbers(store, root).items()):
            folder = key.removeprefix(f"{root}/")
            if folder != key and "/" not in folder:
                yield CampaignLog(store, prefix, folder, what, folder=folder), number


def list_all(store: Store, prefix: str) -> Iterator[CampaignLog]:
    """The logs of all campaigns and loops, read; one request for each record."""
    for log, _ in list_logs(store, prefix):
        log.read()
        yield log
