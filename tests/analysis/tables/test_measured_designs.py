"""Measured and open designs of an archive, some of whose files cannot be read."""

import pytest

from prefect_assay.analysis.kinetics.analysis import Verdict
from prefect_assay.analysis.results import summarize
from prefect_assay.analysis.tables.designs import read_measured_designs
from prefect_assay.analysis.tables.files import update_tables
from prefect_assay.analysis.tables.summary import read_summary_table
from prefect_assay.archive import LocalStore
from prefect_assay.errors import ArchiveUnavailable
from prefect_assay.service.models.sequences import ProteinSequence
from support.archive.campaigns import archive_report, archive_rows, row
from support.archive.loops import archive_measured_round, archive_plan, selected_round

DESIGNS = [ProteinSequence("h1", "MKVAA"), ProteinSequence("h2", "MKVGG")]


class _BusyAt(LocalStore):
    """A store that is too busy for the files of one name."""

    def __init__(self, root, name):
        super().__init__(root)
        self._name = name

    def stream(self, key):
        if key.endswith(self._name):
            raise ArchiveUnavailable("busy")
        return super().stream(key)


@pytest.fixture
def store(tmp_path):
    """A campaign of two designs, of which one is measured."""
    store = LocalStore(tmp_path)
    archive_plan(store, "", "by-hand", DESIGNS)
    archive_rows(store, "", "by-hand", "HND-001", [row("h1", "HND-001", kd_M=1e-9)])
    update_tables(store, "")
    return store


def _overwrite(store, pattern, body):
    (path,) = store.root.glob(pattern)
    path.chmod(0o644)
    path.write_bytes(body)


def _planned(measured):
    return [unanswered.design.name for unanswered in measured.planned]


def test_open_designs_are_known_although_the_report_is_damaged(tmp_path):
    store = LocalStore(tmp_path)
    archive_measured_round(store, "", selected_round(store, ""))
    archive_plan(store, "", "by-hand", DESIGNS)
    update_tables(store, "")
    _overwrite(store, "binders-round-001/REPORT/v*/summary.json", b"other")
    measured = read_measured_designs(store, "")
    assert (len(measured.designs), _planned(measured), measured.unread_plans) == (4, ["h1", "h2"], ())
    assert all(design.attributes["Method"] and design.price_cents is None for design in measured.designs)
    (note,) = measured.notes
    assert "binders-round-001: without verdicts and prices: " in note


def test_a_plan_that_cannot_be_read_is_named_and_the_results_remain(store):
    _overwrite(store, "by-hand/PLAN/v*/plan.json", b"{}")
    measured = read_measured_designs(store, "")
    assert ([design.name for design in measured.designs], _planned(measured), measured.notes) == (
        ["h1"],
        [],
        (),
    )
    (line,) = measured.unread_plans
    assert line.startswith("campaign by-hand: its open designs are not known: ")


@pytest.mark.parametrize(
    ("name", "measured"), [("plan.json", True), ("plan.json", False), ("summary.json", True)]
)
def test_a_busy_archive_is_no_unreadable_plan_or_report(tmp_path, name, measured):
    store = LocalStore(tmp_path)
    archive_measured_round(store, "", selected_round(store, ""))
    if measured:
        update_tables(store, "")
    with pytest.raises(ArchiveUnavailable):
        read_measured_designs(_BusyAt(tmp_path, name), "")


def test_results_that_the_tables_lack_are_named(store):
    archive_rows(store, "", "by-hand", "HND-002", [row("h2", "HND-002", kd_M=1e-9)])
    archive_rows(store, "", "by-hand", "HND-001", [row("h1", "HND-001", kd_M=2e-9)], day=2)
    measured = read_measured_designs(store, "")
    advice = "has results that are not in the tables; run `prefect-assay archive tables`"
    assert measured.notes == (f"campaign by-hand: HND-001 {advice}", f"campaign by-hand: HND-002 {advice}")
    update_tables(store, "")
    assert read_measured_designs(store, "").notes == ()


def test_files_of_the_user_in_the_register_are_no_campaigns(store):
    (store.root / "LEDGERS/VERSIONS/Thumbs.db").write_bytes(b"")
    assert _planned(read_measured_designs(store, "")) == ["h2"]


def _measure(*, mean=None, kds=(), tms=(), **fields):
    """The rows of a weak binder, which has no mean of the laboratory, or of one with a mean or a melting temperature."""
    parts = [row("h1", "HND-001", level="replicate", replicate=n, kd_M=kd) for n, kd in enumerate(kds, 1)]
    parts += [row("h1", "HND-001", level="replicate", replicate=n, tm_C=tm) for n, tm in enumerate(tms, 1)]
    outcome = "measured" if mean or tms else "binding"
    return [row("h1", "HND-001", kd_M=mean, **{"outcome": outcome} | fields), *parts]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (_measure(kds=[8e-7, 9e-7, 7e-7]), _measure(kds=[8e-8, 9e-8, 7e-8])),
        (_measure(mean=1e-9, kds=[1e-9, 9e-7, 7e-7]), _measure(mean=1e-9, kds=[1e-9, 2e-9, 1.5e-9])),
        (_measure(tms=[60.0, 61.0]), _measure(tms=[70.0, 71.0])),
        (_measure(mean=1e-8, qualifier=">"), _measure(mean=1e-8)),
        (_measure(kds=[8e-7, 9e-7]), _measure(kds=[8e-7, 9e-7, 7e-7])),
    ],
)
def test_corrected_replicates_take_the_place_of_the_report(tmp_path, before, after):
    store = LocalStore(tmp_path)
    marks = {"verdict": Verdict.AGREES, "kd_low_M": 6e-7, "group": "A"}
    (known,) = (design.model_copy(update=marks) for design in summarize(before, campaign_id="c"))
    archive_report(store, "", "c", [known])
    assert read_summary_table(store, "", "c", before).designs == (known,)
    (expected,) = summarize(after, campaign_id="c")
    (design,) = read_summary_table(store, "", "c", after).designs
    assert design == expected.model_copy(update={"group": None})
    assert (design.verdict, design.group) == (None, None)


def test_a_limit_that_only_the_curves_give_remains_and_so_do_last_digits(tmp_path):
    store = LocalStore(tmp_path)
    rows = _measure(mean=1e-9, kds=[1e-9, 2e-9])
    (made,) = summarize(rows, campaign_id="c")
    for update in (
        {"kd_M": 5e-9, "qualifier": "<", "replicates_averaged": None},
        {"kd_M": made.kd_M * (1 + 1e-14)},
    ):
        known = made.model_copy(update={"verdict": Verdict.AGREES, **update})
        archive_report(store, "", "c", [known], day=3)
        assert read_summary_table(store, "", "c", rows).designs == (known,)
