"""Measured and open designs of an archive, some of whose files cannot be read."""

import pytest

from prefect_assay.analysis import tables
from prefect_assay.archive import LocalStore
from prefect_assay.errors import ArchiveUnavailable
from prefect_assay.service.models.sequences import ProteinSequence
from support.archive.campaigns import archive_rows, row
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
    tables.update_tables(store, "")
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
    tables.update_tables(store, "")
    _overwrite(store, "binders-round-001/REPORT/v*/summary.json", b"other")
    measured = tables.read_measured_designs(store, "")
    assert (len(measured.designs), _planned(measured), measured.unread_plans) == (4, ["h1", "h2"], ())
    assert all(design.attributes["Method"] and design.price_cents is None for design in measured.designs)
    (note,) = measured.notes
    assert "binders-round-001: without verdicts and prices: " in note


def test_a_plan_that_cannot_be_read_is_named_and_the_results_remain(store):
    _overwrite(store, "by-hand/PLAN/v*/plan.json", b"{}")
    measured = tables.read_measured_designs(store, "")
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
        tables.update_tables(store, "")
    with pytest.raises(ArchiveUnavailable):
        tables.read_measured_designs(_BusyAt(tmp_path, name), "")


def test_results_that_the_tables_lack_are_named(store):
    archive_rows(store, "", "by-hand", "HND-002", [row("h2", "HND-002", kd_M=1e-9)])
    archive_rows(store, "", "by-hand", "HND-001", [row("h1", "HND-001", kd_M=2e-9)], day=2)
    measured = tables.read_measured_designs(store, "")
    advice = "has results that are not in the tables; run `prefect-assay archive tables`"
    assert measured.notes == (f"campaign by-hand: HND-001 {advice}", f"campaign by-hand: HND-002 {advice}")
    tables.update_tables(store, "")
    assert tables.read_measured_designs(store, "").notes == ()


def test_files_of_the_user_in_the_register_are_no_campaigns(store):
    (store.root / "LEDGERS/VERSIONS/Thumbs.db").write_bytes(b"")
    assert _planned(tables.read_measured_designs(store, "")) == ["h2"]
