"""The log of one campaign or loop: who started it under which terms, its runs, questions, answers, and its end.

Layout: `<prefix>/BOOKS/CAMPAIGNS/<campaign>/000001.json`, `<prefix>/BOOKS/LOOPS/<loop>/000001.json`, and one small object
for each that is open, `<prefix>/BOOKS/OPEN/<kind>-<id>.json`. The log is written with conditional writes, like that of an
order. `status`, `cancel`, jobs and the sweep read it; a flow run is never asked for the truth.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, assert_never

from pydantic import AwareDatetime, Field, TypeAdapter, ValidationError

from prefect_assay.archive.layout import (
    BOOKS_FOLDER,
    CAMPAIGN_LOGS_FOLDER,
    LOOP_LOGS_FOLDER,
    OPEN_FOLDER,
    safe_name,
    safe_prefix,
)
from prefect_assay.archive.store import Store, join_key
from prefect_assay.books.log import Log, Record
from prefect_assay.errors import ArchiveError, Conflict, InputError
from prefect_assay.models.base import StoredModel
from prefect_assay.models.question import REJECT, Question
from prefect_assay.models.vocabulary import PaymentMethod

EXPIRED: Final = "expired"  # the decision of a question that nobody has answered in time
CLOSED: Final = "closed"  # that of a question that is no longer true, such as about a quote that has expired


class StartedKind(StrEnum):
    """What was started."""

    CAMPAIGN = "campaign"
    LOOP = "loop"


class Terms(StoredModel):
    """What a campaign was started under. Amounts are US cents without VAT.

    The first group is its identity: another service, organisation or archive would hold another, empty ledger. A
    difference in the second group is a question to a person. The caps of the third may only fall.
    """

    service: str  # the canonical address
    organisation: str | None
    simulated: bool
    archive_id: str

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
    Started | Ran | Looked | Asked | Answered | Stopped | Settled | Reopened | Adopted | Over,
    Field(discriminator="kind"),
]
_RECORDS: Final[TypeAdapter[CampaignRecord]] = TypeAdapter(CampaignRecord)


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
    decisions: dict[str, tuple[Asked, Answered]] = field(default_factory=dict)  # the last of each question id
    stopped: Stopped | None = None
    settled: bool = False  # what a cancellation left behind is reported
    over: Over | None = None

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
    def restarts(self) -> tuple[datetime, ...]:
        """When the sweep has started another run."""
        return tuple(run.at for run in self.runs.values() if run.restarted)

    def decision_for(self, question_id: str, question: Question) -> Answered | None:
        """The answer to exactly this question; None while it is open, or for other figures."""
        known = self.decisions.get(question_id)
        return known[1] if known and known[0].question.digest == question.digest else None

    def without_refusals(self) -> "CampaignState":
        """What was rejected or not answered in time is asked again after a new start."""
        agreed = {
            key: decided
            for key, decided in self.decisions.items()
            if decided[1].decision not in {REJECT, EXPIRED, CLOSED}
        }
        return replace(self, decisions=agreed)

    def apply(self, record: CampaignRecord) -> "CampaignState":
        """The state after one more record."""
        new = replace(self, count=self.count + 1)
        match record:
            case Started():
                home = record.home if record.home is not None else self.home
                first = self.first_started or record.at
                return replace(
                    new.without_refusals(), started=record, first_started=first, home=home, over=None
                )
            case Ran():
                others = {run: ran for run, ran in self.runs.items() if run != record.run}
                return replace(new, runs={**others, record.run: record})
            case Looked():
                shown = {**self.shown, **record.experiments}
                return replace(new, shown=shown, read_at=record.read_at)
            case Asked():
                return replace(
                    new,
                    open_questions={**self.open_questions, record.question_id: record},
                    revisions={**self.revisions, record.question_id: record.revision},
                )
            case Answered():
                asked = self.open_questions.get(record.question_id)
                if asked is None or asked.revision != record.revision:
                    return new  # never written: `answer` refuses it
                left = {key: one for key, one in self.open_questions.items() if key != record.question_id}
                decided = {**self.decisions, record.question_id: (asked, record)}
                return replace(new, open_questions=left, decisions=decided)
            case Stopped():
                return replace(new, stopped=record, settled=False)
            case Settled():
                return replace(new, settled=True)
            case Reopened():
                return replace(new.without_refusals(), stopped=None, settled=False, over=None)
            case Adopted():
                return replace(new, home=record.home)
            case Over():
                return replace(new, over=record)
            case _:
                assert_never(record)


class _OpenEntry(StoredModel):
    what: StartedKind
    name: str
    home: str | None = None


class CampaignLog:
    """Reads and writes the log of one campaign or loop."""

    def __init__(
        self, store: Store, prefix: str, name: str, what: StartedKind = StartedKind.CAMPAIGN
    ) -> None:
        self.store = store
        self.prefix = prefix
        self.name = name
        self.what = what
        root = join_key(safe_prefix(prefix), BOOKS_FOLDER)
        folder = CAMPAIGN_LOGS_FOLDER if what is StartedKind.CAMPAIGN else LOOP_LOGS_FOLDER
        self._log: Log[CampaignRecord] = Log(store, join_key(root, folder, safe_name(name)), _RECORDS)
        self._index_key = join_key(root, OPEN_FOLDER, f"{what}-{safe_name(name)}.json")
        self.state = CampaignState()

    @property
    def location(self) -> str:
        """The log's address, for people."""
        return self.store.location(self._log.folder)

    def read(self) -> CampaignState:
        """The state after all records that exist now."""
        for record in self._log.read(self.state.count + 1, all_of_it=not self.state.count):
            self.state = self.state.apply(record)
        return self.state

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
        if not self._log.append(seen.count + 1, record):
            return False
        self.read()
        return True

    def start(self, started: Started) -> CampaignState:
        """Write the index entry, then the record: a kill in between leaves an entry that the next sweep removes."""
        self.open_index(started.home)
        return self.append(started)

    def note_run(self, run: str, name: str, *, restarted: bool = False, why: str | None = None) -> None:
        """Record that a run carries the campaign, once in a row."""
        runs = self.read().runs
        if run not in runs or next(reversed(runs)) != run:
            self.append(Ran(run=run, name=name, restarted=restarted, why=why))

    def ask(
        self,
        question_id: str,
        question: Question,
        *,
        order_key: str | None,
        now: datetime,
        expires_at: datetime,
    ) -> bool:
        """Record a question, or its next revision if it is asked with other figures; False if it stands already."""
        while True:
            seen = self.read()
            known = seen.open_questions.get(question_id)
            if known is not None and known.question.digest == question.digest:
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

        `now` is the service's clock. `ceiling_cents` is the policy's ceiling for answers.

        Raises:
            InputError: there is no such question, or the decision is not one of its choices; nothing was recorded.
            Conflict: the question was answered, or was asked again with other figures; nothing was recorded.
        """
        while True:
            seen = self.read()
            asked = self.require_open(seen, question_id, revision)
            question = asked.question
            if decision not in {EXPIRED, CLOSED}:
                if decision not in question.decisions:
                    raise InputError(
                        f"question {question_id} takes {', '.join(question.decisions)}, and {decision!r} is none of them; "
                        "nothing was recorded"
                    )
                if now > asked.expires_at:
                    raise Conflict(
                        f"question {question_id} expired at {asked.expires_at:%Y-%m-%d %H:%M} UTC; nothing was recorded"
                    )
                _check_amount(asked, decision, amount_cents, ceiling_cents)
            record = Answered(
                question_id=question_id,
                revision=revision,
                decision=decision,
                amount_cents=question.amount_cents,
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
                question_id=question_id, revision=revision, decision=CLOSED, answerer="the service", how="a new reading"
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
        while True:
            seen = self.read()
            if seen.stopped is not None or self.append_unless_changed(Stopped(person=person, how=how), seen):
                return self.state

    def reopen(self, person: str) -> CampaignState:
        """Record that a person has opened it again."""
        state = self.read()
        if state.stopped is not None or state.over is not None:
            self.open_index(state.home)
            return self.append(Reopened(person=person))
        return state

    def settle(self) -> None:
        """Record that the cancellation is reported to its end, and close the index entry."""
        if not self.read().settled:
            self.append(Settled())
        self.close_index()

    def finish(self, words: str, *, complete: bool, report: str | None = None) -> CampaignState:
        """Record the end, and close the index entry."""
        if self.read().over is None:
            self.append(Over(words=words, complete=complete, report=report))
        self.close_index()
        return self.state

    def open_index(self, home: str | None) -> None:
        """Write the index entry, once."""
        entry = _OpenEntry(what=self.what, name=self.name, home=home)
        self.store.put_if_absent(self._index_key, entry.model_dump_json().encode(), "application/json")

    def close_index(self) -> None:
        """Remove the index entry. An entry that stays costs a reading; `archive verify` writes one that is missing."""
        self.store.delete(self._index_key)


def _check_amount(asked: Asked, decision: str, amount_cents: int | None, ceiling_cents: int | None) -> None:
    amount = asked.question.amount_cents
    if decision == "reject" or amount is None:
        return
    if amount_cents != amount:
        raise Conflict(
            f"question {asked.question_id} is about {amount} cents, and the answer names {amount_cents}; nothing was recorded"
        )
    if ceiling_cents is not None and amount > ceiling_cents:
        raise InputError(
            f"question {asked.question_id} is about {amount} cents, and the policy's ceiling for answers is {ceiling_cents}; "
            "nothing was recorded. Raise answer_ceiling_cents of the spending policy first"
        )


def list_open(store: Store, prefix: str) -> Iterator[CampaignLog]:
    """The logs that the index has as open, each to be read; an entry decides nothing."""
    folder = join_key(safe_prefix(prefix), BOOKS_FOLDER, OPEN_FOLDER)
    for key in sorted(store.keys(folder)):
        body = store.find(key)
        if body is None:
            continue
        try:
            entry = _OpenEntry.model_validate_json(body)
        except ValidationError:
            raise ArchiveError(
                f"{store.location(key)} is damaged; `prefect-assay archive verify` names it"
            ) from None
        yield CampaignLog(store, prefix, entry.name, entry.what)


def list_all(store: Store, prefix: str) -> Iterator[CampaignLog]:
    """The logs of all campaigns and loops; one request for each record, for `verify` and `adopt`."""
    root = join_key(safe_prefix(prefix), BOOKS_FOLDER)
    for what, folder in ((StartedKind.CAMPAIGN, CAMPAIGN_LOGS_FOLDER), (StartedKind.LOOP, LOOP_LOGS_FOLDER)):
        for name in sorted(store.folders(join_key(root, folder))):
            log = CampaignLog(store, prefix, name, what)
            state = log.read()
            if state.started is not None and state.started.name != name:
                log = CampaignLog(store, prefix, state.started.name, what)
                log.read()
            yield log
