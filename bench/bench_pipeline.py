"""A campaign of one experiment compared with an empty flow with as many tasks, on the same Prefect server: wall time and CPU of the run.

    python bench/bench_pipeline.py [--rounds 3]

The campaign plans, orders, pays a hosted invoice, waits and archives, in one process without a deployment, with a lab whose days
take no time. Then a flow runs as many tasks that do nothing: the floor of what Prefect takes. It has a
parameter, for which Prefect imports its serializer at the first run. Both are run without the extras: what fits, curves and the
page cost is in `bench_report.py`. Each side runs in processes of its own, in turns; imports of this package are not counted.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from figures import Ratio, report
from installation import EGFR, installation
from prefect import flow, task

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "lab" / "tests"))

from assay_lab.testing import LocalLab
from lab_support.designs import invented_designs
from prefect_assay.blocks import AssayAccount, AssayCredentials, LocalArchive, SpendingPolicy
from prefect_assay.designs.options import CampaignOptions, WaitingOptions
from prefect_assay.flows import campaign
from prefect_assay.service.models.spec import Assay

DESIGNS = 24
SECONDS_PER_DAY = 0.005
EXTRAS = ("scipy", "pyarrow", "jinja2")
# From cProfile over the main thread of both sides and py-spy over all threads, 2026-11-25
MISSES = {
    "wall time": "The difference is smaller than that between two runs, because the campaign computes while Prefect's threads "
    "wait.",
    "CPU of the run": "This is the work that an empty task doesn't do: some twenty requests to the service, three archived versions "
    "with their digests, and the report (0.12 s). Prefect takes another 0.08 s to search plans and tables for "
    "futures.",
}


def spent():
    """Seconds of CPU of this process, and of the moment."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, time.perf_counter()


def ours(arguments):
    """The campaign, as if the extras were not installed."""
    sys.modules.update(dict.fromkeys(EXTRAS))
    before = spent()
    campaign(
        designs=arguments["designs"],
        assay=Assay(target=arguments["target"]),
        account=AssayAccount(
            credentials=AssayCredentials(base_url=arguments["base_url"], token=arguments["token"]),
            policy=SpendingPolicy(accept_quotes=True, per_experiment_usd=20_000, per_campaign_usd=50_000),
            archive=LocalArchive(root=arguments["archive"]),
        ),
        spend_up_to_usd=50_000,
        campaign_id=arguments["campaign_id"],
        options=CampaignOptions(waiting=WaitingOptions(poll_seconds=0.1)),
    )
    return before, spent()


def empty(arguments):
    """A flow with as many tasks as the campaign."""

    @task
    def nothing():
        return None

    @flow
    def plain(designs):  # noqa: ARG001 - that there is one counts
        for _ in range(arguments["tasks"]):
            nothing()

    before = spent()
    plain(arguments["designs"])
    return before, spent()


def side(name, arguments, environment):
    """Seconds of wall time and of CPU."""
    command = [sys.executable, __file__, "--side", name, json.dumps(arguments)]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def tasks_of(api, campaign_id):
    """Task runs of the campaign."""
    ours = [run for run in api.read_flow_runs() if campaign_id in json.dumps(run.parameters, default=str)]
    if len(ours) != 1:
        raise SystemExit(f"{len(ours)} runs of the campaign, not one")
    named = {"flow_runs": {"id": {"any_": [str(ours[0].id)]}}}
    return api.request("POST", "/task_runs/count", json=named).json()


def measure(rounds):
    taken = {"ours": [], "empty": []}
    with tempfile.TemporaryDirectory(prefix="bench-pipeline-") as folder:
        designs = Path(folder) / "designs.fasta"
        designs.write_text("".join(f">{d['name']}\n{d['aa_string']}\n" for d in invented_designs(DESIGNS)))
        with (
            installation(Path(folder), start_seconds=300) as made,
            LocalLab(clock=f"scaled:{SECONDS_PER_DAY}") as lab,
        ):
            arguments = {
                "designs": str(designs),
                "target": EGFR,
                "base_url": lab.base_url,
                "token": lab.token,
            }
            environment = {"PREFECT_API_URL": made.stack.api_url, "PREFECT_HOME": f"{folder}/client-home"}
            made.stack.stop_runner()
            for number in range(rounds + 1):
                name = f"bench-{uuid.uuid4().hex[:8]}"
                campaign_arguments = arguments | {
                    "campaign_id": name,
                    "archive": f"{folder}/archive-{number}",
                }
                values = {"ours": side("ours", campaign_arguments, environment)}
                time.sleep(3)  # task runs are recorded a moment later
                tasks = tasks_of(made.api, name)
                values["empty"] = side("empty", arguments | {"tasks": tasks}, environment)
                if number:
                    for which, value in values.items():
                        taken[which].append(value)
    return taken, tasks


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--side", nargs=2, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.side:
        name, arguments_json = chosen.side
        (cpu, wall), (cpu_after, wall_after) = {"ours": ours, "empty": empty}[name](
            json.loads(arguments_json)
        )
        print(json.dumps([wall_after - wall, cpu_after - cpu]))
        return
    taken, tasks = measure(chosen.rounds)
    wall, cpu = (
        {name: statistics.median(value[place] for value in values) for name, values in taken.items()}
        for place in (0, 1)
    )
    campaign_of = f"a campaign of {DESIGNS} designs"
    floor = f"an empty flow with as many tasks ({tasks})"
    for what, medians, goal in (("wall time", wall, 1.0), ("CPU of the run", cpu, 1.6)):
        report(
            Ratio(
                "pipeline",
                f"{campaign_of}, {what}",
                ours=medians["ours"],
                beside=floor,
                other=medians["empty"],
                unit="s",
                goal=goal,
                miss=MISSES[what],
            )
        )


if __name__ == "__main__":
    main()
