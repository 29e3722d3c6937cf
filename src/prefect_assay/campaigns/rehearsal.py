"""Goes through everything up to the order against the real service, spends nothing, and says what would not work.

Each step reads with the models and readers that a campaign uses. Only reads and the cost estimate are sent
(`WitnessClient` refuses everything else), so a first order is not the first time that a campaign sees this service.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from io import BytesIO
from typing import Any, Final, TypeVar
from zipfile import ZIP_DEFLATED, ZipFile

from pydantic import BaseModel, SecretStr

from prefect_assay.analysis.results.measurements import RecordReader, parts_of
from prefect_assay.analysis.results.reading import read_results
from prefect_assay.analysis.results.tidy import read_rows
from prefect_assay.blocks import AssayAccount, SpendingPolicy
from prefect_assay.blocks.order_ledger import organisation_of
from prefect_assay.campaigns.approval.terms import AccountIdentity, identify_account
from prefect_assay.campaigns.problems.find import expiring_token
from prefect_assay.campaigns.problems.problem import AlertLimits
from prefect_assay.designs.campaign import split_into_batches
from prefect_assay.designs.chains import refuse_target
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.errors import (
    AccessError,
    AssayError,
    Forbidden,
    NotFound,
    RequestRefused,
    UnexpectedAnswer,
    is_absent,
)
from prefect_assay.orders.targets import resolve_target
from prefect_assay.service.assays import ASSAY_TYPES
from prefect_assay.service.client.http.secrets import spellings
from prefect_assay.service.description import Need, get_call_facts
from prefect_assay.service.drift.compare import Change, compare
from prefect_assay.service.drift.document import Facts, facts_of, known_interface
from prefect_assay.service.drift.fields import (
    FieldState,
    SeenField,
    compare_answers,
)
from prefect_assay.service.drift.usage import usage_by_operation
from prefect_assay.service.drift.witness import WitnessClient
from prefect_assay.service.models.billing import usd
from prefect_assay.service.models.experiment import ExperimentSummary
from prefect_assay.service.models.sequences import Sequences
from prefect_assay.service.models.service import WireWords
from prefect_assay.service.models.spec import Assay, ExperimentSpec, Target
from prefect_assay.service.models.tokens import Identity, Organization
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX, ResultsStatus
from prefect_assay.service.trial_delivery import find_delivery_problem
from prefect_assay.service.words import describe_organisation, in_words, listed, many

T = TypeVar("T")

NO_ORDER: Final = "f" * 20  # in place of an order's key: no run waits for it
_RECORDS_READ: Final = 6
_SHOWN: Final = 5
_SECRET_MIN: Final = 10  # shorter ones are parts of any text
_RESULTS: Final = "GET /experiments/{}/results"
# Read together with the number that they are about, and also kept as they came.
_BESIDE_NUMBERS: Final = frozenset({"kd_app", "kd_unit", "kd_units", "unit", "units"})
_SEND: Final = "send the bundle to the maintainers of prefect-assay before you order"
_README: Final = """\
Written by `prefect-assay rehearse`, for the maintainers of prefect-assay.

report.json     steps (name, ok, kind of problem), and each field of the service's answers: its name, whether the client reads
                it, how often it has a value, its JSON types, powers of ten of numbers, and words of the service's vocabulary
interface.json  the service's own description of itself: calls, parameters and fields, without texts and examples

It holds no token, key, address, sequence, identifier, person, text or number of an answer. Keys that may be names of your
own are written as *. A field that no description names is shown under its own name; look through them once.
"""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that was tried. `problem` is the kind of it in one word, without anything of the user's."""

    name: str
    ok: bool
    text: str
    next_step: str = ""
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What a rehearsal has shown. `described` is the service's description of itself, as facts."""

    account: AccountIdentity
    steps: tuple[Step, ...]
    fields: tuple[SeenField, ...]
    changes: tuple[Change, ...]
    described: dict[str, Facts]

    @property
    def is_ready(self) -> bool:
        """Return True if each step went well."""
        return all(step.ok for step in self.steps)


class _Finding(Exception):
    """A step went through, and found a problem."""

    def __init__(self, text: str, next_step: str, problem: str) -> None:
        super().__init__(text)
        self.next_step, self.problem = next_step, problem


