"""What a report says comes from the archive alone, and from files that are what was archived."""

import json
import shutil

import pytest

from prefect_assay.analysis.report.contents import collect_contents
from prefect_assay.analysis.report.documents import make_report
from prefect_assay.analysis.report.orders import orders_of
from prefect_assay.analysis.report.render import _account_rows, _make_tiles
from prefect_assay.analysis.results import from_csv
from prefect_assay.analysis.results.row import Outcome
from prefect_assay.analysis.tables.files import update_tables
from prefect_assay.archive import LocalStore, read_latest
from prefect_assay.errors import ArchiveError
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.campaign_log import CampaignLog, Started, StartedKind
from prefect_assay.orders.ledger.log import Approved, Settled, Withdrawn
from prefect_assay.orders.ledger.open_money import merge_open_money, of_logs, read_logs
from prefect_assay.service.models.billing import usd
from support.archive.campaign_records import some_terms
from support.archive.campaigns import archive_rows, row

CAMPAIGN = "round-1"


def folders(archive):
    return sorted(path for path in (archive / CAMPAIGN).iterdir() if path.name.startswith("LAB"))


def change(path):
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b" ")


def test_orders_prices_and_gaps_come_from_plan_and_log(store, lab_archive):
    plan = lab_archive[1]
    contents = collect_contents(store, "", CAMPAIGN)
    assert [e.batch_index for e in contents.experiments] == [0, 1]
    assert [e.order.order_key for e in contents.experiments] == [*plan.order_keys[:2]]
    for experiment in contents.experiments:
        assert experiment.order.status == "paid"
        assert experiment.order.approved_by == "the caps of the policy"
        assert experiment.price_per_sequence_cents == experiment.order.amount_cents / len(
            experiment.spec.sequences
        )
        assert experiment.target == "Human EGFR, extracellular domain"
    (missing,) = contents.missing
    assert (missing.batch_index, missing.order_key) == (2, plan.order_keys[2])
    assert missing.order.status == "ordered, not paid"
    assert contents.notes == ()


def test_the_money_is_what_status_and_spending_make_of_the_same_logs(store, lab_archive):
    contents = collect_contents(store, "", CAMPAIGN)
    (ledgers,) = Ledgers.list_all(store, "")
    assert contents.money == merge_open_money([of_logs(*read_logs(ledgers))])
    first, *_ = _make_tiles(contents, ())
    paid = usd(sum(e.order.amount_cents for e in contents.experiments))
    assert first.value == usd(contents.missing[0].order.amount_cents), "what is owed comes first"
    assert first.meaning == f"still to be paid, without VAT; {paid} paid"


def started(store, **terms):
    """The campaign's log, with the account of its terms."""
    log = CampaignLog(store, "", CAMPAIGN)
    log.start(
        Started(
            what=StartedKind.CAMPAIGN,
            name=CAMPAIGN,
            terms=some_terms(**terms),
            requester="Grace Hopper",
            requester_known_by="the user of the terminal",
        )
    )


def test_the_first_card_says_simulated_and_names_the_account(store, lab_archive):
    started(store, account_name="main", simulated=True)
    contents = collect_contents(store, "", CAMPAIGN)
    first, owed, *_ = _make_tiles(contents, ())
    assert (first.value, first.warns) == ("Simulated", True)
    assert first.meaning.startswith("account main: a local lab has answered")
    assert owed.meaning.startswith("still to be paid, simulated, without VAT; ")
    key = lab_archive[1].order_keys[2]
    Ledgers(store, "", "the organization").open_order(CAMPAIGN, key).record(
        lambda _: Settled(invoice_id="i", amount_cents=1)
    )
    *_, paid = _make_tiles(collect_contents(store, "", CAMPAIGN), ())
    assert paid.meaning.startswith("paid, simulated, without VAT; ")
    assert dict(_account_rows(contents)) == {
        "Account": "main (simulated), https://lab.example, organization org-1",
        "Asked for by": "Grace Hopper: the user of the terminal",
    }


def test_a_live_service_is_named_as_such(store):
    started(
        store,
        account_name="main",
        simulated=False,
        owner="Biology",
        purchase_order="PO 4711",
        cost_centre="CC 12",
    )
    contents = collect_contents(store, "", CAMPAIGN)
    first, owed, *_ = _make_tiles(contents, ())
    assert (first.value, first.meaning) == ("Live", "account main, https://lab.example")
    assert "simulated" not in owed.meaning
    rows = dict(_account_rows(contents))
    assert rows["Account"].startswith("main (LIVE), ")
    assert (rows["Owner"], rows["Purchase order"], rows["Cost center"]) == ("Biology", "PO 4711", "CC 12")


def test_an_approval_says_who_and_how_that_is_known(store, lab_archive):
    key = lab_archive[1].order_keys[0]
    Ledgers(store, "", "the organization").open_order(CAMPAIGN, key).record(
        lambda _: Approved(amount_cents=1, approver="Ada", how="the form of flow run 1", by_person=True)
    )
    orders = orders_of(store, "", CAMPAIGN)[0]
    assert orders[key].approval == "Ada: the form of flow run 1"
    assert orders[lab_archive[1].order_keys[1]].approval == "the caps of the policy"


def test_a_log_of_the_campaign_that_cannot_be_read_is_a_note(archive, store):
    started(store)
    (record,) = (archive / "LEDGERS" / "CAMPAIGNS" / CAMPAIGN).iterdir()
    change(record)
    record.write_bytes(b"{")
    contents = collect_contents(store, "", CAMPAIGN)
    assert contents.terms is None
    assert any("whether its service is simulated, is not known" in note for note in contents.notes)


