"""What a report says comes from the archive alone, and from files that are what was archived."""

import json
import shutil

import pytest

from prefect_assay.archive import latest
from prefect_assay.books import Books
from prefect_assay.books.log import Settled, Withdrawn
from prefect_assay.books.open_money import of_logs, read_logs
from prefect_assay.errors import ArchiveError
from prefect_assay.models.billing import usd
from prefect_assay.models.open_money import joined
from prefect_assay.reporting.page.contents import collect
from prefect_assay.reporting.page.documents import make_report
from prefect_assay.reporting.page.orders import orders_of
from prefect_assay.reporting.page.render import _tiles
from prefect_assay.results import from_csv
from prefect_assay.results.row import Outcome

CAMPAIGN = "round-1"


def folders(archive):
    return sorted(path for path in (archive / CAMPAIGN).iterdir() if path.name.startswith("LAB"))


def change(path):
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b" ")


def test_orders_prices_and_gaps_come_from_plan_and_log(store, lab_archive):
    plan = lab_archive[1]
    contents = collect(store, "", CAMPAIGN)
    assert [e.batch_index for e in contents.experiments] == [0, 1]
    assert [e.order.order_key for e in contents.experiments] == [*plan.order_keys[:2]]
    for experiment in contents.experiments:
        assert experiment.order.status == "paid"
        assert experiment.order.approved_by == "the caps of the policy"
        assert experiment.price_cents == experiment.order.amount_cents / len(experiment.spec.sequences)
        assert experiment.target == "Human EGFR, extracellular domain"
    (missing,) = contents.missing
    assert (missing.batch_index, missing.order_key) == (2, plan.order_keys[2])
    assert missing.order.status == "ordered, not paid"
    assert contents.notes == ()


def test_the_money_is_what_status_and_spending_make_of_the_same_logs(store, lab_archive):
    contents = collect(store, "", CAMPAIGN)
    (books,) = Books.every(store, "")
    assert contents.money == joined([of_logs(*read_logs(books))])
    *_, paid = _tiles(contents, ())
    assert paid.value == usd(sum(e.order.amount_cents for e in contents.experiments))
    assert paid.meaning == f"paid, without VAT; {contents.money.line}"


def test_without_its_order_log_an_archive_does_not_say_that_nothing_was_paid(archive, store):
    def headline():
        *_, paid = _tiles(collect(store, "", CAMPAIGN), ())
        return paid.value, paid.meaning

    paid = collect(store, "", CAMPAIGN).experiments[0].order.order_key
    (log,) = (archive / "BOOKS").glob(f"*/{CAMPAIGN}/{paid}")
    shutil.rmtree(log)
    assert headline()[1].endswith("not all orders have a log that can be read")
    shutil.rmtree(archive / "BOOKS")
    assert headline() == ("not known", "what was paid: no order log in this archive that can be read")


def test_a_withdrawn_order_is_no_ordered_money_and_an_invoice_of_nothing_costs_nothing(store, lab_archive):
    def headline():
        *_, paid = _tiles(collect(store, "", CAMPAIGN), ())
        return paid.meaning

    def record(order_key, made):
        Books(store, "", "the organization").order(CAMPAIGN, order_key).record(lambda _: made)

    key = lab_archive[1].order_keys[2]
    assert "ordered, not paid" in headline()
    record(key, Withdrawn(reason="the quote expired"))
    assert "ordered, not paid" not in headline()
    record(key, Settled(invoice_id="inv-3", amount_cents=0))
    assert orders_of(store, "", CAMPAIGN)[0][key].amount_cents == 0


def test_the_rows_are_made_again_from_the_answers(store):
    for experiment in collect(store, "", CAMPAIGN).experiments:
        archived = latest(store, "", CAMPAIGN, experiment.code).read("results.csv")
        assert experiment.rows == from_csv(archived)
        assert {row.outcome for row in experiment.rows} - {Outcome.MISSING, Outcome.PENDING}


def test_experiments_without_a_campaign_have_a_report(archive, store):
    shutil.rmtree(archive / CAMPAIGN / "PLAN")
    shutil.rmtree(archive / "BOOKS")
    contents = collect(store, "", CAMPAIGN)
    assert contents.plan is None
    assert contents.campaign_id == CAMPAIGN
    assert contents.missing == ()
    assert [e.order for e in contents.experiments] == [None, None], "only the log says what was paid"
    assert not (archive / "BOOKS").exists(), "reading has begun a log"


def test_a_campaign_without_results_has_a_report_of_its_gaps(archive, store):
    for folder in folders(archive):
        shutil.rmtree(folder)
    made = make_report(store, "", CAMPAIGN)
    assert len(made.contents.missing) == 3
    assert b"3 of 3 experiments without archived results" in made.page


@pytest.mark.parametrize("path", ["raw/results-0001.json", "raw/experiment.json", "spec.json", "results.csv"])
def test_a_file_that_has_changed_stops_the_report(archive, store, path):
    change(folders(archive)[0] / "v001" / path)
    with pytest.raises(ArchiveError, match=f"{path} has changed since it was archived"):
        collect(store, "", CAMPAIGN)


def test_a_package_that_has_changed_stops_the_report(archive, store):
    change(next((folders(archive)[0] / "v001" / "packages").iterdir()))
    with pytest.raises(ArchiveError, match="has changed since it was archived"):
        make_report(store, "", CAMPAIGN)


def test_a_log_that_cannot_be_read_is_a_note(archive, store, lab_archive):
    order_key = lab_archive[1].order_keys[0]
    (record,) = (archive / "BOOKS").glob(f"*/{CAMPAIGN}/{order_key}/000002.json")
    record.unlink()
    contents = collect(store, "", CAMPAIGN)
    assert [note for note in contents.notes if order_key in note]
    assert str(archive) not in "".join(contents.notes)
    assert contents.experiments[0].order.amount_cents, "receipt.json has the amount"


def test_a_package_that_was_never_fetched_is_a_note(archive, store, monkeypatch):
    found = latest(store, "", CAMPAIGN, folders(archive)[0].name)
    package = next(path for path in found.files if path.startswith("packages/"))
    manifest = archive / CAMPAIGN / folders(archive)[0].name / "v001" / "manifest.json"
    text = json.loads(manifest.read_text())
    for file in text["files"]:
        file["path"] = file["path"].replace(package, package.replace(".zip", ".absent.json"))
    manifest.chmod(0o644)
    manifest.write_text(json.dumps(text))
    contents = collect(store, "", CAMPAIGN)
    assert contents.experiments[0].results[0].package is None
    assert "could not be fetched" in contents.notes[0]


def test_a_campaign_that_the_archive_does_not_have(store):
    with pytest.raises(ArchiveError, match="nothing of campaign other"):
        collect(store, "", "other")