def rehearse_account(
    account: AssayAccount, sequences: Sequences, assay: Assay, reading: ReadingOptions
) -> Rehearsal:
    """Rehearse the first contact of an account with its service.

    Args:
        account: whose service, token and webhook are tried.
        sequences: the designs to price.
        assay: what to measure. Without a target, where one is needed, the first with a price is taken.
        reading: how the designs were read, and how many one experiment takes.
    """
    credentials = account.credentials
    words = WireWords(provider=credentials.provider_word, service=credentials.service_word)
    with WitnessClient(credentials.base_url, credentials.token, words=words) as service:
        return _Rehearsing(account, service, words, sequences, assay, reading).play()


class _Rehearsing:
    """One rehearsal, step by step."""

    def __init__(
        self,
        account: AssayAccount,
        service: WitnessClient,
        words: WireWords,
        sequences: Sequences,
        assay: Assay,
        reading: ReadingOptions,
    ) -> None:
        self._account, self._service, self._words = account, service, words
        self._sequences, self._assay, self._reading = sequences, assay, reading
        self._organisation: Organization | None = None
        self._steps: list[Step] = []
        self._changes: tuple[Change, ...] = ()
        self._described: dict[str, Facts] = {}
        self._target: Target | None = None
        self._records: list[ExperimentSummary] = []
        self._kept: set[str] = set()  # fields of results without a column

    def play(self) -> Rehearsal:
        looks: dict[str, Callable[[], str]] = {
            "description": self._look_at_description,
            "targets": self._look_at_targets,
            "token": self._look_at_token,
            "price": self._look_at_price,
            "experiments": self._look_at_experiments,
            "quotes": self._look_at_quotes,
            "invoices": self._look_at_invoices,
            "updates": self._look_at_updates,
            "results": self._look_at_results,
        }
        blocked = ""
        for name, look in looks.items():
            if blocked:
                step = Step(name=name, ok=False, text="not tried", next_step=blocked, problem="not_tried")
                self._steps.append(step)
                continue
            error = self._try(name, look)
            # Every other step would wait for the same answer.
            if name == "targets" and (isinstance(error, AccessError) or (error and error.retriable)):
                blocked = "let the step targets succeed first"
        self._try("webhook", self._look_at_webhook)
        fields = self._compare_fields()
        return Rehearsal(
            account=identify_account(
                self._account,
                self._service.base_url,
                self._organisation.id if self._organisation else None,
                self._organisation.name if self._organisation else None,
                is_simulated=self._service.is_simulated,
            ),
            steps=tuple(self._steps),
            fields=fields,
            changes=self._changes,
            described=self._described,
        )

    def _try(self, name: str, look: Callable[[], str]) -> AssayError | None:
        try:
            step = Step(name=name, ok=True, text=look())
        except _Finding as finding:
            step = Step(
                name=name, ok=False, text=str(finding), next_step=finding.next_step, problem=finding.problem
            )
        except AssayError as error:
            kind = type(error).__name__
            step = Step(name=name, ok=False, text=error.message, next_step=_next_step(error), problem=kind)
            self._steps.append(step)
            return error
        self._steps.append(step)
        return None

    def _look_at_description(self) -> str:
        try:
            self._described = facts_of(self._service.service.get_openapi(), self._words)
        except AssayError as error:
            if error.retriable or isinstance(error, AccessError):
                raise
            raise _Finding(
                f"the service does not describe itself: {error.message}",
                "check the address; without a description only the other steps show what fits",
                "no_description",
            ) from None
        self._changes = compare(known_interface(), self._described, usage_by_operation())
        broken = [
            one for one in self._changes if one.breaks and get_call_facts(one.operation).need is Need.NEEDED
        ]
        differences = f"{many(len(self._described), 'call')}; {many(len(self._changes), 'difference')}"
        if broken:
            calls = list(dict.fromkeys(one.operation for one in broken))
            raise _Finding(
                f"{differences}, {len(broken)} of which would break what a campaign needs: {listed(calls, _SHOWN)}",
                f"`prefect-assay drift` lists them; {_SEND}",
                "drift",
            )
        return f"{differences} from the interface that the client knows; none breaks what a campaign needs"

    def _look_at_targets(self) -> str:
        page = self._service.targets.list(limit=PAGE_LIMIT_MAX)
        priced = [target for target in page.items if target.pricing]
        has_target = ASSAY_TYPES[self._assay.experiment_type].takes_target
        if has_target and not self._assay.target:
            self._target = next(iter((*priced, *page.items)), None)
            if self._target is None:
                raise _Finding("the catalog is empty", "ask the laboratory for your catalog", "no_targets")
        else:
            self._target = resolve_target(self._service, self._assay)
        first = f" of the first {len(page.items)}" if page.total > len(page.items) else ""
        words = f"{many(page.total, 'target')} in the catalog, {len(priced)}{first} with a price"
        if self._target is None:
            return words
        remarks = refuse_target(self._sequences, self._target.sequence, self._reading)
        why = "" if self._assay.target else "; --target names another one"
        priced_against = f"the designs are priced against {self._target.name or self._target.id}{why}"
        return "; ".join((words, priced_against, *remarks))

    def _look_at_token(self) -> str:
        identity = self._optional("GET /whoami", self._service.tokens.whoami)
        if isinstance(identity, str):
            return f"it is accepted; whose it is and what it may do, the service does not say ({identity})"
        expires = identity.token_expires_at
        for problem in expiring_token(self._account.name or "", expires, datetime.now(UTC), AlertLimits()):
            raise _Finding(problem.text, problem.next_step, "token_expires")
        if not _may_order(identity):
            raise _Finding(
                "it may read, and it may not order",
                "use a token of the role Member to order; for a rehearsal this one is enough",
                "read_only",
            )
        self._organisation = organisation = organisation_of(identity)
        named = describe_organisation(organisation.id, organisation.name) if organisation else ""
        parts = [named, (organisation and organisation.role) or ""]
        parts.append(f"expires {expires:%Y-%m-%d}" if expires else "")
        return ", ".join(filter(None, parts)) or "it is accepted"

    def _look_at_price(self) -> str:
        if self._target is None and ASSAY_TYPES[self._assay.experiment_type].takes_target:
            raise _Finding("not tried: there is no target", "let the step targets succeed first", "not_tried")
        target_id = self._target.id if self._target else None
        estimates = [
            self._service.experiments.estimate_cost(ExperimentSpec.of(self._assay, batch, target_id))
            for batch in split_into_batches(
                self._sequences, self._assay, self._reading.designs_per_experiment
            )
        ]
        prices = [one.total_cents for one in estimates if one.total_cents is not None]
        words = f"{many(len(self._sequences), 'design')} in {many(len(estimates), 'experiment')}"
        if len(prices) < len(estimates):
            reason = next(one.reason for one in estimates if one.total_cents is None)
            return f"{words}; {len(estimates) - len(prices)} by quote: {reason}"
        return f"{words}: {usd(sum(prices))} without VAT, {_describe_limit(self._account.policy, prices)}"

    def _look_at_experiments(self) -> str:
        page = self._service.experiments.list(limit=PAGE_LIMIT_MAX)
        # The newest of each type and status: their records differ most.
        kinds: dict[tuple[str, str], ExperimentSummary] = {}
        for row in page.items:
            kinds.setdefault((str(row.experiment_type), str(row.status)), row)
        self._records = list(kinds.values())[:_RECORDS_READ]
        if not self._records:
            return "none yet: fields of experiments, quotes, invoices and results were not seen"
        for row in self._records:
            self._service.experiments.get(row.id)
        self._check_search_by_name()
        try:
            self._service.experiments.list_states([row.id for row in self._records])
        except RequestRefused:
            remark = "; a filter by ids is refused, so states are searched by name"
        else:
            remark = ""
        named = [f"{in_words(row.experiment_type)} {in_words(row.status)}" for row in self._records]
        return f"{many(page.total, 'experiment')}; read: {listed(named, _RECORDS_READ)}{remark}"

    def _check_search_by_name(self) -> None:
        """Search an experiment by a word of its name, as an order whose answer was lost is found.

        Raises:
            _Finding: the search does not show it.
        """
        row = next((row for row in self._records if row.name and row.name.split()), None)
        if row is None or row.name is None:
            return
        rows = self._service.experiments.list(
            search=max(row.name.split(), key=len), limit=PAGE_LIMIT_MAX
        ).items
        if row.id not in {one.id for one in rows}:
            raise _Finding(
                "a search by name does not show an experiment that exists, so an order could not be found again",
                _SEND,
                "search",
            )

    def _look_at_quotes(self) -> str:
        page = self._optional("GET /quotes", lambda: self._service.quotes.list(limit=PAGE_LIMIT_MAX))
        of_experiments = self._of_each(self._service.experiments.get_quote)
        quotes = [*([] if isinstance(page, str) else page.items), *of_experiments]
        return _count_amounts("quote", quotes, page if isinstance(page, str) else "")

    def _look_at_invoices(self) -> str:
        page = self._optional("GET /invoices", lambda: self._service.invoices.list(limit=PAGE_LIMIT_MAX))
        self._of_each(self._service.experiments.get_invoice)
        if not isinstance(page, str):
            self._of_each(self._service.invoices.find_for_experiment)
        return _count_amounts(
            "invoice", [] if isinstance(page, str) else page.items, page if isinstance(page, str) else ""
        )

    def _look_at_updates(self) -> str:
        page = self._optional("GET /updates", lambda: self._service.updates.list(limit=PAGE_LIMIT_MAX))
        return page if isinstance(page, str) else f"{many(page.total, 'update')} in the feed"

    def _look_at_results(self) -> str:
        self._optional("GET /results", lambda: self._service.results.list(limit=PAGE_LIMIT_MAX))
        with_results = [row for row in self._records if row.results_status != ResultsStatus.NONE]
        if not with_results:
            return "none yet"
        entries, unread, odd = 0, 0, Counter[str]()
        for row in with_results:
            documents = [
                one for one in self._service.documents.iterate(row.id) if one.name.startswith("results-")
            ]
            results, lines = read_results({one.name: one.body for one in documents if not one.absent})
            reader, unread = RecordReader.of(results), unread + len(lines)
            for result in results:
                entries += len(result.summary)
                parts = ((entry, part) for entry in result.summary for part in parts_of(entry))
                odd.update(
                    one.what for entry, part in parts for one in reader.read(result, entry, part).problems
                )
            self._kept |= {name for one in read_rows(results) for name in json.loads(one.extra or "{}")}
        words = f"{many(entries, 'record')} of {many(len(with_results), 'experiment')}"
        if unread or odd:
            values = listed([f"{what} ({number})" for what, number in odd.items()], _SHOWN)
            unknown = many(unread, "answer of no known shape", "answers of no known shape") if unread else ""
            summary = "; ".join(filter(None, (words, unknown, f"unread values: {values}" if odd else "")))
            raise _Finding(summary, f"{_SEND}; or declare them (docs/results.md)", "unread")
        return f"{words}; every value of a known field is read"

    def _look_at_webhook(self) -> str:
        webhook = self._account.webhook
        if webhook is None:
            return "the account has none: the sweep looks for updates every few minutes"
        if problem := find_delivery_problem(*webhook.derive_for_order(NO_ORDER), self._words):
            raise _Finding(
                f"{webhook.url}: {problem}",
                "start the receiver with this account's signing key; see `prefect-assay check`",
                "receiver",
            )
        return f"{webhook.url} refuses an unsigned delivery and takes a signed one; whether the service reaches it, its first delivery shows"

    def _optional(self, operation: str, call: Callable[[], T]) -> T | str:
        """The answer; or what happens without it, where the service has no such call or this token may not make it."""
        try:
            return call()
        except AssayError as error:
            if is_absent(error) or isinstance(error, Forbidden | UnexpectedAnswer):
                return f"{operation} is not answered; without it {get_call_facts(operation).without}"
            raise

    def _of_each(self, call: Callable[[str], T]) -> list[T]:
        """One record of each experiment that is looked at, where it exists."""
        records = []
        for row in self._records:
            try:
                records.append(call(row.id))
            except NotFound:
                continue  # no quote or invoice yet (contract 4.2)
        return records

    def _compare_fields(self) -> tuple[SeenField, ...]:
        private = [text for one in self._sequences.items for text in (one.name, *one.aa_string.split(":"))]
        described = {**known_interface(), **self._described}
        fields = compare_answers(self._service.exchanges, described, private)
        return tuple(self._as_results_are_read(one) for one in fields)

    def _as_results_are_read(self, one: SeenField) -> SeenField:
        """A field of a result record is unread where the table of measurements has no column for it."""
        if one.operation != _RESULTS or not one.place.startswith("items[].summary[]."):
            return one
        name = one.place.removeprefix("items[].summary[].").removeprefix("replicates[].").partition(".")[0]
        if one.state is FieldState.UNREAD and (name not in self._kept or name in _BESIDE_NUMBERS):
            return replace(one, state=FieldState.READ)
        return one


