"""What the form of an approval says before its figures: what is bought, for whom, how it is paid, and until when a quote holds."""

from contextlib import nullcontext
from datetime import UTC, datetime
from types import SimpleNamespace

from prefect_assay.blocks import LocalArchive, SpendingPolicy
from prefect_assay.books import Books
from prefect_assay.errors import NotFound
from prefect_assay.flows.run_options import ExperimentRun, RunOptions
from prefect_assay.models.billing import Quote
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.models.vocabulary import PaymentMethod
from support.lab.core import PRICED, spec

POLICY = SpendingPolicy(
    per_experiment_cents=100_000, per_campaign_cents=400_000, rolling_cents=900_000, machine_payments=True
)


def catalog(target_id):
    if target_id == PRICED["id"]:
        return SimpleNamespace(name=PRICED["name"])
    raise NotFound("no such target")


def a_run(folder, **changes):
    archive = LocalArchive(root=str(folder))
    options = RunOptions(
        credentials=SimpleNamespace(get_client=lambda: nullcontext(SimpleNamespace(target=catalog))),
        policy=POLICY,
        archive=archive,
        payment_method=PaymentMethod.ASYNC_INVOICE,
        wallet=None,
        webhook=None,
        request_quote=False,
        deadline_days=45,
        poll_seconds=1.0,
    )
    vars(options)["books"] = Books(archive.get_store(), "", "org")
    return ExperimentRun(
        options,
        spec=ExperimentSpec.model_validate(spec(**changes)),
        campaign_id="egfr-1",
        batch_index=0,
        batch_count=1,
    )


def test_an_approver_reads_designs_assay_campaign_and_how_it_is_paid(tmp_path):
    assert a_run(tmp_path).bought() == {
        "designs": "3, 10 residues",
        "assay": f"affinity by BLI against `{PRICED['name']}`, 3 replicates",
        "campaign": "`egfr-1`",
        "paid": "by a person, at the invoice's page",
    }


def test_a_target_that_the_catalog_does_not_name_keeps_its_id(tmp_path):
    unknown = "11111111-2222-4333-8444-555555555555"
    assert f"against `{unknown}`" in a_run(tmp_path, target_id=unknown).bought()["assay"]


def test_of_a_quote_the_approver_reads_from_when_to_when_it_holds_with_its_page(tmp_path):
    quote = Quote(
        status="open",
        created_at=datetime(2026, 3, 2, tzinfo=UTC),
        expires_at=datetime(2026, 4, 1, 9, 0, tzinfo=UTC),
        provider_quote_url="https://lab.example/q/1",
    )
    told = a_run(tmp_path).bought(quote)["quote holds"]
    assert told == "from 2026-03-02 until 2026-04-01 09:00 UTC, [its page](https://lab.example/q/1)"
