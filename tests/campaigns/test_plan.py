"""The plan of a campaign: the designs of its first run are its designs for good."""

import logging
from types import SimpleNamespace

import pytest
from pydantic import SecretStr

from assay_lab.testing import LocalLab
from prefect_assay.blocks import AssayCredentials, LocalArchive
from prefect_assay.campaigns import plan as campaign_plan
from prefect_assay.campaigns.plan import CampaignInput, make_plan, read_kept_plan
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.errors import ArchiveError, InvalidSequences, InvalidSpec
from prefect_assay.service.models.spec import Assay, Target
from prefect_assay.service.models.vocabulary import ExperimentType
from prefect_assay.tasks.collate import save_plan
from prefect_assay.tasks.read import plan_campaign, read_designs

ASSAY = Assay(experiment_type=ExperimentType.EXPRESSION)
FASTA = ">d1 ipTM=0.9\nMKVLAAGICDE\n>d2 ipTM=0.8\nMKVLAAGICDF\n"
MPNN = (
    ">3HTN, score=1.1, fixed_chains=[], designed_chains=['A'], model_name=v_48_020, seed=37\nMKVLA\n"
    ">T=0.1, sample=1, score=0.7, seq_recovery=0.5\nMKVLG\n>T=0.1, sample=2, score=0.8, seq_recovery=0.5\nMKVLC\n"
)


@pytest.fixture(scope="module")
def credentials():
    with LocalLab() as lab:
        yield AssayCredentials(base_url=lab.base_url, token=SecretStr(lab.token))


@pytest.fixture
def setup(tmp_path, monkeypatch, credentials):
    """A campaign's setup without Prefect."""
    for name in ("require_rail", "check_archive", "check_access"):
        monkeypatch.setattr(campaign_plan, name, lambda *_: None)
    monkeypatch.setattr(campaign_plan, "resolve_target", lambda *_: None)
    monkeypatch.setattr(campaign_plan, "get_run_logger", lambda: logging.getLogger("plan"))
    for task in (read_designs, plan_campaign, save_plan):
        monkeypatch.setattr(campaign_plan, task.fn.__name__, task.fn)
    archive = LocalArchive(root=str(tmp_path))
    return SimpleNamespace(
        archive=archive,
        payment_method=None,
        policy=None,
        wallet=None,
        credentials=credentials,
        ledgers=SimpleNamespace(archive_id="archive"),
    )


def make_input(designs, campaign_id=None, **changes) -> CampaignInput:
    values = {
        "designs": designs,
        "assay": ASSAY,
        "campaign_id": campaign_id,
        "reading": ReadingOptions(designs_name="designs.fasta", **changes),
    }
    return CampaignInput(**values)


def test_names_are_first_words_and_the_plan_stays(setup):
    first = make_plan(setup, make_input(FASTA, "mine"))
    assert set(first.experiments[0].spec.sequences) == {"d1", "d2"}
    assert first.attributes["d1"] == {"ipTM": "0.9"}
    assert first.source == "designs.fasta"
    assert make_plan(setup, make_input(FASTA, "mine")).order_keys == first.order_keys


def test_an_id_that_other_designs_have_used_is_still_refused(setup):
    make_plan(setup, make_input(">other x\nAAAKLM\n", "mine"))
    with pytest.raises(InvalidSpec, match="has been used for other designs"):
        make_plan(setup, make_input(FASTA, "mine"))


def test_an_earlier_order_in_other_batches_is_refused_and_not_repeated(setup):
    make_plan(setup, make_input(FASTA))
    with pytest.raises(InvalidSpec, match="has been used for other designs"):
        make_plan(setup, make_input(FASTA, designs_per_experiment=1))


def test_warnings_and_notes_are_logged(setup, caplog):
    with caplog.at_level(logging.INFO, logger="plan"):
        make_plan(setup, make_input(MPNN))
    assert "the native input of ProteinMPNN left out: 3HTN" in caplog.text
    assert "1 of 2 designs has an odd number of cysteines" in caplog.text


TARGET = "NAFTVTVPKDLYVVEYGSNMTIECKFPVEKQLDLAALIVYWEMEDKNIIQFVHGEEDLKV"
FUSED = f">a\nSEEKKKLALEAAAKLSQAMKVLAEKRDDVKAAAEEAVKLMKE{TARGET}\n>b\nSKALEYFGSLSEEEFERLREELDELMVRGKQVGLVTREAHWL{TARGET}\n"


def test_what_is_in_doubt_ends_the_run_before_the_service_is_asked(setup):
    with pytest.raises(InvalidSequences, match=r"in a form: as_is"):
        make_plan(setup, make_input(FUSED))
    plan = make_plan(setup, make_input(FUSED, as_is=True))
    assert "2 designs: 102 residues" in plan.reading[0]
    cut = make_plan(setup, make_input(FUSED, chain="1"))
    assert [len(value.aa_string) for value in cut.sequences.values()] == [42, 42]


def test_the_catalogs_target_is_refused_though_all_designs_are_variants(setup, monkeypatch):
    target = Target(id="t", details={"sequence": TARGET})
    monkeypatch.setattr(campaign_plan, "resolve_target", lambda *_: target)
    variants = FUSED.replace(
        "SKALEYFGSLSEEEFERLREELDELMVRGKQVGLVTREAHWL", "SEEKKKLALEAAAKLSQAMKVLAEKRDDVKAAAEEAVKLMKK"
    )
    with pytest.raises(InvalidSequences, match="the target in the service's catalog"):
        make_plan(setup, make_input(variants))


def test_a_campaign_goes_on_by_its_archived_plan(setup):
    first = make_plan(setup, make_input(FASTA, "mine"))
    assert make_input("campaign:mine").continued_id == "mine"
    assert make_input(FASTA).continued_id is None
    assert read_kept_plan(setup, "mine").order_keys == first.order_keys


def test_a_plan_of_another_archive_orders_nothing(setup):
    make_plan(setup, make_input(FASTA, "mine"))
    setup.ledgers.archive_id = "another"
    with pytest.raises(ArchiveError, match="not in this archive"):
        read_kept_plan(setup, "mine")
    with pytest.raises(ArchiveError, match="not in this archive"):
        read_kept_plan(setup, "never planned")
