"""Plays schedules with ordering and paying alone: without Prefect, the ledger in a folder, a tenth of the time of a campaign."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from assay_lab.testing import LocalLab
from prefect_assay.archive import LocalStore
from prefect_assay.orders.identity import experiment_name, order_key
from prefect_assay.orders.ledger import Ledgers, OrderLedger
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.spec import ExperimentSpec
from support.crash.process import KILLED, Execution, Killable, token_issuer
from support.crash.story import End, Kill, Schedule
from support.runs.world import EGFR, UNPRICED, WALLET_KEY

DESIGN: Final = "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"
TARGETS: Final = {"self-service": EGFR, "quoted": UNPRICED}


@dataclass
class CorePlayer:
    """A lab and a process that forks."""

    lab: LocalLab
    service: AssayClient
    process: Killable
    folder: Path
    wallets: dict[str, dict[str, Any]]
    policy: dict[str, Any]
    targets: dict[str, str]
    _answers: dict[str, Any] = field(default_factory=dict)

    def start(self, schedule: Schedule) -> dict[str, Any]:
        """What one process is told; the same for each that follows."""
        spec = ExperimentSpec.model_validate(
            {
                "experiment_type": "affinity",
                "method": "bli",
                "target_id": self.targets[schedule.route],
                "sequences": {"design": {"aa_string": DESIGN}},
            }
        )
        key = order_key(schedule.campaign_id, 0, spec)
        request = {
            "experiment_spec": spec.model_dump(mode="json"),
            "name": experiment_name(schedule.campaign_id, 0, 1, key),
            "skip_draft": True,
            "auto_accept_quote": schedule.route == "self-service",
            "payment_method": schedule.rail,
        }
        return {
            "base_url": self.lab.base_url,
            "token": self.lab.token,
            "rail": schedule.rail,
            "wallet": self.wallets[schedule.rail],
            "request": request,
            "order_key": key,
            "policy": self.policy,
            "ledgers": str(self.folder / "ledgers" / schedule.campaign_id),
            "answer": str(self.folder / "answer.json"),
        }

    def execute(self, job: dict[str, Any], kill: Kill | None) -> Execution:
        """One process on this order."""
        Path(job["answer"]).unlink(missing_ok=True)
        return self.process.execute(kill=kill, **job)

    def look(self, job: dict[str, Any], done: Execution) -> tuple[End, str, str]:
        """By what the process has said at its end."""
        if done.code == KILLED:
            return End.KILLED, "", ""
        assert done.code == 0, self.process.log_tail()
        outcome = json.loads(Path(job["answer"]).read_text())
        if "error" in outcome:
            return End.FAILED, outcome["error"], outcome["message"]
        if "asks" in outcome:
            job["asked"] = outcome["asks"]
            return End.ASKS, "", ""
        self._answers[job["order_key"]] = outcome["experiment_id"]
        return (End.DONE if outcome["stage"] == "settled" else End.WAITS), "", ""

    def approve(self, job: dict[str, Any]) -> None:
        """A person lets the next process send the order once more."""
        job["repeats"] = job.pop("asked")

    def known(self, job: dict[str, Any]) -> set[str]:
        """What it has said."""
        experiment_id = self._answers.get(job["order_key"])
        return {experiment_id} if experiment_id else set()

    def log(self, schedule: Schedule) -> OrderLedger:
        """In the folder of the schedule's own ledgers."""
        job = self.start(schedule)
        return Ledgers(LocalStore(job["ledgers"]), "", "account").open_order("core", job["order_key"])


@contextmanager
def a_core_player(lab: LocalLab, folder: Path) -> Iterator[CorePlayer]:
    """Means of both rails, and a process that forks."""
    lab.plan(quote_minutes=1, review_minutes=1, window_days=0.01)
    offered = lab.rail("x402-exact")
    with token_issuer() as issuer_url, AssayClient(lab.base_url, lab.token) as service:
        names = {lab.base_url: "lab", issuer_url: "issuer", str(folder / "ledgers"): "ledgers"}
        targets = {t.name: t.id for t in service.targets.iterate()}
        policy = {
            "enabled": True,
            "max_cents_per_payment": 2_000_000,
            "max_cents_rolling": 10**12,
            "allowed_origins": [lab.base_url],
        }
        wallets = {
            "x402-exact": {
                "private_key": WALLET_KEY,
                "networks": [offered["network"]],
                "assets": [offered["asset"]],
                "pay_to": [offered["pay_to"]],
            },
            "mpp-spt": {
                "issuer_url": issuer_url,
                "issuer_key": "key",
                "network_ids": [lab.rail("mpp-spt")["network_id"]],
            },
        }
        with Killable(folder, os.environ, names) as process:
            yield CorePlayer(
                lab=lab,
                service=service,
                process=process,
                folder=folder,
                wallets=wallets,
                policy=policy,
                targets={route: targets[name] for route, name in TARGETS.items()},
            )