def test_without_its_order_log_an_archive_does_not_say_that_nothing_was_paid(archive, store):
    def headline():
        money, *_ = _make_tiles(collect_contents(store, "", CAMPAIGN), ())
        return money.value, money.meaning

    paid = collect_contents(store, "", CAMPAIGN).experiments[0].order.order_key
    (log,) = (archive / "LEDGERS").glob(f"*/{CAMPAIGN}/{paid}")
    shutil.rmtree(log)
    assert headline()[1].endswith("not all orders have a log that can be read")
    shutil.rmtree(archive / "LEDGERS")
    *_, money = _make_tiles(collect_contents(store, "", CAMPAIGN), ())
    assert money.value == "not known"
    assert money.meaning == "what was paid: no order log in this archive that can be read"


def test_a_withdrawn_order_is_no_ordered_money_and_an_invoice_of_nothing_costs_nothing(store, lab_archive):
    def is_owed():
        tiles = _make_tiles(collect_contents(store, "", CAMPAIGN), ())
        return any(tile.meaning.startswith("still to be paid") for tile in tiles)

    def record(order_key, made):
        Ledgers(store, "", "the organization").open_order(CAMPAIGN, order_key).record(lambda _: made)

    key = lab_archive[1].order_keys[2]
    assert is_owed()
    record(key, Withdrawn(reason="the quote expired"))
    assert not is_owed()
    record(key, Settled(invoice_id="inv-3", amount_cents=0))
    assert orders_of(store, "", CAMPAIGN)[0][key].amount_cents == 0


def test_the_rows_are_made_again_from_the_answers(store):
    for experiment in collect_contents(store, "", CAMPAIGN).experiments:
        archived = read_latest(store, "", CAMPAIGN, experiment.code).read("results.csv")
        assert experiment.rows == from_csv(archived)
        assert {row.outcome for row in experiment.rows} - {Outcome.MISSING, Outcome.PENDING}


def test_experiments_without_a_campaign_have_a_report(archive, store):
    shutil.rmtree(archive / CAMPAIGN / "PLAN")
    shutil.rmtree(archive / "LEDGERS")
    contents = collect_contents(store, "", CAMPAIGN)
    assert contents.plan is None
    assert contents.campaign_id == CAMPAIGN
    assert contents.missing == ()
    assert [e.order for e in contents.experiments] == [None, None], "only the log says what was paid"
    assert not (archive / "LEDGERS").exists(), "reading has begun a log"


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
        collect_contents(store, "", CAMPAIGN)


def test_a_package_that_has_changed_stops_the_report(archive, store):
    change(next((folders(archive)[0] / "v001" / "packages").iterdir()))
    with pytest.raises(ArchiveError, match="has changed since it was archived"):
        make_report(store, "", CAMPAIGN)


def test_a_log_that_cannot_be_read_is_a_note(archive, store, lab_archive):
    order_key = lab_archive[1].order_keys[0]
    (record,) = (archive / "LEDGERS").glob(f"*/{CAMPAIGN}/{order_key}/000002.json")
    record.unlink()
    contents = collect_contents(store, "", CAMPAIGN)
    assert [note for note in contents.notes if order_key in note]
    assert str(archive) not in "".join(contents.notes)
    assert contents.experiments[0].order.amount_cents, "receipt.json has the amount"


def test_a_package_that_was_never_fetched_is_a_note(archive, store, monkeypatch):
    latest = read_latest(store, "", CAMPAIGN, folders(archive)[0].name)
    package = next(path for path in latest.files if path.startswith("packages/"))
    manifest = archive / CAMPAIGN / folders(archive)[0].name / "v001" / "manifest.json"
    text = json.loads(manifest.read_text())
    for file in text["files"]:
        file["path"] = file["path"].replace(package, package.replace(".zip", ".absent.json"))
    manifest.chmod(0o644)
    manifest.write_text(json.dumps(text))
    contents = collect_contents(store, "", CAMPAIGN)
    assert contents.experiments[0].results[0].package is None
    assert "could not be fetched" in contents.notes[0]


def test_a_campaign_that_the_archive_does_not_have(store):
    with pytest.raises(ArchiveError, match="nothing of campaign other"):
        collect_contents(store, "", "other")


@pytest.mark.parametrize(
    ("source", "other", "has_intervals"),
    [(None, "model", False), (None, None, True), ("model", None, False), ("model", "model", True)],
)
def test_real_and_simulated_campaigns_give_each_other_no_intervals(tmp_path, source, other, has_intervals):
    """Two designs with one replicate each, and an earlier campaign with three of each of twenty."""
    store = LocalStore(tmp_path / "archive")

    def archive(campaign, code, kds, data_source, day):
        extra = json.dumps({"data_source": data_source}) if data_source else None
        rows = [
            row(name, code, level=level, replicate=number, kd_M=kd, binding="true", extra=extra)
            for name, kd_values in kds.items()
            for level, number, kd in (
                ("summary", None, kd_values[0]),
                *(("replicate", number, kd) for number, kd in enumerate(kd_values, start=1)),
            )
        ]
        archive_rows(store, "", campaign, code, rows, day=day)

    archive("earlier", "L-1", {f"s{n}": [1e-9, 1.05e-9, 0.95e-9] for n in range(20)}, other, day=1)
    archive("new", "E-1", {"d1": [1e-9], "d2": [2e-9]}, source, day=2)
    update_tables(store, "")
    designs = make_report(store, "", "new").summaries
    assert [design.name for design in designs] == ["d1", "d2"]
    for design in designs:
        assert (design.kd_low_M is not None) is has_intervals
        assert (design.group is not None) is has_intervals
