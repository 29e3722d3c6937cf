"""Make `tests/golden/archive` again: one campaign of each assay type, in one archive, measured by a local lab.

`cd tests && python -m support.golden.make`. Run it when the archive's format changes, and with `reports` when the page, a figure
or a fit changes; a golden file that changes for any other reason is a finding.
"""

import os
import shutil
import sys
from pathlib import Path

import eth_account
from pydantic import SecretStr

from assay_lab.rails.x402 import X402Settings
from assay_lab.testing import LocalLab
from prefect_assay.analysis.report.documents import archive_report, make_report
from prefect_assay.analysis.tables.files import update_tables
from prefect_assay.archive import LocalStore, read_latest
from prefect_assay.archive.layout import REPORT_CODE
from prefect_assay.blocks import SpendingPolicy, X402Wallet
from prefect_assay.flows import campaign
from prefect_assay.service.assays import BINDING_TYPES, METHOD_TYPES
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.models.vocabulary import ExperimentType, PaymentMethod
from support.accounts import make_account, make_options
from support.runs.world import EGFR

GOLDEN = Path(__file__).parents[2] / "golden"
CAP = 5_000_000
# The same machine code on every x86-64: newer instructions round the last digit of exp and log differently, and more threads
# add in another order.
PLAIN_CPU = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Haswell",
    "OMP_NUM_THREADS": "1",
}


def make(folder: Path) -> None:
    """Order, pay, wait for and archive a campaign of each type; the lab's clock jumps from step to step."""
    from prefect.testing.utilities import prefect_test_harness  # imports Prefect's server: not at collection

    offer = X402Settings()
    policy = SpendingPolicy(
        accept_quotes=True,
        per_experiment_usd=CAP / 100,
        per_campaign_usd=CAP / 100,
        rolling_usd=CAP * 10 / 100,
        machine_payments=True,
    )
    wallet = X402Wallet(
        private_key=SecretStr(eth_account.Account.create().key.hex()),
        networks=[offer.network],
        assets=[offer.asset],
        pay_to=[offer.pay_to],
    )
    with prefect_test_harness(server_startup_timeout=120), LocalLab(clock="auto") as lab:
        for kind in ExperimentType:
            campaign(
                designs=str(designs_of(kind)),
                assay=Assay(
                    experiment_type=kind,
                    target=EGFR if kind in BINDING_TYPES else None,
                    method="bli" if kind in METHOD_TYPES else None,
                    n_replicates=None if kind is ExperimentType.EPITOPE_BINNING else 2,
                ),
                account=make_account(
                    base_url=lab.base_url,
                    token=lab.token,
                    policy=policy,
                    archive=folder,
                    wallet=wallet,
                    payment_method=PaymentMethod.X402_EXACT,
                ),
                spend_up_to_usd=CAP / 100,
                campaign_id=f"golden-{kind.replace('_', '-')}",
                options=make_options(poll_seconds=0.2),
            )


def remove_machine_paths(folder: Path) -> None:
    """Write the place of the golden files as `/golden` in the logs of the campaigns."""
    for record in (folder / "LEDGERS").rglob("*.json"):
        record.write_text(
            record.read_text(encoding="utf-8").replace(str(GOLDEN), "/golden"), encoding="utf-8"
        )


def designs_of(kind: ExperimentType) -> Path:
    """The input of a type: the affinities' is a table with scores, the others share a FASTA file."""
    return GOLDEN / "input" / ("scored.csv" if kind is ExperimentType.AFFINITY else "designs.fasta")


def make_reports(folder: Path) -> None:
    """Make the reports again from the archive as it is: when the page, a figure or a fit has changed, and nothing else."""
    store = LocalStore(folder)
    for campaign_folder in sorted(folder.glob("golden-*")):
        name = campaign_folder.name
        kept = read_latest(store, "", name, REPORT_CODE)
        assert kept is not None
        made = make_report(store, "", name)
        shutil.rmtree(campaign_folder / REPORT_CODE)
        shutil.rmtree(folder / "LEDGERS" / "VERSIONS" / name / REPORT_CODE)
        archive_report(store, "", made, now=kept.manifest.created_at)
    update_tables(store, "")


if __name__ == "__main__":
    target = GOLDEN / "archive"
    if sys.argv[1:] == ["reports"]:
        os.environ.update(PLAIN_CPU)
        os.execv(sys.executable, [sys.executable, "-m", "support.golden.make", "reports-here"])
    if sys.argv[1:] == ["reports-here"]:
        make_reports(target)
    else:
        shutil.rmtree(target, ignore_errors=True)
        make(target)
        remove_machine_paths(target)
