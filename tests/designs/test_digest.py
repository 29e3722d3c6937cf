"""The campaign's name follows from its content and from nothing else."""

import re

import pytest

from prefect_assay.designs.campaign import campaign_digest
from prefect_assay.designs.read import read_sequences
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.models.vocabulary import ExperimentType, Method

FASTA = ">a\nACD\n>b\nEFG\n"
KNOWN = campaign_digest(read_sequences(FASTA), Assay())


def test_shape_and_stability_over_releases():
    assert re.fullmatch(r"[0-9a-f]{16}", KNOWN)
    assert (
        KNOWN == "7852e5f61a66d6df"
    )  # a change here makes every running campaign a new one: it orders again


@pytest.mark.parametrize(
    "text",
    [">b\nEFG\n>a\nACD\n", "> a\r\nac\r\nd\r\n>b\nEFG*", "name,sequence,score\nb,EFG,1\na,ACD,2\n"],
    ids=["order", "spelling", "format"],
)
def test_the_same_content_is_the_same_campaign(text):
    assert campaign_digest(read_sequences("elsewhere", text=text), Assay()) == KNOWN


@pytest.mark.parametrize(
    "assay",
    [
        Assay(method=Method.BLI),
        Assay(n_replicates=3),
        Assay(antigen_concentrations=(1000, 316.2, 100, 31.6, 0)),
    ],
)
def test_a_default_spelled_out_is_the_default(assay):
    assert campaign_digest(read_sequences(FASTA), assay) == KNOWN


@pytest.mark.parametrize(
    ("text", "assay"),
    [
        (">a\nACD\n>c\nEFG\n", Assay()),
        (">a\nACD\n>b\nEFH\n", Assay()),
        (">a\nACD\n", Assay()),
        ("name,sequence,control\na,ACD,1\nb,EFG,0\n", Assay()),
        ("name,sequence,tag_location\na,ACD,N\nb,EFG,\n", Assay()),
        (FASTA, Assay(target="EGFR")),
        (FASTA, Assay(method=Method.SPR)),
        (FASTA, Assay(n_replicates=4)),
        (FASTA, Assay(experiment_type=ExperimentType.SCREENING)),
        (FASTA, Assay(parameters={"buffer": "PBS"})),
    ],
)
def test_another_content_is_another_campaign(text, assay):
    assert campaign_digest(read_sequences("x", text=text), assay) != KNOWN
