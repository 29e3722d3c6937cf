"""`design_build_test`: propose, select, measure, learn, and the next round, until a stop rule ends it; see docs/loop.md.

The log of the loop in the archive says which designs each round measures; one round is one campaign. So a repeat finds
what was decided, and nothing is proposed or ordered twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import Annotated, Any, Final, TypeVar

from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger
from prefect.states import Completed
from pydantic import Field

from prefect_assay.approvals.questions import unanswered
from prefect_assay.approvals.rounds import approve_round
from prefect_assay.blocks import Archive, AssayCredentials, SpendingPolicy, Wallet, WebhookEndpoint
from prefect_assay.designs import Reading
from prefect_assay.errors import (
    ApprovalExpired,
    ApprovalRejected,
    AssayError,
    ConfigurationError,
    InvalidSpec,
    LoopFailed,
)
from prefect_assay.events import is_news
from prefect_assay.flows.campaign import campaign
from prefect_assay.flows.run_options import DEADLINE_DAYS, RunOptions
from prefect_assay.looping import (
    Loop,
    LoopBook,
    NothingToMeasure,
    OverBudget,
    Round,
    RoundEnded,
    RoundFixed,
    RoundValue,
    Stop,
    StopRules,
    UnreadableDesigns,
    best_value,
    designs_address,
    has_measurement,
    loop_report,
    next_round,
    objective_of,
    round_line,
    stop_reason,
)
from prefect_assay.looping.candidates import try_to_add_round
from prefect_assay.looping.wakes import SETTLE_SECONDS, run_elsewhere
from prefect_assay.models.billing import usd
from prefect_assay.models.report import LoopReport, RoundReport
from prefect_assay.models.selection import Objective, SelectionSettings
from prefect_assay.models.spec import Assay
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.reporting import artifacts, facts
from prefect_assay.runs import can_suspend, is_temporary, outlast, was_suspended
from prefect_assay.runs.children import attempt_began, call_children, start_child, wait_for_children
from prefect_assay.runs.crashes import stop_crash_loop
from prefect_assay.runs.durable import durable_flow, refuse_unknown_parameters
from prefect_assay.runs.suspend import this_run
from prefect_assay.runs.tags import WAITS_TAG, own_tags
from prefect_assay.sweeping.cancellations import report_cancellation
from prefect_assay.tasks.archive import check_archive
from prefect_assay.tasks.collate import kept_plan, kept_table
from prefect_assay.tasks.propose import check_designer

__all__ = ["design_build_test"]

T = TypeVar("T")

_ROUND_MARGIN: Final = timedelta(days=250)


@durable_flow(name="design-build-test", on_cancellation=[report_cancellation])
def design_build_test(
    source: str | None = None,
    *,
    loop_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,29}$")],
    assay: Assay,
    credentials: AssayCredentials,
    policy: SpendingPolicy,
    archive: Archive,
    payment_method: PaymentMethod = PaymentMethod.ASYNC_INVOICE,
    wallet: Wallet | None = None,
    webhook: WebhookEndpoint | None = None,
    max_rounds: Annotated[int, Field(ge=1, le=1000)] = 10,
    goal_kd_nM: Annotated[float | None, Field(gt=0)] = None,  # noqa: N803 - nM is the unit
    designer: str | None = None,
    request_quote: bool = False,
    sequences_per_experiment: Annotated[int, Field(ge=1, le=384)] = 96,
    deadline_days: Annotated[int, Field(ge=1, le=365)] = DEADLINE_DAYS,
    poll_seconds: Annotated[float, Field(gt=0)] = 300.0,
    name_column: str | None = None,
    sequence_column: str | None = None,
    keep_native: bool = False,
    designs_per_round: Annotated[int | None, Field(ge=1, le=10_000)] = None,
    selection: SelectionSettings | None = None,
    budget_cents: Annotated[int | None, Field(ge=0)] = None,
    goal_tm_C: float | None = None,  # noqa: N803 - as scientists spell it
    goal_expression_nM: Annotated[float | None, Field(gt=0)] = None,  # noqa: N803
    stop_after_flat_rounds: Annotated[int | None, Field(ge=1)] = None,
    ask_each_round: bool = False,
    wait_days: Annotated[float, Field(ge=0, le=365)] = 0,
    settle_seconds: Annotated[float, Field(ge=0, le=3600)] = SETTLE_SECONDS,
) -> State[LoopReport]:
    """Run rounds until a stop rule ends the loop: propose designs, measure them as one campaign, learn, propose again.

    Start it by hand, on a schedule or by an event: what was decided and measured is found and not repeated.

    Args:
        source: a folder that the worker sees, or s3://bucket/prefix/; each .fasta, .fa, .faa, .csv or .tsv file in it
            is a round, in the order of the names. With a designer these rounds come first.
        loop_id: names the loop; part of every round's campaign id.
        assay: what to measure in every round.
        credentials: the service's address and your API token.
        policy: caps, and permission for machine payments.
        archive: where results and the loop's log are archived.
        payment_method: async_invoice: a person pays the hosted invoices; a machine rail pays with the wallet.
        wallet: for a machine rail: an X402Wallet for x402-exact, SharedPaymentTokens for mpp-spt.
        webhook: where the service delivers updates.
        max_rounds: most rounds of the loop.
        goal_kd_nM: stop as soon as a round's best K_D is at or below this, in nM.
        designer: what proposes the next round: an importable function (`module:function`), or a deployment (`flow/name`).
        request_quote: order by quote, even if the estimates are complete.
        sequences_per_experiment: most designs in one experiment.
        deadline_days: how long to wait for an experiment, counted from its order.
        poll_seconds: longest pause between two polls of a run that is not deployed.
        name_column: title of the tables' column of names. Empty: found by usual titles.
        sequence_column: title of the tables' column of sequences. Empty: found by usual titles.
        keep_native: also measure the native inputs in files of ProteinMPNN and LigandMPNN.
        designs_per_round: most designs that a round measures. Empty: all of a file; of a designer one experiment's.
        selection: how the designs of a round are chosen from what was proposed. Empty: the first ones, in their order.
        budget_cents: what all rounds together may cost, in US cents without VAT.
        goal_tm_C: stop as soon as a melting temperature is at or above this, in degrees Celsius.
        goal_expression_nM: stop as soon as a concentration is at or above this, in nM.
        stop_after_flat_rounds: stop after so many rounds in a row without an improvement.
        ask_each_round: ask a person before each round is ordered.
        wait_days: without a designer: how long to wait for the next file. 0: end when every file has been measured.
        settle_seconds: a file of a folder is complete when it has not changed for so long.

    Returns:
        LoopReport: every round with its table and best value, what it cost, and why the loop stopped.

    Raises:
        InvalidSequences: the folder does not exist, or a designer's designs cannot be ordered.
        InvalidSpec: a goal does not fit the assay.
        DesignerFailed: the designer failed or proposed nothing.
        LoopFailed: a designer's round gave no measurement to go on with.
        CrashedTooOften: its process was killed more than five times since its last suspension.
    """
    stop_crash_loop()
    options = RunOptions(
        credentials=credentials,
        policy=policy,
        archive=archive,
        payment_method=payment_method,
        wallet=wallet,
        webhook=webhook,
        request_quote=request_quote,
        deadline_days=deadline_days,
        poll_seconds=poll_seconds,
    )
    goals = {
        Objective.AFFINITY: goal_kd_nM and goal_kd_nM / 1e9,
        Objective.MELTING: goal_tm_C,
        Objective.EXPRESSION: goal_expression_nM,
    }
    rules = StopRules(
        objective=objective_of(assay.experiment_type),
        max_rounds=max_rounds,
        goals={objective: goal for objective, goal in goals.items() if goal is not None},
        budget_cents=budget_cents,
        flat_rounds=stop_after_flat_rounds,
    )
    run = _LoopRun(
        options,
        loop_id=loop_id,
        assay=assay,
        sequences_per_experiment=sequences_per_experiment,
        designer=designer or None,
        reading=Reading(name_column, sequence_column, keep_native),
        source=source or None,
        rules=rules,
        designs_per_round=designs_per_round,
        selection=selection,
        ask_each_round=ask_each_round,
        wait_days=wait_days,
        settle_seconds=settle_seconds,
    )
    run.check()
    return run.run()


@dataclass
class _LoopRun:
    """One execution of `design_build_test`."""

    options: RunOptions
    loop_id: str
    assay: Assay
    sequences_per_experiment: int
    designer: str | None
    reading: Reading
    source: str | None
    rules: StopRules
    designs_per_round: int | None = None
    selection: SelectionSettings | None = None
    ask_each_round: bool = False
    wait_days: float = 0
    settle_seconds: float = SETTLE_SECONDS
    problems: dict[int, str] = field(default_factory=dict)  # of rounds, by number
    unreadable: dict[str, RoundReport] = field(default_factory=dict)  # files, by campaign id

    @cached_property
    def book(self) -> LoopBook:
        """The loop's log."""
        return LoopBook(self.options.archive.get_store(), self.options.archive.prefix, self.loop_id)

    @cached_property
    def loop(self) -> Loop:
        """What proposing a round needs."""
        return Loop(
            loop_id=self.loop_id,
            source=self.source,
            designer=self.designer,
            assay=self.assay,
            credentials=self.options.credentials,
            archive=self.options.archive,
            reading=self.reading,
            designs_per_round=self.designs_per_round,
            selection=self.selection,
            per_experiment=self.sequences_per_experiment,
            settle_seconds=self.settle_seconds,
            wait_days=self.wait_days,
            poll=self.options.poll,
            timeout=self.round_timeout,
            scope=self.options.scope,
            book=self.book,
        )

    @property
    def round_timeout(self) -> timedelta:
        """Prefect's time-out of a suspension for one round: longer than the campaign's own."""
        return self.options.patience + _ROUND_MARGIN

    def outlasting(self, name: str, step: Callable[[], T]) -> T:
        """Repeat a step while the service or the archive is away."""
        return outlast(step, key=name, timeout=self.round_timeout, poll=self.options.poll)

    def parameters(self, fixed: RoundFixed) -> dict[str, Any]:
        """The flat parameters of `campaign` for one round."""
        own = {
            "designs": designs_address(self.loop_id, fixed.number),
            "designs_name": None,  # the address names them
            "assay": self.assay,
            "campaign_id": fixed.campaign_id,
            "sequences_per_experiment": self.sequences_per_experiment,
            "name_column": self.reading.name_column,
            "sequence_column": self.reading.sequence_column,
            "keep_native": self.reading.keep_native,
            "limit_cents": fixed.limit_cents,
        }
        return own | self.options.parameters()

    def check(self) -> None:
        """Refuse, before anything is proposed, what cannot work; a run that has waited goes on as it can."""
        if was_suspended(own_tags()):
            return
        if not self.source and not self.designer:
            raise ConfigurationError(
                "a loop needs designs: give `source`, a folder or an s3:// prefix, or `designer`; nothing was ordered"
            )
        if self.designer:
            check_designer(self.designer)
        InvalidSpec.check(self.rules.misfits())

    def run(self) -> State[LoopReport]:
        """Run rounds until a rule stops the loop."""
        if can_suspend():
            other = self.outlasting("loop", lambda: run_elsewhere(self.loop_id, self.options.scope))
            if other is not None:
                return self._ended(
                    Stop.RUNS_ELSEWHERE,
                    f"flow run {other.name} ({other.id}) runs this loop already, and this run has changed nothing; to "
                    "run it here, cancel that run first",
                )
        try:
            return self._ended(*self._until_stopped())
        except ApprovalRejected as error:
            return self._ended(Stop.PERSON, str(error))
        except ApprovalExpired as error:
            return unanswered(error)

    def _until_stopped(self) -> tuple[Stop, str]:
        while True:
            # The rules decide on the round after these. Another run may fix and measure it meanwhile: then its
            # decision counts, and the rules are asked again before there is one more.
            rounds = self._measured_rounds()
            reason = stop_reason(self.rules, self._values(rounds), self.outlasting("budget", self._spent))
            if reason is not None:
                return reason
            self._check_last_round(rounds)
            try:
                if self.outlasting("propose", partial(self._fix_next, rounds)) is None:
                    return Stop.NO_MORE_DESIGNS, self._no_more()
            except OverBudget as stop:
                return Stop.BUDGET, str(stop)
            except NothingToMeasure as stop:
                return Stop.NOTHING_TO_MEASURE, str(stop)
            except UnreadableDesigns as error:
                if self.designer:
                    raise
                self.unreadable[error.campaign_id] = RoundReport(
                    name=error.name,
                    campaign_id=error.campaign_id,
                    table=None,
                    best_kd_M=None,
                    problem=str(error),
                )

    def _measured_rounds(self) -> tuple[Round, ...]:
        """All rounds of the log, once each of them has ended or has failed in this run."""
        while True:
            rounds = self.book.read().rounds
            waiting = [r for r in rounds if r.ended is None and r.fixed.number not in self.problems]
            if not waiting:
                return rounds
            for entry in waiting:
                name = f"round-{entry.fixed.campaign_id}"
                self.outlasting(name, partial(self._measure, entry.fixed))

    def _fix_next(self, rounds: Sequence[Round]) -> RoundFixed | None:
        """Propose the round after these and write it to the log; one that another run has fixed meanwhile counts."""
        refuse_unknown_parameters()
        check_archive(self.options.archive)
        last = rounds[-1].ended if rounds else None
        found = next_round(
            self.loop,
            len(rounds) + 1,
            None if self.rules.budget_cents is None else self.rules.budget_cents - self._spent(),
            since=last.at if last else attempt_began(this_run()) or datetime.now(UTC),
            skip=frozenset(self.unreadable),
        )
        return None if found is None else self.book.fix(found)

    def _measure(self, fixed: RoundFixed) -> None:
        """Run the round's campaign, or find it, and note its end. A failed one hides no other file's results."""
        try_to_add_round(self.book.store, self.options.archive.prefix, fixed)
        if self.ask_each_round and kept_plan(self.options.archive, fixed.campaign_id) is None:
            self._ask(fixed)
        try:
            problem = self._deployed_round(fixed) if can_suspend() else self._round_here(fixed)
        except AssayError as error:
            if is_temporary(error):
                raise
            problem = str(error)
        table = kept_table(self.options.archive, fixed.campaign_id)
        if table is None or table.location is None:
            self.problems[fixed.number] = problem or "its campaign left no table in the archive"
            line = round_line(Round(fixed=fixed), self.rules.objective, self.problems)
            facts.round_completed(self.loop_id, line, None, news=True)
            if self.designer:
                raise self._failed(f"round {fixed.number} has no results: {self.problems[fixed.number]}")
            return
        self.book.end(
            RoundEnded(
                number=fixed.number,
                table=table.location,
                rows=len(table.rows),
                best=best_value(table.rows, self.rules.objective),
                best_kd_M=table.best_kd_M,
                spent_cents=self.options.books.budget.read().campaign_cents(fixed.campaign_id),
                measured=has_measurement(table.rows),
                problem=problem,
            )
        )

    def _report_rounds(self) -> None:
        """Report the rounds that have ended, also one that ended right before a kill."""
        previous = None
        for entry in self.book.read().rounds:
            if entry.ended is not None:
                news = is_news(entry.ended.at)
                line = round_line(entry, self.rules.objective)
                facts.round_completed(self.loop_id, line, previous, news=news)
                previous = entry.fixed.name

    def _ask(self, fixed: RoundFixed) -> None:
        left = "no budget is set" if fixed.limit_cents is None else usd(fixed.limit_cents)
        approve_round(
            key=f"{self.loop_id}/{fixed.number}",
            what=f"Round {fixed.number} of loop {self.loop_id}, {fixed.designs} designs",
            figures={"designs from": fixed.origin, "campaign": fixed.campaign_id, "budget left": left},
            hours=self.options.policy.approval_hours,
        )

    def _deployed_round(self, fixed: RoundFixed) -> str | None:
        group = f"round-{fixed.campaign_id}"
        if WAITS_TAG + group not in own_tags():  # else an earlier version started it
            group = f"{group}@{self.options.scope}"
        child = start_child(
            "campaign",
            f"assay-{group}",
            self.parameters(fixed),
            run_name=fixed.campaign_id,
            groups=[group],
            is_done=lambda _run: kept_table(self.options.archive, fixed.campaign_id) is not None,
        )
        ended = wait_for_children([child.id], group=group, timeout=self.round_timeout)
        return _problem_of(ended[0].state if ended else None)

    def _round_here(self, fixed: RoundFixed) -> str | None:
        state = call_children([partial(campaign, **self.parameters(fixed), return_state=True)])[0]
        return str(state) if isinstance(state, BaseException) else _problem_of(state)

    def _values(self, rounds: Sequence[Round]) -> list[RoundValue]:
        """The rounds that were tried, in their order; one without a table has no value."""
        return [
            RoundValue(entry.fixed.name, entry.ended.best if entry.ended else None)
            for entry in rounds
            if entry.ended or entry.fixed.number in self.problems
        ]

    def _spent(self) -> int:
        """What the loop's orders cost, in US cents, by the books."""
        campaigns = self.book.read().campaigns
        if not campaigns:
            return 0
        budget = self.options.books.budget.read()
        return sum(budget.campaign_cents(campaign_id) for campaign_id in campaigns)

    def _check_last_round(self, rounds: Sequence[Round]) -> None:
        """Stop a designer's loop before it buys more of what could not be measured; a Retry goes on."""
        last = rounds[-1] if rounds else None
        if not self.designer or last is None or last.ended is None or last.ended.measured:
            return
        began = attempt_began(this_run())
        if began is None or last.ended.at >= began:
            raise self._failed(
                f"round {last.fixed.number}: none of its {last.fixed.designs} designs could be measured, see "
                f"{last.ended.table}. To go on nevertheless, press Retry or start the loop again"
            )

    def _no_more(self) -> str:
        if self.wait_days:
            return f"no new design file came within {self.wait_days:g} days; the next run takes the files that come"
        return "every design file has been measured; the next run takes the files that come"

    def _failed(self, why: str) -> LoopFailed:
        message = f"{why}; nothing further was ordered"
        return LoopFailed(message, report=self._report(Stop.FAILED, message))

    def _ended(self, stop: Stop, words: str) -> State[LoopReport]:
        report = self._report(stop, words)
        get_run_logger().info("Loop %s: %d rounds; %s", self.loop_id, len(report.rounds), words)
        name = "RunsElsewhere" if stop is Stop.RUNS_ELSEWHERE else "Completed"
        return Completed(name=name, message=words, data=report)

    def _report(self, stop: Stop, words: str) -> LoopReport:
        report = loop_report(
            self.loop_id,
            self.book.read(),
            self.rules.objective,
            stopped=words,
            stop=stop,
            problems=self.problems,
            unreadable=self.unreadable.values(),
        )
        if not self.designer:
            by_name = tuple(sorted(report.rounds, key=lambda line: line.name))
            report = report.model_copy(update={"rounds": by_name})
        artifacts.show_loop(report)
        return report


def _problem_of(state: State[Any] | None) -> str | None:
    if state is None:
        return "its run was deleted"
    return None if state.name == "Completed" else f"{state.name}: {state.message}"