def _describe_limit(policy: SpendingPolicy, prices: Sequence[int]) -> str:
    """Which cap of the policy asks a person about these prices, if one does."""
    total, second = sum(prices), policy.second_person_above_cents
    if total > policy.answer_ceiling_cents:
        return f"which nothing orders: no answer may approve more than {usd(policy.answer_ceiling_cents)}"
    if second is not None and total > second:
        return f"and another person will be asked: the policy asks for two above {usd(second)}"
    if total > policy.per_campaign_cents:
        return f"and you will be asked: it is over the cap per campaign of {usd(policy.per_campaign_cents)}"
    cap = policy.per_experiment_cents
    over = [f"{number} ({usd(cents)})" for number, cents in enumerate(prices, 1) if cents > cap]
    if over:
        which = f"experiment{'s' if len(over) > 1 else ''} {listed(over, _SHOWN)}"
        return f"and you will be asked about {which}: over the cap per experiment of {usd(cap)}"
    return f"within the caps of {usd(cap)} per experiment and {usd(policy.per_campaign_cents)} per campaign"


def _may_order(identity: Identity) -> bool:
    """False where the service says so. Neither the call nor the names of rights are in the contract (5.9)."""
    of_experiments = [right for right in identity.permissions if right.startswith("experiment:")]
    return not of_experiments or "experiment:create" in of_experiments


