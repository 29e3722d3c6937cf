"""Which design an entry of a result is about: a number under the wrong design is worse than one without."""

import pytest

from prefect_assay.analysis.results import summarize
from prefect_assay.analysis.results.matching import match_results
from prefect_assay.analysis.results.tidy import read_rows
from prefect_assay.service.models.result import Result
from prefect_assay.service.models.sequences import ProteinSequence

D0 = ProteinSequence(name="D0", aa_string="MKTAYIAKQR")
E1 = ProteinSequence(name="E1", aa_string="GSHMKLVFFA")
TAGGED = ProteinSequence(
    name="E1-C", aa_string="GSHMKLVFFA"
)  # contract 2.3: the same residues with another tag
ORDER = (D0, E1, TAGGED)


def result(*entries, name="r-1", kind="affinity"):
    return Result.model_validate({"id": name, "result_type": kind, "summary": list(entries)})


def designs(*results, order=ORDER, ids=None):
    matched = match_results(results, order, ids)
    return {place: design.name for place, design in matched.designs.items()}, matched


@pytest.mark.parametrize(
    ("entry", "design"),
    [
        ({"sequence_name": "D0"}, "D0"),
        ({"sequence": {"name": "D0"}}, "D0"),
        ({"name": " d0 "}, "D0"),
        ({"sequence": {"name": None, "aa_string": "mktayiakqr"}}, "D0"),
        ({"sequence": "MKTAY IAKQR"}, "D0"),
        ({"name": "row 1", "sequence": {"aa_string": "MKTAYIAKQR"}}, "D0"),
        ({"sequence_id": "s-1"}, "D0"),
        ({"sequence_id": 7}, "E1-C"),
        ({"sequence": {"id": "s-1"}}, "D0"),
        ({"sequence": "GSHMKLVFFA"}, None),  # two designs have them
        ({"sequence_id": "unknown"}, None),
        (
            {"name": "D0", "sequence": {"aa_string": "GSHMKLVFFA"}},
            None,
        ),  # the name of one, the residues of another
        ({"name": "D0", "sequence": {"aa_string": "MKTAYIAKQRHHHHHH"}}, "D0"),  # with a tag of the laboratory
        ({}, None),
    ],
)
def test_name_then_folded_name_then_residues_then_id(entry, design):
    names_by_place, _ = designs(result(entry), ids={"s-1": "d0", "7": "E1-C"})
    assert names_by_place == ({(0, 0): design} if design else {})


def test_names_that_differ_only_in_case_are_two_designs_where_the_order_has_both():
    both = (D0, ProteinSequence(name="d0", aa_string="ACDEF"))
    assert designs(result({"name": "d0"}, {"name": "D0"}), order=both)[0] == {(0, 0): "d0", (0, 1): "D0"}


LONG = "EVQLVESGGGLVQPGGSLRLSCAASGFTFSSYAMSWVRQAPGKGLEWVSA"
PAIR = ProteinSequence(name="fab", aa_string=f"{LONG}:DIQMTQSPSSLSASVGDRVTITC")
OTHERS = (
    ProteinSequence(name="d1", aa_string=LONG),
    ProteinSequence(name="d2", aa_string="MKTAYIAKQR"),
    PAIR,
)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("d1", "WYVWYVWYVWYVWYVWYV"),  # an entirely different protein
        ("d1", LONG.replace("GGG", "GAG")),  # one residue is changed
        ("d1", LONG[:-1]),  # truncated at its end
        ("d1", f"GS{LONG[1:]}"),  # truncated at its start, with a tag
        ("d1", f"{LONG}:DIQMTQSPSSLSASVGDRVTITC"),  # with another chain
        ("d1", LONG.replace("QPG", "Q-PG")),  # with a gap
        (" D1 ", "WYV"),
        ("d1", "MKTAYIAKQR"),  # the residues of another design
        ("fab", LONG),  # a chain is missing
        ("fab", f"{LONG}:DIQMTQSPSSLSASVGDRVTITG"),  # one residue of the second chain
        ("fab", f"{LONG}DIQMTQSPSSLSASVGDRVTITC"),  # the chains are joined
        ("fab", f"{LONG}:{LONG}"),
    ],
)
def test_what_is_named_like_a_design_and_shows_another_protein_is_its_own_row(name, shown):
    entry = {"sequence": {"name": name, "aa_string": shown}, "kd_mean": 9.17e-8}
    matched, everything = designs(result(entry), order=OTHERS)
    assert matched == {}
    (note,) = everything.nameless
    assert "shows other residues than were ordered" in note
    table = read_rows([result(entry)], ordered=OTHERS, complete=True, matched=everything)
    assert {row.name: row.kd_M for row in table if row.kd_M} == {f"{name} [r-1/1]": 9.17e-8}
    assert not [one for one in summarize(table) if one.name in {"d1", "d2", "fab"} and one.kd_M]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("d1", f"MGSSHHHHHHSSG{LONG.lower()}"),
        ("d1", f"{LONG}GGSHHHHHH"),
        ("d1", f"M{LONG[:20]} {LONG[20:]}LEHHHHHH"),
        ("fab", f"{PAIR.aa_string}HHHHHH"),
        ("fab", f"M{LONG}GGS:DIQMTQSPSSLSASVGDRVTITC"),
        ("fab", f"DIQMTQSPSSLSASVGDRVTITCRTVA:{LONG}"),  # the other chain first
        ("d1", "d1"),  # the name where residues may be
        ("d1", ""),
    ],
)
def test_a_tag_leaves_the_ordered_residues_of_every_chain(name, shown):
    entry = {"sequence": {"name": name, "aa_string": shown}}
    matched, everything = designs(result(entry), order=OTHERS)
    assert (matched, everything.nameless) == ({(0, 0): name}, ())


