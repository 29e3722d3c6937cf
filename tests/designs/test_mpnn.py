"""FASTA of ProteinMPNN and LigandMPNN, with headers as `protein_mpnn_run.py` and `run.py` write them."""

import pytest

from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.read import read_sequences
from prefect_assay.errors import InvalidSequences

PROTEIN = """\
>3HTN, score=1.1705, global_score=1.2045, fixed_chains=['C'], designed_chains=['A', 'B'], model_name=v_48_020, git_hash=8907e6, seed=37
NMYSYKXXXKIG/NMYSYKKIG
>T=0.1, sample=1, score=0.7291, global_score=0.9330, seq_recovery=0.5736
KLYSYKEIGNK/MSYKYKKIG
>T=0.1, sample=2, score=0.7414, global_score=0.9355, seq_recovery=0.6075
MLYDYKKIGNK/MLYKYKKIG
"""
LIGAND = """\
>1BC8, T=0.1, seed=111, num_res=93, num_ligand_res=93, use_ligand_context=True, ligand_cutoff_distance=8.0, batch_size=1, number_of_batches=2, model_path=./model_params/proteinmpnn_v_48_020.pt
MDSAITLWQF
>1BC8, id=1, T=0.1, seed=111, overall_confidence=0.3848, ligand_confidence=0.3848, seq_rec=0.5054
GSSSITLWQF
>1BC8, id=2, T=0.1, seed=111, overall_confidence=0.3850, ligand_confidence=0.3850, seq_rec=0.4946
GSSSLTLWQF
"""


def names(text: str, **how) -> list[str]:
    return [s.name for s in read_sequences("d.fa", text=text, reading=ReadingOptions(**how)).items]


def test_the_native_input_is_left_out_and_samples_are_named_after_it():
    sequences = read_sequences("d.fa", text=PROTEIN)
    first = sequences.items[0]
    assert [s.name for s in sequences.items] == ["3HTN_T=0.1_sample=1", "3HTN_T=0.1_sample=2"]
    assert first.aa_string == "KLYSYKEIGNK:MSYKYKKIG"
    assert first.attributes == {
        "backbone": "3HTN", "parent": "3HTN", "T": "0.1", "sample": "1", "score": "0.7291", "global_score": "0.9330",
        "seq_recovery": "0.5736", "fixed_chains": "['C']", "designed_chains": "['A', 'B']", "model_name": "v_48_020",
        "git_hash": "8907e6", "seed": "37",
    }  # fmt: skip
    assert sequences.notes == (
        "the native input of ProteinMPNN left out: 3HTN; --keep-native (in a form: keep_native) also measures them",
    )


def test_ligand_mpnn_names_its_samples_itself():
    sequences = read_sequences("d.fa", text=LIGAND)
    assert [s.name for s in sequences.items] == ["1BC8_T=0.1_id=1", "1BC8_T=0.1_id=2"]
    assert sequences.items[1].attributes["overall_confidence"] == "0.3850"
    assert sequences.items[1].attributes["backbone"] == "1BC8"
    assert sequences.items[1].attributes["num_res"] == "93"


def test_the_native_input_is_kept_when_it_is_asked_for():
    assert names(LIGAND, keep_native=True) == ["1BC8", "1BC8_T=0.1_id=1", "1BC8_T=0.1_id=2"]
    with pytest.raises(InvalidSequences, match="sequence '3HTN': not an amino acid: 'X' at position 7"):
        names(PROTEIN, keep_native=True)


def test_files_of_several_inputs_may_be_joined():
    both = PROTEIN + LIGAND + PROTEIN.replace("3HTN", "4YOW").replace("KLYS", "KLYA").replace("MLYD", "MLYA")
    sequences = read_sequences("d.fa", text=both, reading=ReadingOptions(as_is=True))
    assert [s.name for s in sequences.items] == [
        "3HTN_T=0.1_sample=1", "3HTN_T=0.1_sample=2", "1BC8_T=0.1_id=1", "1BC8_T=0.1_id=2",
        "4YOW_T=0.1_sample=1", "4YOW_T=0.1_sample=2",
    ]  # fmt: skip
    assert sequences.notes[0].startswith("3 native inputs of ProteinMPNN left out: 3HTN, 1BC8, 4YOW;")


def test_samples_that_an_earlier_version_numbered_alike_get_a_running_number():
    text = ">5L33, score=1.6, fixed_chains=[], designed_chains=['A'], model_name=v_48_020\nHMPEEE\n"
    text += ">T=0.1, sample=0, score=0.7977, seq_recovery=0.4528\nSIDEEE\n"
    text += "> T=0.1, sample=0, score=0.8433, seq_recovery=0.4434\nSVDEDT\n"
    assert names(text) == ["5L33_T=0.1_sample=0", "5L33_T=0.1_sample=0_2"]


def test_two_runs_of_one_input_are_told_apart_by_name():
    run = ">5L33, score=1.6, fixed_chains=[], designed_chains=['A'], model_name=v_48_020\nHMPEEE\n"
    first, second = "SIDEEE", "SVDEDT"
    text = "".join(
        f"{run}>T=0.1, sample=1, score=0.8, seq_recovery=0.4\n{residues}\n" for residues in (first, second)
    )
    sequences = read_sequences("d.fa", text=text)
    assert [s.name for s in sequences.items] == ["5L33_run1_T=0.1_sample=1", "5L33_run2_T=0.1_sample=1"]
    assert "1 input occurs in several runs: the run is in the names" in sequences.notes[0]


def test_samples_without_their_input_and_designs_between_them_are_kept():
    assert names(">T=0.2, sample=3, score=1\nACD\n>own\nEFG\n>other\nKLM\n") == [
        "T=0.2_sample=3",
        "own",
        "other",
    ]
    assert names(">own\nEFG\n>T=0.2, sample=3, score=1\nACD\n") == ["own_T=0.2_sample=3"]


def test_scores_alone_do_not_make_a_native_input():
    """A design may be scored without being an input: nothing is left out unless its samples follow."""
    text = ">d1, score=1.2, designed_chains=['A'], model_name=v_48_020\nACD\n>d2, score=1.3\nEFG\n"
    assert names(text) == ["d1", "d2"]
    assert read_sequences("d.fa", text=text).items[0].attributes["designed_chains"] == "['A']"


def test_missing_residues_in_a_sample_are_an_error_at_its_line():
    with pytest.raises(InvalidSequences) as caught:
        names(PROTEIN.replace("KLYSYKE", "KLXXYKE"))
    assert caught.value.findings[0].startswith(
        "d.fa, line 3, sequence '3HTN_T=0.1_sample=1': not an amino acid: 'X'"
    )
