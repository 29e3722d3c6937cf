"""A campaign's plan: it carries the designer's columns, and they refuse nothing. Its table says what is preliminary."""

import json
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from prefect_assay.analysis.results import to_csv
from prefect_assay.analysis.results.row import ResultRow
from prefect_assay.archive import Document, LocalStore, archive_version, read_latest, verify_versions
from prefect_assay.archive.campaign_plan import Plan
from prefect_assay.archive.layout import PLAN_CODE, TABLE_CODE, TABLE_PATH, chosen_key, experiment_folder
from prefect_assay.archive.read import choose_version
from prefect_assay.blocks import LocalArchive
from prefect_assay.errors import ArchiveUnavailable, InvalidSpec
from prefect_assay.service.models.sequences import ProteinSequence, Sequences
from prefect_assay.service.models.spec import Assay, Target
from prefect_assay.service.models.vocabulary import ExperimentType
from prefect_assay.tasks.collate import collate_campaign, kept_plan, save_plan
from prefect_assay.tasks.read import plan_campaign

ASSAY = Assay(experiment_type=ExperimentType.EXPRESSION)


def plan_of(*columns: dict[str, str]) -> Plan:
    items = tuple(
        ProteinSequence(name=f"d{n}", aa_string="ACD" + "E" * n, attributes=c) for n, c in enumerate(columns)
    )
    sequences = Sequences(source="x", items=items)
    return plan_campaign.fn(sequences, ASSAY, None, campaign_id=None, per_experiment=2)


def test_a_plan_holds_the_designers_columns_and_a_plan_without_them_is_read():
    made = plan_of({"ipTM": "0.9"}, {})
    assert made.attributes == {"d0": {"ipTM": "0.9"}}
    assert Plan.model_validate_json(made.model_dump_json()) == made
    earlier = json.loads(made.model_dump_json())
    del earlier["attributes"], earlier["attributes_left_out"]
    assert Plan.model_validate(earlier).attributes == {}
    assert Plan.model_validate(earlier).order_keys == made.order_keys


def test_a_target_that_cannot_be_compared_is_in_the_plan():
    items = (ProteinSequence(name="d0", aa_string="ACDEFGHIKLMN"),)
    target = Target(id=str(uuid4()), details={"sequence": "not disclosed"})
    made = plan_campaign.fn(
        Sequences(source="x", items=items),
        Assay(experiment_type=ExperimentType.AFFINITY, target=target.id),
        target,
        campaign_id=None,
        per_experiment=2,
    )
    (doubt,) = made.doubts
    assert "was not compared with the designs" in doubt
    assert doubt in made.reading


def test_other_columns_of_the_same_designs_are_the_same_campaign(tmp_path):
    archive = LocalArchive(root=str(tmp_path))
    first, second = plan_of({"ipTM": "0.9"}), plan_of({"ipTM": "0.8", "round": "2"})
    assert first.campaign_id == second.campaign_id
    save_plan.fn(archive, first)
    save_plan.fn(archive, second)
    assert kept_plan(archive, first.campaign_id).attributes == {"d0": {"ipTM": "0.9"}}


class Meanwhile(LocalStore):
    """A folder where another run fixes its plan, right before this one writes an object whose key ends so."""

    def __init__(self, root, before, other):
        super().__init__(root)
        self._before, self._other = before, other

    def put_if_absent(self, key, data, content_type, *, sha256=None):
        if key.endswith(self._before) and self._other is not None:
            other, self._other = self._other, None
            other()
        return super().put_if_absent(key, data, content_type, sha256=sha256)