def test_a_longer_design_of_the_order_that_is_shown_is_not_the_shorter_one_with_a_tag():
    both = (OTHERS[0], ProteinSequence(name="d1-long", aa_string=f"{LONG}GGGGSGGGGS"))
    shown = f"M{both[1].aa_string}HHHHHH"
    matched, everything = designs(
        result({"name": "d1", "aa_string": shown}, {"name": "d1-long", "aa_string": shown}),
        order=(*both, D0),
    )
    assert matched == {(0, 1): "d1-long"}
    assert len(everything.nameless) == 1


def test_an_id_of_a_sequence_matches_in_either_case_and_its_residues_count():
    sequence_id = "2f1a3c55-0000-4000-8000-00000000abcd"
    ids = {sequence_id.upper(): "d1"}
    assert designs(result({"sequence_id": sequence_id}), order=OTHERS, ids=ids)[0] == {(0, 0): "d1"}
    other = result({"sequence_id": sequence_id, "aa_string": "WYV"})
    assert designs(other, order=OTHERS, ids=ids)[0] == {}


def test_a_design_is_not_matched_a_second_time_by_its_residues():
    names_by_place, all_of_it = designs(
        result({"name": "D0", "kd_mean": 1e-9}, {"sequence": "MKTAYIAKQR", "kd_mean": 2e-6})
    )
    assert names_by_place == {(0, 0): "D0"}
    assert len(all_of_it.nameless) == 1


@pytest.mark.parametrize("shown", [{"sequence": {"aa_string": "MKTAYIAKQR"}}, {"sequence_id": "s-1"}])
def test_all_entries_that_show_a_design_alike_are_its_replicates(shown):
    entries = [{"name": f"run {n}", "kd_mean": kd, **shown} for n, kd in enumerate((1e-9, 2e-9, 4e-9))]
    names_by_place, matched = designs(result(*entries), ids={"s-1": "D0"})
    assert names_by_place == {(0, n): "D0" for n in range(3)}
    (design,) = summarize(read_rows([result(*entries)], matched=matched))
    assert (design.kd_M, design.replicates) == (pytest.approx(2e-9), 3)


def test_two_proteins_never_share_a_row():
    """Without names, a result per design: 1 nM and 2 uM of two proteins are not one design."""
    nameless = [result({"kd_mean": 1e-9}, name="r-1"), result({"kd_mean": 2e-6}, name="r-2")]
    table = read_rows(nameless, ordered=(D0, E1), complete=True)
    measured = {line.name: line.kd_M for line in summarize(table) if line.kd_M}
    assert measured == {"unmatched [r-1/1]": 1e-9, "unmatched [r-2/1]": 2e-6}
    assert {row.name: row.outcome for row in table if not row.result_id} == {"D0": "unknown", "E1": "unknown"}


def test_one_foreign_name_for_two_proteins_is_two_rows():
    odd = result(
        {"name": "x", "sequence": {"aa_string": "AAA"}}, {"name": "x", "sequence": {"aa_string": "CCC"}}
    )
    assert len({row.name for row in read_rows([odd])}) == 2


def test_an_entry_with_the_name_of_a_design_and_the_residues_of_another_has_a_name_of_its_own():
    (entry, *_) = read_rows(
        [result({"name": "D0", "sequence": {"aa_string": E1.aa_string}, "kd_mean": 1e-9})], ordered=ORDER
    )
    assert entry.kd_M == 1e-9
    assert entry.name not in {design.name for design in ORDER}


def test_the_name_of_an_entry_counts_before_its_sequence_id():
    assert designs(result({"name": "D0", "sequence_id": "7"}), ids={"7": "E1-C"})[0] == {(0, 0): "D0"}


def test_the_laboratory_s_control_keeps_its_name():
    assert [row.name for row in read_rows([result({"name": "EGF", "kd_mean": 1e-9})], ordered=())] == ["EGF"]
