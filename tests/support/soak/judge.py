"""What became of a soak, by the books of others: the lab's, the archive's, Prefect's. Never by the client's own word."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterDeploymentId
from prefect.client.schemas.objects import FlowRun, StateType

from prefect_assay.archive import verify_versions
from prefect_assay.archive.archived import Manifest
from prefect_assay.archive.layout import (
    CLAIM_NAME,
    CRATE_NAME,
    experiment_folder,
    version_folder,
    version_of,
)
from prefect_assay.archive.read import list_versions, read_manifest
from prefect_assay.archive.store import Store, join_key
from prefect_assay.blocks.order_ledger import open_books
from prefect_assay.campaigns.runs.queries import read_runs
from prefect_assay.campaigns.runs.tags import EXPERIMENT_TAG, tag_values
from prefect_assay.orders.ledger.campaign_log import CampaignLog
from prefect_assay.service.models.vocabulary import MACHINE_RAILS
from support.crash.story import contradictions
from support.soak.story import FAULTS, PER_CAMPAIGN, Soak, patiently

_WOKEN = re.compile(r"(\d+) woken")
_ANSWERED = re.compile(r'"([A-Z]+ \S+) HTTP/1\.1" (\d{3})')

# A version per change of the results. Its status is that of the list's row, which is read before the results: final results
# that are released in between are kept as partial ones first, and as complete ones by the next look.
VERSIONS = (["all"], ["partial", "all"], ["partial", "partial", "all"])


@dataclass(frozen=True)
class Found:
    """What the judge has found: violations, and figures for people."""

    violations: tuple[str, ...]
    figures: dict[str, Any]


def judge(soak: Soak, lost: list[FlowRun]) -> Found:
    """Everything that a soak is to show. A violation names the experiment or run.

    Args:
        soak: at its end.
        lost: what `lost_wakes` has found after the last sweep.
    """
    runs = _runs(soak, "campaign")
    sweeps = _runs(soak, "sweep")
    deliveries = _deliveries(soak)
    violations = [
        *_ordered_and_paid_once(soak),
        *_archived_once(soak),
        *(f"lost wake: {run.name} {run.id} slept, and its experiments had ended" for run in lost),
        *_every_campaign_ended(soak, runs),
        *_sweeps_ended(sweeps),
        *_server_answered(soak),
        *_forgeries_refused(soak, deliveries),
    ]
    return Found(tuple(violations), _figures(soak, runs, sweeps, deliveries))


def lost_wakes(soak: Soak) -> list[FlowRun]:
    """Runs that sleep although all of their experiments have ended. Asked for after the last sweep has run."""
    settled = {e.id for e in soak.world.service.experiments.iterate() if e.status in {"done", "canceled"}}
    asleep = [run for run in _runs(soak, "campaign") if run.state.type == StateType.PAUSED]
    return [run for run in asleep if settled.issuperset(tag_values(run.tags, EXPERIMENT_TAG))]


def _ordered_and_paid_once(soak: Soak) -> Iterator[str]:
    experiments = list(soak.world.service.experiments.iterate())
    orders = Counter(e.name.split()[0] for e in experiments)
    for campaign in soak.runs:
        if orders[campaign] != PER_CAMPAIGN:
            yield f"{orders[campaign]} experiments of {campaign}"
    if len(experiments) != PER_CAMPAIGN * len(soak.runs):
        yield f"{len(experiments)} experiments for {len(soak.runs)} campaigns"
    settlements = soak.world.stack.lab.settlements()
    settled = Counter(s["experiment_id"] for s in settlements)
    by_machine = {s["experiment_id"] for s in settlements if s["payment_method"] in MACHINE_RAILS}
    for experiment in experiments:
        if experiment.status != "done" or experiment.results_status != "all":
            yield f"{experiment.name} is {experiment.status} with {experiment.results_status} results"
        if settled[experiment.id] != 1:
            yield f"{settled[experiment.id]} settlements for {experiment.name}"
    blocks = soak.world.blocks
    for book in open_books(blocks["credentials"], blocks["archive"]).list_orders():
        ordered = book.read().ordered
        own = ordered.experiment_id if ordered else ""
        found = contradictions(book, [own] * settled[own], by_machine=own in by_machine)
        yield from (f"the log of {book.campaign_id}: {wrong}" for wrong in found)


def _archived_once(soak: Soak) -> Iterator[str]:
    store, prefix = soak.world.blocks["archive"].get_store(), soak.world.blocks["archive"].prefix
    for experiment in soak.world.service.experiments.iterate():
        folder = experiment_folder(prefix, experiment.name.split()[0], experiment.code)
        found = list_versions(store, prefix, experiment.name.split()[0], experiment.code)
        manifests = [
            read_manifest(store, version_folder(folder, version.version))[0]
            for version in found
            if version.complete
        ]
        results = [manifest.results_status for manifest in manifests]
        if results not in VERSIONS:
            yield f"{experiment.name} has versions with {results} results in the archive"
        contents = {(manifest.results_status, _results_digest(manifest)) for manifest in manifests}
        if len(contents) < len(manifests):
            yield f"{experiment.name} has a version that repeats another one: {results}"
        for version in found:
            if not version.complete and not left_behind(
                store, version_folder(folder, version.version), manifests
            ):
                yield f"{experiment.name} has the versions {found} in the archive"
    report = verify_versions(store, prefix)
    for finding in report.findings:
        if finding.kind != "incomplete":  # judged above
            yield f"archive: {finding.kind} {finding.key}: {finding.detail}"


def _results_digest(manifest: Manifest) -> str:
    (results,) = [file for file in manifest.files if file.path == "raw/results-0001.json"]
    return results.sha256


def left_behind(store: Store, folder: str, complete: list[Manifest]) -> bool:
    """An execution was killed in this version, and the next one found other results, so the next number is theirs.

    With the same results the next execution had to finish it.
    """
    claim = json.loads(store.read(join_key(folder, CLAIM_NAME)))

    def content(files: Iterable[dict[str, Any]]) -> set[tuple[str, str]]:
        return {(file["path"], file["sha256"]) for file in files if file["path"] != CRATE_NAME}

    number = version_of(folder.rpartition("/")[2]) or 0
    begun = (claim["results_status"], content(claim["files"]))
    ended = [
        (manifest.results_status, content(file.model_dump() for file in manifest.files))
        for manifest in complete
    ]
    return begun not in ended and any(manifest.version > number for manifest in complete)


def _every_campaign_ended(soak: Soak, runs: list[FlowRun]) -> Iterator[str]:
    """By the campaigns' logs; a run that was killed has a successor, and none is left asleep."""
    archive = soak.world.blocks["archive"]
    for campaign in soak.runs:
        state = CampaignLog(archive.get_store(), archive.prefix, campaign).read()
        if state.over is None or not state.over.complete:
            yield f"campaign {campaign} is not over: {state.over}"
    for run in runs:
        if not _completed(run) and not _died_with_the_server(run):
            yield f"run {run.name} {run.id} is {run.state.name}: {run.state.message}"


