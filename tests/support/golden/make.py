"""Make `tests/golden/archive` again: one campaign of each assay type, in one archive, measured by a local lab.

`cd tests && python -m support.golden.make`. Run it when the archive's format changes; a golden file that changes for any
other reason is a finding.
"""

import shutil
from pathlib import Path

import eth_account
from pydantic import SecretStr

from prefect_assay.blocks import AssayCredentials, LocalArchive, SpendingPolicy, X402Wallet
from prefect_assay.flows import campaign
from prefect_assay.lab.kernel.settings import X402Settings
from prefect_assay.lab.testing import LocalLab
from prefect_assay.models.spec import Assay
from prefect_assay.models.vocabulary import BINDING_TYPES, METHOD_TYPES, ExperimentType, PaymentMethod
from support.runs.world import EGFR

GOLDEN = Path(__file__).parents[2] / "golden"
CAP = 5_000_000


def make(folder: Path) -> None:
    """Order, pay, wait for and archive a campaign of each type; the lab's clock jumps from step to step."""
    from prefect.testing.utilities import prefect_test_harness  # imports Prefect's server: not at collection

    offer = X402Settings()
    policy = SpendingPolicy(
        accept_quotes=True,
        per_experiment_cents=CAP,
        per_campaign_cents=CAP,
        rolling_cents=CAP * 10,
        machine_payments=True,
    )
    wallet = X402Wallet(
        private_key=SecretStr(eth_account.Account.create().key.hex()),
        networks=[offer.network],
        assets=[offer.asset],
        pay_to=[offer.pay_to],
    )
    with prefect_test_harness(), LocalLab(clock="auto") as lab:
        for kind in ExperimentType:
            campaign(
                designs=str(designs_of(kind)),
                assay=Assay(
                    experiment_type=kind,
                    target=EGFR if kind in BINDING_TYPES else None,
                    method="bli" if kind in METHOD_TYPES else None,
                    n_replicates=None if kind is ExperimentType.EPITOPE_BINNING else 2,
                ),
                credentials=AssayCredentials(base_url=lab.base_url, token=SecretStr(lab.token)),
                policy=policy,
                archive=LocalArchive(root=str(folder)),
                campaign_id=f"golden-{kind.replace('_', '-')}",
                payment_method=PaymentMethod.X402_EXACT,
                wallet=wallet,
                poll_seconds=0.2,
            )


def designs_of(kind: ExperimentType) -> Path:
    """The input of a type: the affinities' is a table with scores, the others share a FASTA file."""
    return GOLDEN / "input" / ("scored.csv" if kind is ExperimentType.AFFINITY else "designs.fasta")


if __name__ == "__main__":
    target = GOLDEN / "archive"
    shutil.rmtree(target, ignore_errors=True)
    make(target)
