"""`design_build_test`: measure design files as they appear, and pass every measured table to the designer.

One design file is one round and one campaign. The file's name identifies the round, so a scheduled run finds the
earlier rounds and measures the new files only.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from prefect.logging import get_run_logger
from pydantic import Field

from prefect_assay.blocks import Archive, AssayCredentials, SpendingPolicy, Wallet, WebhookEndpoint
from prefect_assay.designs import Reading
from prefect_assay.errors import AssayError, InvalidSequences
from prefect_assay.flows.campaign import campaign
from prefect_assay.flows.run_options import DEADLINE_DAYS, RunOptions
from prefect_assay.models.report import LoopReport, RoundReport
from prefect_assay.models.spec import Assay
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.reporting import artifacts
from prefect_assay.results.row import CampaignTable
from prefect_assay.runs import can_suspend, is_temporary, outlast
from prefect_assay.runs.children import call_children, start_child, start_run, wait_for_children
from prefect_assay.runs.crashes import stop_crash_loop
from prefect_assay.runs.durable import durable_flow
from prefect_assay.runs.tags import WAITS_TAG, own_tags
from prefect_assay.sweeping.cancellations import report_cancellation
from prefect_assay.tasks.collate import kept_table

__all__ = ["design_build_test"]

_SUFFIXES: Final = frozenset({".fasta", ".fa", ".faa", ".csv", ".tsv"})
_ROUND_MARGIN: Final = timedelta(days=250)
_ID_LENGTH: Final = 60  # the longest campaign id


@dataclass(frozen=True)
class _LoopRun:
    """One run of `design_build_test`."""

    options: RunOptions
    loop_id: str
    assay: Assay
    sequences_per_experiment: int
    designer: str | None
    reading: Reading

    @property
    def round_timeout(self) -> timedelta:
        """Prefect's time-out of a suspension for one round: longer than the campaign's own."""
        return self.options.patience + _ROUND_MARGIN

    def parameters(self, campaign_id: str, file: Path) -> dict[str, Any]:
        """The flat parameters of `campaign` for one round."""
        own = {
            "designs": str(file),
            "designs_name": None,  # a path names itself
            "assay": self.assay,
            "campaign_id": campaign_id,
            "sequences_per_experiment": self.sequences_per_experiment,
            "name_column": self.reading.name_column,
            "sequence_column": self.reading.sequence_column,
            "keep_native": self.reading.keep_native,
        }
        return own | self.options.parameters()


@durable_flow(name="design-build-test", on_cancellation=[report_cancellation])
def design_build_test(
    source: str,
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
    request_quote: bool = False,  # noqa: FBT001, FBT002 - a checkbox of the form
    sequences_per_experiment: Annotated[int, Field(ge=1, le=384)] = 96,
    deadline_days: Annotated[int, Field(ge=1, le=365)] = DEADLINE_DAYS,
    poll_seconds: Annotated[float, Field(gt=0)] = 300.0,
    name_column: str | None = None,
    sequence_column: str | None = None,
    keep_native: bool = False,  # noqa: FBT001, FBT002 - a checkbox of the form
) -> LoopReport:
    """Run one campaign per design file of a folder, in the order of their names, until rounds or goal end it.

    Schedule it, or start it by an event when the designer has written a file: finished rounds are not repeated.

    Args:
        source: a folder that the worker sees; every .fasta, .fa, .faa, .csv or .tsv file in it is a round.
        loop_id: names the loop; part of every round's campaign id.
        assay: what to measure in every round.
        credentials: the service's address and your API token.
        policy: caps, and permission for machine payments.
        archive: where results are archived.
        payment_method: async_invoice: a person pays the hosted invoices; a machine rail pays with the wallet.
        wallet: for a machine rail: an X402Wallet for x402-exact, SharedPaymentTokens for mpp-spt.
        webhook: where the service delivers updates.
        max_rounds: most rounds of the loop.
        goal_kd_nM: stop as soon as a round's best K_D is at or below this, in nM.
        designer: deployment (`flow/name`) to start after each round, with the parameters `round_name` and
            `measurements` (the table's address), so that it writes the next design file.
        request_quote: order by quote, even if the estimates are complete.
        sequences_per_experiment: most designs in one experiment.
        deadline_days: how long to wait for an experiment, counted from its order.
        poll_seconds: longest pause between two polls of a run that is not deployed.
        name_column: title of the tables' column of names. Empty: found by usual titles.
        sequence_column: title of the tables' column of sequences. Empty: found by usual titles.
        keep_native: also measure the native inputs in files of ProteinMPNN and LigandMPNN.

    Returns:
        LoopReport: every round with its table and best K_D (M), and why the loop stopped.

    Raises:
        InvalidSequences: the folder does not exist. A round's own problem is in its report.
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
    run = _LoopRun(
        options,
        loop_id=loop_id,
        assay=assay,
        sequences_per_experiment=sequences_per_experiment,
        designer=designer,
        reading=Reading(name_column, sequence_column, keep_native),
    )
    rounds: list[RoundReport] = []
    stopped = "every design file has been measured; the next run takes the files that come"
    for campaign_id, file in _design_files(run, source).items():
        if len(rounds) == max_rounds:
            stopped = f"the loop has had its {max_rounds} rounds"
            break
        # Safe to repeat: a finished round is found, and its table read again.
        rounds.append(
            outlast(
                partial(_run_round, run, campaign_id, file),
                key=f"round-{campaign_id}",
                timeout=run.round_timeout,
                poll=options.poll,
            )
        )
        best = rounds[-1].best_kd_M
        if goal_kd_nM is not None and best is not None and best * 1e9 <= goal_kd_nM:
            stopped = f"round {rounds[-1].name} reached the goal of {goal_kd_nM} nM"
            break
    report = LoopReport(loop_id=loop_id, rounds=tuple(rounds), stopped=stopped)
    artifacts.show_loop(report)
    get_run_logger().info("Loop %s: %d rounds; %s", loop_id, len(rounds), stopped)
    return report


def _design_files(run: _LoopRun, source: str) -> dict[str, Path]:
    """The design files by their round's campaign id, in the order of their names."""
    folder = Path(source).expanduser()
    if not folder.is_dir():
        raise InvalidSequences([f"{source}: no such folder; create it and put design files into it"])
    files: dict[str, Path] = {}
    for file in sorted(f for f in folder.iterdir() if f.suffix.lower() in _SUFFIXES and f.is_file()):
        campaign_id = f"{run.loop_id}-{re.sub(r'[^A-Za-z0-9._-]+', '-', file.stem)}"[:_ID_LENGTH]
        if campaign_id in files:
            raise InvalidSequences(
                [
                    f"{file}: {files[campaign_id].name} would be the same round, {campaign_id}; rename one of them"
                ]
            )
        files[campaign_id] = file
    return files


def _run_round(run: _LoopRun, campaign_id: str, file: Path) -> RoundReport:
    try:
        if can_suspend():
            problem = _deployed_round(run, campaign_id, file)
        else:
            problem = _round_here(run.parameters(campaign_id, file))
    except AssayError as error:
        if is_temporary(error):
            raise
        problem = str(error)  # a round that cannot be started must not hide the others
    table = kept_table(run.options.archive, campaign_id)
    if table is not None:
        _start_designer(run, file.stem, table)
    return RoundReport(
        name=file.stem,
        campaign_id=campaign_id,
        table=table.location if table else None,
        best_kd_M=table.best_kd_M if table else None,
        problem=problem,
    )


def _deployed_round(run: _LoopRun, campaign_id: str, file: Path) -> str | None:
    group = f"round-{campaign_id}"
    if WAITS_TAG + group not in own_tags():  # else an earlier version started it
        group = f"{group}@{run.options.scope}"
    child = start_child(
        "campaign",
        f"assay-{group}",
        run.parameters(campaign_id, file),
        run_name=campaign_id,
        groups=[group],
        is_done=lambda _run: kept_table(run.options.archive, campaign_id) is not None,
    )
    ended = wait_for_children([child.id], group=group, timeout=run.round_timeout)
    state = ended[0].state if ended else None
    if state is None:
        return "its run was deleted"
    return None if state.name == "Completed" else f"{state.name}: {state.message}"


def _round_here(parameters: dict[str, Any]) -> str | None:
    state = call_children([partial(campaign, **parameters, return_state=True)])[0]
    if isinstance(state, BaseException):
        return str(state)
    return None if state.name == "Completed" else f"{state.name}: {state.message}"


def _start_designer(run: _LoopRun, round_name: str, table: CampaignTable) -> None:
    """Start the designer once per round, however often this run repeats it."""
    if run.designer is None:
        return
    start_run(
        run.designer,
        {"round_name": round_name, "measurements": table.location},
        idempotency_key=f"assay-designer-{run.loop_id}-{round_name}",
    )
