"""What the form of an approval says before its figures: what is bought, for whom, how it is paid, and until when a quote holds."""

from datetime import UTC, datetime

import pytest

from prefect_assay.blocks import LocalArchive, SpendingPolicy
from prefect_assay.books import Books
from prefect_assay.flows.run_options import ExperimentRun, RunOptions
from prefect_assay.models.billing import Quote
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import PaymentMethod
from support.lab.core import PRICED, spec

POLICY = SpendingPolicy(
    per_experiment_cents=100_000, per_campaign_cents=400_000, rolling_cents=900_000, machine_payments=True
)


def a_run(folder, method=PaymentMethod.ASYNC_INVOICE):
    archive = LocalArchive(root=str(folder))
    options = RunOptions(
        credentials=None,
        policy=POLICY,
        archive=archive,
        payment_method=method,
        wallet=None,
        webhook=None,
        request_quote=False,
        deadline_days=45,
        poll_seconds=1.0,
    )
    vars(options)["books"] = Books(archive.get_store(), "", "org")
    return ExperimentRun(
        options,
        spec=ExperimentSpec.model_validate(spec()),
        campaign_id="egfr-1",
        batch_index=0,
        batch_count=1,
    )


def test_an_approver_reads_designs_assay_campaign_and_how_it_is_paid(tmp_path):
    assert a_run(tmp_path).bought() == {
        "designs": "3, 10 residues",
        "assay": f"affinity by BLI against `{PRICED['id']}`, 3 replicates",
        "campaign": "`egfr-1`",
        "paid": "by a person, at the invoice's page",
    }


def test_of_a_quote_the_approver_reads_from_when_to_when_it_holds_with_its_page(tmp_path):
    quote = Quote(
        status="open",
        created_at=datetime(2026, 3, 2, tzinfo=UTC),
        expires_at=datetime(2026, 4, 1, 9, 0, tzinfo=UTC),
        provider_quote_url="https://lab.example/q/1",
    )
    told = a_run(tmp_path).bought(quote)["quote holds"]
    assert told == "from 2026-03-02 until 2026-04-01 09:00 UTC, [its page](https://lab.example/q/1)"


@pytest.mark.parametrize("method", list(PaymentMethod))
def test_the_caps_of_machine_payments_are_shown_only_where_a_machine_pays(tmp_path, method):
    names = list(a_run(tmp_path, method).caps())
    assert names[:2] == ["policy's cap per experiment", "cap of the campaign"]
    assert (len(names) > 2) is (method is not PaymentMethod.ASYNC_INVOICE)