def _died_with_the_server(run: FlowRun) -> bool:
    """Whether a run crashed, or failed because Prefect's server did not answer it; another run has taken over."""
    refused = run.state.type == StateType.FAILED and "Connection refused" in (run.state.message or "")
    return refused or run.state.type == StateType.CRASHED


def _sweeps_ended(sweeps: list[FlowRun]) -> Iterator[str]:
    """Killed ones are replaced by the next."""
    for run in sweeps:
        if run.state.type not in {StateType.COMPLETED, StateType.CRASHED}:
            yield f"sweep {run.name} is {run.state.name}: {run.state.message}"


def _server_answered(soak: Soak) -> Iterator[str]:
    """No 5xx of the Prefect server's, but while it is started or stopped."""
    serving, failed, requests = False, Counter[str](), 0
    with soak.world.stack.logs["server"].open(errors="replace") as log:
        for line in log:
            if "Application startup complete" in line:
                serving = True
            elif "Shutting down" in line or "Started server process" in line:
                serving = False
            elif serving and (answer := _ANSWERED.search(line)):
                requests += 1
                if answer[2].startswith("5"):
                    failed[f"{answer[1]} {answer[2]}"] += 1
    if not requests:
        yield "the server's log shows no request"
    for what, count in failed.items():
        yield f"{count} of {requests} requests to the server: {what}"


