"""The demo's story. Every figure is read from the archive, the Prefect API, the lab or the process table."""

import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from prefect.client.orchestration import get_client
from rich.console import Console
from rich.tree import Tree

from prefect_assay.analysis.report.documents import kept_report
from prefect_assay.analysis.results import describe_outcomes, make_rich_table
from prefect_assay.analysis.tables.summary import read_summary_table
from prefect_assay.archive import LocalStore, list_versions, verify_versions
from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.archive.layout import REPORT_PATH
from prefect_assay.blocks import AssayAccount, LocalArchive
from prefect_assay.blocks.deployment_runs import deployment_of, start_run
from prefect_assay.blocks.order_ledger import open_ledgers
from prefect_assay.campaigns.status import Progress
from prefect_assay.cli.archives.archive import show_report
from prefect_assay.cli.demo.campaign import CAP_CENTS, CampaignWatch, save_demo_account
from prefect_assay.designs.read import read_sequences
from prefect_assay.errors import ConfigurationError
from prefect_assay.local.stack import LocalStack
from prefect_assay.orders.find import find_order
from prefect_assay.orders.job import Order
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.campaign_log import CampaignLog
from prefect_assay.orders.purchase import itemise_price
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.billing import usd
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.models.vocabulary import ExperimentStatus, ExperimentType, Method
from prefect_assay.service.words import in_words, many
from prefect_assay.tasks.collate import kept_plan, read_campaign_table

CAMPAIGN: Final = "egfr-round1"
TARGET: Final = "Human EGFR, extracellular domain"
_DAYS_MAX: Final = 30
_PAUSE_SECONDS: Final = 0.15
_FILES_SHOWN: Final = 6
# Between two of these a run is Pending or Submitting.
_STATES_SHOWN: Final = ("Running", "Suspended", "Resuming", "Completed")