@pytest.mark.parametrize("before", ["claim.json", "plan.json", "manifest.json", "chosen.json"])
def test_of_two_plans_fixed_at_once_the_run_that_goes_on_keeps_its_own(tmp_path, monkeypatch, before):
    archive = LocalArchive(root=str(tmp_path))
    one, two = (plan_of({}, *extra).model_copy(update={"campaign_id": "c"}) for extra in ((), ({},)))
    went_on = []

    def fix(plan, archive=archive):
        try:
            save_plan.fn(archive, plan)
        except InvalidSpec:
            return
        went_on.append(plan.order_keys)

    store = Meanwhile(tmp_path, before, lambda: fix(two))
    slow = LocalArchive(root=str(tmp_path))
    monkeypatch.setattr(
        LocalArchive, "get_store", lambda self: store if self is slow else LocalStore(tmp_path)
    )
    fix(one, slow)
    assert len(went_on) == 1
    assert kept_plan(archive, "c").order_keys == went_on[0]
    assert verify_versions(LocalStore(tmp_path), "").ok
    fix(one)
    fix(two)
    assert set(went_on) == {went_on[0]}


def test_a_plan_is_chosen_while_the_listing_lags(tmp_path, monkeypatch):
    """Right after the write some S3 servers do not list the new objects yet."""
    monkeypatch.setattr(LocalStore, "keys", lambda self, prefix: iter(()))
    archive = LocalArchive(root=str(tmp_path))
    plan = plan_of({})
    save_plan.fn(archive, plan)
    save_plan.fn(archive, plan)
    assert kept_plan(archive, plan.campaign_id).order_keys == plan.order_keys


def test_the_oldest_complete_version_is_chosen_behind_those_that_are_not(tmp_path):
    archive, plan = LocalArchive(root=str(tmp_path)), plan_of({})
    store, folder = archive.get_store(), experiment_folder("", plan.campaign_id, PLAN_CODE)
    with pytest.raises(ArchiveUnavailable, match="no complete version yet"):
        choose_version(store, folder)
    store.put_if_absent(f"{folder}/v001/claim.json", b"{}", "application/json")  # begun by a run that died
    store.put_if_absent(f"{folder}/v003/claim.json", b"{}", "application/json")  # behind a gap
    with pytest.raises(ArchiveUnavailable, match="no complete version yet"):
        choose_version(store, folder)
    save_plan.fn(archive, plan)
    assert json.loads(store.read(chosen_key(folder))) == {"version": 2}


def _archived(archive, campaign_id, code, status):
    row = ResultRow(
        experiment_code=code,
        result_id="r",
        result_type="expression",
        level="summary",
        name="a",
        outcome="measured",
    )
    archive_version(
        archive.get_store(),
        "",
        campaign_id=campaign_id,
        experiment_id=code,
        experiment_code=code,
        results_status=status,
        documents=[Document(path=TABLE_PATH, content_type="text/csv", body=to_csv([row]))],
        now=datetime.now(UTC),
    )


def _sealed(archive, campaign_id):
    manifest = read_latest(archive.get_store(), "", campaign_id, TABLE_CODE).manifest
    return manifest.version, manifest.results_status


def test_a_table_over_preliminary_results_is_not_sealed_as_complete(tmp_path):
    """The same rows, once all of them are released, are a version of their own."""
    archive = LocalArchive(root=str(tmp_path))
    _archived(archive, "c", "E-1", "all")
    _archived(archive, "c", "E-2", "partial")
    sealed = []
    for _ in range(2):
        collate_campaign.fn(archive, "c", ["E-1", "E-2"])
        sealed.append(_sealed(archive, "c"))
        _archived(archive, "c", "E-2", "all")
    assert sealed == [(1, "partial"), (2, "all")]


def test_a_table_that_lacks_an_experiment_of_the_plan_is_not_sealed_as_complete(tmp_path):
    archive, plan = LocalArchive(root=str(tmp_path)), plan_of({}, {}, {})
    assert len(plan.experiments) == 2
    save_plan.fn(archive, plan)
    _archived(archive, plan.campaign_id, "E-1", "all")
    for codes in (["E-1"], ["E-1", "E-2"]):
        collate_campaign.fn(archive, plan.campaign_id, codes)
        assert _sealed(archive, plan.campaign_id) == (1, "partial")
    _archived(archive, plan.campaign_id, "E-2", "all")
    collate_campaign.fn(archive, plan.campaign_id, ["E-1", "E-2"])
    assert _sealed(archive, plan.campaign_id) == (2, "all")
