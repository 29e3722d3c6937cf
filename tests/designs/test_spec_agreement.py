"""The local rules refuse exactly what the lab refuses, as far as that does not take the catalog."""

from lab_support.core import PRICED
from prefect_assay.designs.campaign import split_into_batches
from prefect_assay.designs.read import read_sequences
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.spec import Assay, ExperimentSpec
from support.fuzz.specs import SpecFuzz, judged


def test_client_and_lab_judge_random_orders_alike():
    fuzz = SpecFuzz(seed=21)
    for _ in range(600):
        fuzz.one()
    assert 100 < fuzz.agreed < 500  # both sides of the line are met
    fuzz.close()


def test_what_is_read_from_a_file_is_never_refused():
    fuzz = SpecFuzz(seed=22)
    text = "name,sequence,type,VH,VL,ch,cl,tag,control\na,mkv,ScFv,MK,V,,,N,true\nb,GHI:KLM,FAB,,,x,y,,\nc,GHI:KLM,,,,,,C,\n"
    assay = Assay(experiment_type="affinity", target=PRICED["id"])
    for batch in split_into_batches(read_sequences("designs", text=text), assay, per_experiment=2):
        request = CreateRequest(experiment_spec=ExperimentSpec.of(assay, batch, PRICED["id"]), name="x")
        assert not fuzz._lab(judged(request)[0])
    fuzz.close()