def _count_amounts(kind: str, records: Iterable[Any], missing: str) -> str:
    """How many records there are; a finding where an amount can't be read."""
    records = list(records)
    odd = [one.money.problem for one in records if one.money.problem]
    if odd:
        raise _Finding(f"{many(len(odd), kind)} without a certain amount: {odd[0]}", _SEND, "amount")
    return "; ".join(
        filter(None, (f"{many(len(records), kind)} read" if records else f"no {kind} yet", missing))
    )


def _next_step(error: AssayError) -> str:
    if isinstance(error, AccessError):
        return "correct the address or the token of the account: `prefect-assay init`"
    if error.retriable:
        return "the service does not answer now; rehearse again later"
    if isinstance(error, UnexpectedAnswer):
        return _SEND
    return "as the message says"


def make_bundle(rehearsal: Rehearsal, account: AssayAccount, sequences: Sequences) -> bytes:
    """The rehearsal as a zip file that can be shown to others: structure and counts, nothing of the user's.

    Raises:
        AssayError: a secret of the account or a design's residues would be in it.
    """
    report = {
        "prefect-assay": version("prefect-assay"),
        "python": sys.version.split()[0],
        "simulated": rehearsal.account.simulated,
        "ready": rehearsal.is_ready,
        "steps": [{"name": one.name, "ok": one.ok, "problem": one.problem} for one in rehearsal.steps],
        "fields": fields_as_json(rehearsal),
        "changes": [
            {**one.as_json(), "need": get_call_facts(one.operation).need} for one in rehearsal.changes
        ],
    }
    files = {
        "README.txt": _README,
        "report.json": json.dumps(report, indent=1),
        "interface.json": json.dumps(rehearsal.described, indent=1),
    }
    hidden = {
        *_secrets_of(account),
        *(chain for one in sequences.items for chain in one.aa_string.split(":")),
    }
    text = "\n".join(files.values()).casefold()
    if any(one.casefold() in text for one in spellings(hidden) if len(one) >= _SECRET_MIN):
        raise AssayError(
            "the bundle is not written: it would hold a secret or a design. Report this as a bug"
        )
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as bundle:
        for name, lines in files.items():
            bundle.writestr(name, lines)
    return content.getvalue()


def fields_as_json(rehearsal: Rehearsal) -> list[dict[str, Any]]:
    """Each field with the section of the contract that describes its call; None where the contract has no such call."""
    return [{**asdict(one), "contract": get_call_facts(one.operation).section} for one in rehearsal.fields]


def _secrets_of(model: BaseModel) -> Iterator[str]:
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, SecretStr):
            yield value.get_secret_value()
        elif isinstance(value, BaseModel):
            yield from _secrets_of(value)
