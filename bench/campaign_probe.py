"""Plays one campaign on a stack of the tree that it is imported from, and prints its figures as JSON (bench_campaign.py)."""

import json
import os
import re
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import psutil
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, PREFECT_HOME, PREFECT_LOGGING_TO_API_ENABLED, temporary_settings

from assay_lab.rails.x402 import X402Settings
from prefect_assay.blocks import (
    AssayAccount,
    AssayCredentials,
    LocalArchive,
    SpendingPolicy,
    WebhookEndpoint,
    X402Wallet,
)
from prefect_assay.local.stack import LocalStack

EGFR = "Human EGFR, extracellular domain"
RESIDUES = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"
DESIGNS, PER_EXPERIMENT = 11, 3
DAYS_MAX = 25
# Of workers, runners and the stack itself, which are there without any campaign.
IDLE = ("get_scheduled_flow_runs", "/workers/heartbeat", "/health", "/admin/", "/csrf-token", "/ready")
BUSY = ["SCHEDULED", "PENDING", "RUNNING", "CANCELLING"]
FLOWS = ("campaign", "experiment")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|inv_\w+")


def main():
    folder = Path(sys.argv[1])
    database = folder / "prefect.db"
    env = {
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{database}",
        "PYTHONPATH": os.environ["PYTHONPATH"],
        "BENCH_REQUESTS": os.environ["BENCH_REQUESTS"],
        "PYTHONSAFEPATH": "1",
    }
    stack = LocalStack(folder / "stack", env=env, start_seconds=600)
    settings = {
        PREFECT_API_URL: stack.api_url,
        PREFECT_HOME: folder / "client-home",
        PREFECT_LOGGING_TO_API_ENABLED: False,
    }
    with temporary_settings(updates=settings), stack, get_client(sync_client=True) as api:
        # What this process asks is not a cost of a campaign.
        api._client.headers["x-bench"] = "1"  # noqa: SLF001
        probe = Probe(stack, api, database)
        print(json.dumps(probe.play(saved_blocks(stack, folder / "archive"))))


def saved_blocks(stack, archive):
    """The account, saved, as a reference that the API takes, and what it may spend."""
    rail = X402Settings()
    blocks = {
        "credentials": AssayCredentials(base_url=stack.lab.base_url, token=stack.lab.token),
        "policy": SpendingPolicy(
            accept_quotes=True,
            per_experiment_usd=20_000,
            per_campaign_usd=50_000,
            machine_payments=True,
            rolling_usd=500_000,
        ),
        "wallet": X402Wallet(
            private_key="0x" + "1" * 64, networks=[rail.network], assets=[rail.asset], pay_to=[rail.pay_to]
        ),
        "webhook": WebhookEndpoint(url=stack.receiver_url, signing_key=stack.signing_key),
        "archive": LocalArchive(root=str(archive)),
    }
    for name, block in blocks.items():
        block.save(f"bench-{name}", overwrite=True)
    account = AssayAccount(**blocks, payment_method="x402-exact").save("bench", overwrite=True)
    return {"account": {"$ref": {"block_document_id": str(account)}}, "spend_up_to_usd": 50_000}


class Probe:
    """One stack, and what has been counted on it."""

    def __init__(self, stack, api, database):
        self.stack, self.api, self.database = stack, api, database

    def play(self, blocks):
        flows = [flow.id for flow in self.api.read_flows(limit=50) if flow.name in FLOWS]
        before = self.counted()
        run = self.start(blocks)
        self.until_calm(flows)
        first, days = self.counted(), 0
        while not self.is_final(run):
            if self.state(run) != "Suspended":  # it was woken late
                self.until_calm(flows)
                continue
            if days == DAYS_MAX:
                raise SystemExit("the campaign is not over after 25 days of the lab")
            self.stack.lab.advance(days=1)
            days += 1
            time.sleep(1)  # for the deliveries
            self.until_calm(flows)
        if self.state(run) != "Completed":
            raise SystemExit(f"the campaign ended as {self.api.read_flow_run(run).state!r}")
        time.sleep(5)  # events and logs are written in batches
        after = self.counted()
        figures = {name: after[name] - value for name, value in before.items()}
        calls = Counter(
            f"{entry['method']} {_ID.sub('{}', entry['path'])}" for entry in self.stack.lab.journal()
        )
        print(json.dumps(calls.most_common()))
        also = ("prefect_requests", "service_requests", "cpu_seconds")
        return figures | {f"{name}_first": first[name] - before[name] for name in also} | {"lab_days": days}

    def start(self, blocks):
        deployment = self.api.read_deployment_by_name("campaign/assay-campaign")
        parameters = {
            **blocks,
            "designs": "".join(f">d{n}\n{RESIDUES[:-1]}{'ACDEFGHIKLM'[n]}\n" for n in range(DESIGNS)),
            "campaign_id": "bench",
            "assay": {"experiment_type": "affinity", "method": "bli", "target": EGFR},
            "options": {"reading": {"designs_per_experiment": PER_EXPERIMENT}},
        }
        return self.api.create_flow_run_from_deployment(deployment.id, parameters=parameters).id

    def is_final(self, run_id):
        return self.api.read_flow_run(run_id).state.is_final()

    def state(self, run_id):
        return self.api.read_flow_run(run_id).state.name

    def until_calm(self, flows):
        """Wait until no run of a campaign has had anything to do for two seconds."""
        deadline, since = time.monotonic() + 600, None
        busy = {
            "flow_runs": {"state": {"type": {"any_": BUSY}}},
            "flows": {"id": {"any_": [str(one) for one in flows]}},
        }
        while since is None or time.monotonic() - since < 2:
            if time.monotonic() > deadline:
                raise SystemExit("the campaign's runs did not come to rest in ten minutes")
            count = self.api.request("POST", "/flow_runs/count", json=busy).json()
            since = None if count else since or time.monotonic()
            time.sleep(0.25)

    def counted(self):
        cpu = psutil.Process(self.stack.pid("runner")).cpu_times()
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=60)) as database:
            tables = [
                name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            ]
            rows = {name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables}
            executions = "SELECT count(*) FROM flow_run_state WHERE name = 'Running'"
            return {
                "prefect_requests": len(self.requests()),
                "service_requests": len(self.stack.lab.journal()),
                "executions": database.execute(executions).fetchone()[0],
                "flow_runs": rows["flow_run"],
                "task_runs": rows["task_run"],
                "rows": sum(rows.values()),
                "cpu_seconds": cpu.children_user + cpu.children_system,
            }

    def requests(self):
        log = Path(os.environ["BENCH_REQUESTS"])
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if not any(path in line for path in IDLE)]


if __name__ == "__main__":
    main()