class Story:
    """Follows one campaign from its designs to its verified archive."""

    def __init__(
        self, console: Console, stack: LocalStack, *, designs: Path, archive: Path, here: Path
    ) -> None:
        """Paths are shown relative to `here`, the user's working directory."""
        self._console = console
        self._stack = stack
        self._designs = designs
        self._folder = archive
        self._here = here
        self._archive = LocalArchive(root=str(archive))
        self._portal = ""

    def play(self, began: float) -> None:
        """Play the whole story; a failed part or run is a `ConfigurationError`."""
        self._step(
            "Start",
            f"Prefect server, lab, webhook receiver and served flows are up ({time.monotonic() - began:.0f} s)",
        )
        self._line(f"archive and designs: {self._short(self._designs.parent)}/")
        account = save_demo_account(self._stack, self._folder)
        self._line(
            f"account {account.name} (simulated) saved: token, caps, archive, wallet with a fresh key, webhook; "
            f"the run may spend {usd(CAP_CENTS)} without asking"
        )
        run = start_run(deployment_of("campaign"), self._parameters(account), name=CAMPAIGN)
        with get_client(sync_client=True) as client, account.credentials.get_client() as service:
            log = CampaignLog(self._archive.get_store(), "", CAMPAIGN)
            watch = CampaignWatch(self._stack, client, run.id, log)
            plan = self._wait_for_plan(watch)
            order = self._show_order(watch, service, plan, open_ledgers(account.credentials, self._archive))
            self._show_payment(watch, service, order)
            self._show_sleep(watch)
            self._show_days(watch, service, order)
            self._show_wake(watch, order)
        self._show_results()
        self._show_archive()
        self._show_report()

    def _parameters(self, account: AssayAccount) -> dict[str, Any]:
        assay = Assay(experiment_type=ExperimentType.AFFINITY, target=TARGET, method=Method.BLI)
        return {
            "designs": str(self._designs),
            "assay": assay,
            "campaign_id": CAMPAIGN,
            "account": account,
            "spend_up_to_usd": CAP_CENTS / 100,
        }

    def _wait_for_plan(self, watch: CampaignWatch) -> Plan:
        """Print the order's step, wait until the campaign has archived its plan, and return it."""
        sequences = read_sequences(str(self._designs))
        self._step("Order", f"{many(len(sequences), 'design')} against {TARGET}, binding affinity by BLI")
        with self._console.status("The campaign reads and checks the designs …"):
            return watch.until(lambda: kept_plan(self._archive, CAMPAIGN), "a plan")

    def _show_order(self, watch: CampaignWatch, service: AssayClient, plan: Plan, ledgers: Ledgers) -> Order:
        planned = plan.experiments[0]
        estimate = service.experiments.estimate_cost(planned.spec)
        parts = estimate.breakdown
        if parts is None or parts.assay is None:
            raise ConfigurationError("the lab gives no complete estimate for the demo's target")
        items = " + ".join(
            f"{line.name} {usd(line.cents)}" for line in itemise_price(estimate)[0] if line.cents is not None
        )
        self._line(
            f"estimate: {items} = [bold]{usd(parts.total_cents)}[/bold]; the policy's cap is {usd(CAP_CENTS)}"
        )
        with self._console.status("The run orders the experiment …"):
            log = ledgers.open_order(CAMPAIGN, planned.order_key)
            order = watch.until(lambda: find_order(service, log), "an order")
        self._portal = order.experiment_url or self._stack.lab.base_url
        self._line(
            f"ordered: experiment [bold]{order.experiment_code}[/bold]; its name contains the order key "
            f"{planned.order_key}, so it is never ordered twice"
        )
        return order

    def _show_payment(self, watch: CampaignWatch, service: AssayClient, order: Order) -> None:
        self._step(
            "Pay", "by machine: x402-exact, a signed stablecoin transfer, settled by the lab without a chain"
        )
        with self._console.status("The invoice is read, compared with the policy and paid …"):
            receipt = watch.until(watch.receipt, "a receipt")
        answers = [
            str(entry["status"]) for entry in self._stack.lab.journal() if entry["path"].endswith("/pay")
        ]
        invoice = service.invoices.find_for_experiment(order.experiment_id)
        self._line(f"the lab's journal: POST …/pay answered {', then '.join(answers)}")
        if invoice is None:
            raise ConfigurationError(f"the lab lists no invoice for experiment {order.experiment_code}")
        self._line(f"invoice {invoice.id}: [bold]{invoice.status}[/bold], {usd(invoice.amount)}")
        for line in receipt.splitlines():
            name, _, value = line.strip("| ").partition(" | ")
            if name in {"transaction", "network", "payer"}:
                self._line(f"receipt: {name} {value.strip('` ')}")

    def _show_sleep(self, watch: CampaignWatch) -> None:
        with self._console.status("The run suspends …"):
            run = watch.until(watch.suspended, "a suspended run")
        state = run.state.name if run.state else ""
        self._step(
            "Wait", f"flow run {run.name} is [bold cyan]{state}[/bold cyan]: the laboratory takes its time"
        )
        self._line(
            f"processes below the serving process {self._stack.pid('runner')}: {self._flow_processes()}; "
            "a wait of days holds none"
        )

    def _show_days(self, watch: CampaignWatch, service: AssayClient, order: Order) -> None:
        """Let lab days pass, each in a moment; every update of the laboratory is a signed webhook."""
        status = ""
        delivered = len(self._stack.lab.deliveries())
        for day in range(1, _DAYS_MAX):
            self._stack.lab.advance(days=1)
            before, status = status, str(service.experiments.get(order.experiment_id).status)
            journal = self._stack.lab.deliveries()
            answers = [str(entry["status"]) for entry in journal[delivered:]]
            delivered = len(journal)
            webhooks = f"webhook answered {', '.join(answers)}" if answers else ""
            self._line(f"lab day {day:>2}  {in_words(status):<21}  {webhooks}")
            if status == ExperimentStatus.DONE:
                return
            if status == ExperimentStatus.IN_REVIEW != before:
                self._show_early_wake(watch, order)
            time.sleep(_PAUSE_SECONDS)
        raise ConfigurationError(f"the lab has not finished after {_DAYS_MAX} lab days")

    def _show_early_wake(self, watch: CampaignWatch, order: Order) -> None:
        """Wait until the run is suspended again, before the update that completes it."""
        with self._console.status("Each update wakes the run; it looks, and suspends again …"):
            watch.until(watch.suspended, "a suspended run")
        kept = list_versions(LocalStore(self._folder), "", CAMPAIGN, str(order.experiment_code))
        outcome = (
            "preliminary results are archived as v001, the wait goes on" if kept else "nothing to fetch yet"
        )
        self._line(
            f"            [dim]the run woke, looked and suspended again: {outcome}; processes: {self._flow_processes()}[/dim]"
        )

    def _show_wake(self, watch: CampaignWatch, order: Order) -> None:
        self._step("Wake", f"the last webhook reports that {order.experiment_code} is done")
        with self._console.status("The run wakes, fetches, archives and collates …"):
            ended = watch.until(watch.over, "the end of the campaign")
            # Its log says so right before the run ends.
            run = watch.until(
                lambda: run if (run := watch.run()).state_name == "Completed" else None, "a run that ends"
            )
        names = [str(state.name) for state in watch.history() if state.name in _STATES_SHOWN]
        self._line(f"states of {run.name}: {' > '.join(names)}")
        if ended.progress is not Progress.COMPLETE:
            raise self._stack.failure("runner", f"has a campaign that is {ended.progress}: {ended.outcome}")
        self._line(f"campaign {ended.name}: [bold green]{ended.progress}[/bold green], {ended.outcome}")

    def _show_results(self) -> None:
        table = read_campaign_table(self._archive, CAMPAIGN)
        if table is None:
            raise ConfigurationError(f"the campaign completed and {self._folder} holds no table")
        self._step("Results", "measured values of real designs, from the archived table")
        designs = read_summary_table(LocalStore(self._folder), "", CAMPAIGN, table.rows).designs
        self._console.print(make_rich_table(designs))
        self._line(
            f"{describe_outcomes(designs)}: the data as published; most designs of a first round do not bind"
        )
        self._line(f"table: {self._short(Path(table.location or ''))}")

    def _show_archive(self) -> None:
        self._step("Archive", "every answer of the service as received, sealed by manifests with SHA-256")
        tree = Tree(f"{self._short(self._folder)}/")
        _add_folders(tree, self._folder)
        self._console.print(tree)
        report = verify_versions(LocalStore(self._folder))
        self._line("archive verify: ", end="")
        show_report(report.model_copy(update={"location": self._short(self._folder)}))
        if not report.ok:
            raise ConfigurationError("the demo's archive is damaged")

    def _show_report(self) -> None:
        kept = kept_report(LocalStore(self._folder), "", CAMPAIGN)
        table = read_campaign_table(self._archive, CAMPAIGN)
        if kept is None or REPORT_PATH not in kept.files or table is None:
            raise ConfigurationError(f"the campaign completed and {self._folder} holds no report of it")
        self._step("Report", "one HTML file without network: results, curves, payments, methods, checksums")
        self._line(f"report: {self._short(Path(kept.location) / REPORT_PATH)}")
        self._line(
            f"open it: prefect-assay report {CAMPAIGN} {shlex.quote(self._short(self._folder))} --open"
        )

    def stay(self) -> None:
        """Leave everything running until Ctrl-C or the end of a process, and print where to look."""
        stack = self._stack
        self._step(
            "Look", "everything stays up until Ctrl-C; nothing of it is reachable from outside this machine"
        )
        for place, what in (
            (f"{stack.ui_url}/runs", "runs: the campaign, its tasks, logs and states"),
            (f"{stack.ui_url}/artifacts", "artifacts: estimate, receipt, results, report"),
            (f"{stack.ui_url}/deployments", "deployments: campaign > Run > Custom run shows the form"),
            (f"{stack.ui_url}/blocks", "blocks: what a user configures"),
            (self._portal, "the experiment in the lab's portal"),
        ):
            self._line(f"{place}  [dim]{what}[/dim]")
        for line in _describe_activation(self._here):
            self._line(line)
        self._line(f"PREFECT_API_URL={stack.api_url} prefect-assay status  [dim]in another terminal[/dim]")
        with self._console.status("Running. Ctrl-C stops everything …"):
            while True:
                stack.check()
                time.sleep(1)

    def say_goodbye(self, seconds: float) -> None:
        """Print what to try next."""
        self._step("Done", f"in {seconds:.0f} s")
        for line in _describe_activation(self._here):
            self._console.print(f"  {line}", soft_wrap=True)
        for command, what in (
            ("prefect-assay demo --keep", "the same, and everything stays up to look at in the Prefect UI"),
            (
                f"prefect-assay designs check {shlex.quote(self._short(self._designs))}",
                "check designs; name your own file",
            ),
            ("prefect-assay lab", "the lab alone, for your own code and tests"),
        ):
            self._console.print(f"  {command:<64} [dim]{what}[/dim]", soft_wrap=True)

    def _short(self, path: Path) -> str:
        return str(path.relative_to(self._here)) if path.is_relative_to(self._here) else str(path)

    def _flow_processes(self) -> int:
        return len(self._stack.runner_processes())

    def _step(self, title: str, text: str) -> None:
        self._console.print(f"\n[bold]{title:<8}[/bold] {text}", soft_wrap=True)

    def _line(self, text: str, *, end: str = "\n") -> None:
        self._console.print(f"         {text}", soft_wrap=True, end=end)


def _describe_activation(here: Path) -> Iterator[str]:
    """The line that makes the commands known to a shell, where they are in an environment that is not active."""
    script = Path(sys.prefix) / "bin" / "activate"
    if shutil.which("prefect-assay") is None and script.exists():
        shown = script.relative_to(here) if script.is_relative_to(here) else script
        yield f". {shlex.quote(str(shown))}  [dim]once in each terminal, for the commands[/dim]"


def _add_folders(tree: Tree, folder: Path) -> None:
    """Add the folders below an archive's folder, with at most a few files of each."""
    entries = sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name))
    visible = [path for path in entries if not path.name.startswith(".")]
    files = [path for path in visible if path.is_file()]
    for path in files[:_FILES_SHOWN]:
        tree.add(f"{path.name} [dim]{path.stat().st_size:,} B[/dim]")
    if len(files) > _FILES_SHOWN:
        tree.add(f"[dim]… and {many(len(files) - _FILES_SHOWN, 'more file')}[/dim]")
    for path in visible:
        if path.is_dir():
            _add_folders(tree.add(f"{path.name}/"), path)