def _completed(run: FlowRun) -> bool:
    return bool(run.state and run.state.type == StateType.COMPLETED)


def _forgeries_refused(soak: Soak, deliveries: list[dict[str, Any]]) -> Iterator[str]:
    for how, status, asleep in soak.forged:
        if status != 401 or not asleep:
            yield f"forged ({how}): answered {status}, the run {'slept on' if asleep else 'was woken'}"
    for delivery in deliveries:
        forged, status = delivery["fault"] == "bad_signature", delivery["status"]
        # Without a status there was no receiver at that moment.
        if forged and status not in {401, None}:
            yield f"forged delivery {delivery['delivery_id']} was answered {status}"
        if not forged and status is not None and status not in {200, 503}:
            yield f"genuine delivery {delivery['delivery_id']} was answered {status}"


def _runs(soak: Soak, flow: str) -> list[FlowRun]:
    chosen = FlowRunFilterDeploymentId(any_=[soak.world.deployments[flow]])
    return patiently(lambda: read_runs(soak.world.api, FlowRunFilter(deployment_id=chosen)))


def _deliveries(soak: Soak) -> list[dict[str, Any]]:
    return soak.world.stack.lab.deliveries()


def _figures(
    soak: Soak, runs: list[FlowRun], sweeps: list[FlowRun], deliveries: list[dict[str, Any]]
) -> dict[str, Any]:
    noted = soak.world.executions()
    executions = [line for line in noted if line["event"] == "execution"]
    of_runs = [line for line in executions if line["flow"] == "campaign"]
    cpu = soak.world.stack.cpu() | {"executions": sum(line["cpu"] for line in executions)}
    resumed = sum(_resumed(soak, run.id) for run in runs)
    by_sweep = sum(int(m[1]) for run in sweeps if (m := _WOKEN.search(run.state.message or "")))
    faults = Counter(d["fault"] or "none" for d in deliveries)
    return {
        "campaigns": len(soak.runs),
        "runs": len(runs),
        "executions": len(executions),
        "sweeps": dict(Counter(run.state.name for run in sweeps)),
        "wakes by webhook": resumed - by_sweep,
        "wakes by sweep": by_sweep,
        "killed executions": sum(line["killed"] for line in executions),
        "otherwise crashed": sum(line["code"] != 0 and not line["killed"] for line in executions),
        "declared crashed after a worker's death": sum(line["event"] == "zombie" for line in noted),
        "hanging": sum(line["event"] == "hangs" for line in noted),
        "restarts": dict(soak.restarts),
        "delivery attempts": len(deliveries),
        "faults": {name: round(faults[name] / max(1, len(deliveries)), 3) for name, _ in FAULTS},
        "answers": dict(Counter(str(d["status"]) for d in deliveries if d["fault"] != "drop")),
        "forged by the test": len(soak.forged),
        "seconds": round(soak.seconds, 1),
        "cpu seconds": {name: round(value, 1) for name, value in cpu.items()},
        "cpu seconds per campaign": round(sum(cpu.values()) / max(1, len(soak.runs)), 2),
        "cpu seconds per execution": round(cpu["executions"] / max(1, len(executions)), 3),
        "executions per campaign": round(len(of_runs) / max(1, len(soak.runs)), 2),
    }


def _resumed(soak: Soak, run_id: UUID) -> int:
    """By Prefect's history of the run."""
    states = patiently(lambda: soak.world.api.read_flow_run_states(run_id))
    return sum(state.name == "Resuming" for state in states)
