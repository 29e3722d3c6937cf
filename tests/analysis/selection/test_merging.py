"""A measurement that stands in several tables counts once; what was measured twice counts twice."""

import csv
import io
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab_support.designs import invented_designs, measure, order
from prefect_assay.analysis.results import Outcome, count_hit_rates, summarize, to_csv, write_summary_csv
from prefect_assay.analysis.results.tidy import read_rows
from prefect_assay.analysis.selection import read_history
from prefect_assay.service.models.result import Result

DATA = Path(__file__).parent / "data"
GOLDEN = Path(__file__).parents[2] / "golden" / "archive"


def rate(history):
    return count_hit_rates(history.designs, lambda _: "all")["all"]


def campaign_tables(count, seed):
    """The two tables that a campaign archives, and the same measurements as two files of the public competition."""
    records = measure(**order(invented_designs(count, seed=seed))).result_records
    rows = read_rows(
        [Result.model_validate({"id": "r1", **record}) for record in records], experiment_code="LAB-001-001"
    )
    designs = summarize(rows)
    return (
        to_csv(rows),
        write_summary_csv(designs),
        write_published(
            "name,kd,binding_strength,binding,expression,sequence",
            (
                (
                    row.name,
                    signed(row.reported_kd_M, row.reported_qualifier) or signed(row.kd_M, row.qualifier),
                    row.binding_strength,
                    row.binding,
                    row.expression,
                    row.aa_string,
                )
                for row in designs
            ),
        ),
        write_published(
            "name,replicate,kd,binding_strength,binding,expression",
            (
                (
                    row.name,
                    row.replicate,
                    signed(row.kd_M, row.qualifier) if row.outcome == Outcome.MEASURED else None,
                    row.binding_strength,
                    row.binding,
                    row.expression,
                )
                for row in rows
                if row.level == "replicate"
            ),
        ),
    )


def signed(kd, qualifier):
    return kd if qualifier is None else f"{qualifier}{kd}"


def write_published(header, rows):
    """In the form of the competition, with its word for nothing."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(header.split(","))
    writer.writerows(["null" if value is None else value for value in row] for row in rows)
    return b"\xef\xbb\xbf" + buffer.getvalue().encode()


@pytest.mark.parametrize("seed", range(3))
def test_the_four_tables_of_a_campaign_count_each_design_once_in_any_order(seed):
    tables = campaign_tables(60, seed)
    alone = read_history(tables[0])

    for given_tables in itertools.permutations(tables):
        together = read_history(*given_tables)
        assert len(together) == len(alone) == 60
        assert rate(together) == rate(alone)
    assert sum("60 of 60 designs" in note for note in together.notes) == 3


@pytest.mark.parametrize(
    ("kind", "designs"), [("affinity", 8), ("screening", 4), ("thermostability", 4), ("expression", 4)]
)
def test_so_do_the_tables_of_other_assays(kind, designs):
    folder = GOLDEN / f"golden-{kind}"
    tables = [*folder.glob("TABLE/v001/results.csv"), *folder.glob("REPORT/v001/*.csv")]
    assert len(tables) == 2
    assert {len(read_history(*some)) for some in itertools.permutations(tables)} == {designs}


def test_a_copy_under_another_name_and_the_same_table_twice_are_said():
    first, copy = DATA / "history_a.csv", DATA / "history_a_copy.csv"
    assert len(read_history(first)) == 3

    history = read_history(first, copy)
    assert len(history) == 3
    assert (
        f"3 of 3 designs in {copy} are measurements that {first} also has; each counts once" in history.notes
    )
    again = read_history(first, first)
    assert len(again) == 3
    assert (
        f"3 of 3 designs in {first} (table 2) are measurements that {first} also has; each counts once"
        in again.notes[-1]
    )


A, B = "SEEKKKLALEAAAKLSQAMKVL", "SKALEYFGSLSEEEFERLREEL"


def test_a_renamed_copy_in_another_unit_is_the_same_measurement():
    history = read_history(
        f"name,sequence,KD (nM),method\na,{A},12.5,RFdiffusion\n",
        f"design,name,sequence,kd_M,ipTM\nx,renamed,{A.lower()},1.25e-8,0.8\n",
    )
    (design,) = history.designs
    assert design.name == "a"
    assert design.attributes == {"method": "RFdiffusion", "design": "x", "ipTM": "0.8"}


def test_two_replicates_of_equal_value_in_one_table_remain_two_also_with_a_copy():
    table = f"name,replicate,sequence,kd_nM\na,1,{A},12\na,2,{A},12\n"
    unnumbered = f"name,sequence,kd_nM\na,{A},12\na,{A},12\n"
    for tables in ([table], [table, table], [unnumbered], [unnumbered, unnumbered], [table, unnumbered]):
        (design,) = read_history(*tables).designs
        assert design.replicates == 2


def test_two_designs_of_equal_residues_in_one_table_remain_two_also_with_a_copy():
    table = f"name,sequence,kd_nM\na,{A},12\nb,{A},12\n"
    assert [design.name for design in read_history(table, table).designs] == ["a", "b"]


def test_a_further_replicate_in_another_table_is_evidence_of_the_same_design():
    first = f"name,replicate,sequence,kd_nM\na,1,{A},10\na,2,{A},20\n"
    longer = first + f"a,3,{A},40\n"
    for tables in ([first, longer], [longer, first]):
        (design,) = read_history(*tables).designs
        assert (design.replicates, design.kd_M) == (3, pytest.approx(20e-9))
    overlapping = f"name,replicate,sequence,kd_nM\na,2,{A},20\na,3,{A},40\n"
    history = read_history(first, overlapping)
    (design,) = history.designs
    assert (design.replicates, design.kd_M) == (3, pytest.approx(20e-9))
    assert "1 design with other values in a further table: all count, as replicates" in history.notes


def test_conflicting_values_of_one_design_are_replicates_of_it():
    one, other = f"name,sequence,kd_nM\na,{A},10\n", f"name,sequence,kd_nM\na,{A},40\n"
    history = read_history(one, other, one)
    (design,) = history.designs
    assert (design.replicates, design.kd_M) == (2, pytest.approx(20e-9))

    binds = f"name,sequence,binding\na,{A},true\n"
    fails = f"name,sequence,binding\na,{A},false\n"
    (design,) = read_history(fails, binds).designs
    assert (design.outcome, design.replicates) == (Outcome.BINDING, 2)


def test_two_experiments_are_two_measurements():
    table = "name,experiment_code,outcome,kd_M,aa_string\na,{},measured,1e-8," + A + "\n"
    assert len(read_history(table.format("E1"), table.format("E2"))) == 2
    assert len(read_history(table.format("E1"), table.format("E1"))) == 1


def test_later_results_of_an_experiment_take_the_place_of_earlier_ones():
    head = "name,experiment_code,outcome,kd_M,aa_string\n"
    early, late = f"{head}a,E1,pending,,{A}\n", f"{head}a,E1,measured,1e-8,{A}\n"
    for tables in ([early, late], [late, early]):
        (design,) = read_history(*tables).designs
        assert design.outcome is Outcome.MEASURED
    history = read_history(late, f"{head}a,E1,measured,3e-8,{A}\n")
    assert history.designs[0].kd_M == 3e-8
    assert "the table that was given last counts" in history.notes[-1]


def outcomes(*tables):
    """Target, outcome, K_D and replicates of each design, by target."""
    designs = read_history(*tables).designs
    return sorted((d.target or "", d.outcome.value, d.kd_M, d.replicates) for d in designs)


@pytest.mark.parametrize("title", ["target", "Target"])
def test_two_targets_are_two_measurements_of_a_design(title):
    def table(*targets, her2_nM=10000):  # noqa: N803  units are spelled as scientists spell them
        lines = "".join(f"d1,{target},{A},{1 if target == 'egfr' else her2_nM}\n" for target in targets)
        return f"name,{title},sequence,KD (nM)\n{lines}"

    expected = [("HER2", "measured", pytest.approx(1e-5), 1), ("egfr", "measured", pytest.approx(1e-9), 1)]
    assert outcomes(table("egfr", "HER2 ")) == expected
    assert outcomes(table("egfr"), table("HER2 ")) == expected
    assert outcomes(table("egfr", "HER2 "), table("HER2 ", "egfr")) == expected
    assert len(outcomes(table("egfr"), table("HER2 ", her2_nM=1))) == 2
    summary = f"name,outcome,{title},aa_string,kd_M\nd1,measured,{{}},{A},{{}}\n"
    assert len(outcomes(summary.format("egfr", 1e-9), summary.format("her2", 1e-5))) == 2


def test_a_row_without_a_target_is_about_the_only_one():
    head = "name,target,sequence,kd_nM\n"
    one = f"{head}d1,,{A},10\nd1,egfr,{A},40\n"
    assert outcomes(one) == [("egfr", "measured", pytest.approx(20e-9), 2)]
    assert outcomes(f"{one}d1,EGFR,{A},20\n") == [("egfr", "measured", pytest.approx(20e-9), 3)]
    assert outcomes(f"{head}d1,egfr,{A},40\n", f"name,sequence,kd_nM\nd1,{A},10\n")[0][3] == 2


def test_a_negative_on_another_target_is_not_the_archived_one():
    archived = f"name,outcome,experiment_code,target,aa_string\nd1,no_binding,X-1,her2,{A}\n"
    foreign = f"name,target,sequence,binding\nd1,{{}},{A},false\n"
    assert [design.target for design in read_history(archived, foreign.format("egfr")).designs] == [
        "her2",
        "egfr",
    ]
    for same in ("", "Her2"):
        assert len(read_history(archived, foreign.format(same))) == 1


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from([A, B]), st.sampled_from(["", "10", "20", ">900"])),
        min_size=1,
        max_size=6,
    ),
    st.data(),
)
def test_copies_and_excerpts_change_nothing(lines, data):
    """Any table with copies and excerpts of itself, in any order after it, is the table alone."""
    head = "name,sequence,kd_nM,binding\n"
    text = [f"{name},{residues},{kd},{'true' if kd else 'false'}\n" for name, residues, kd in lines]
    table = head + "".join(text)
    parts = data.draw(st.lists(st.permutations(range(len(text))), max_size=3))
    shuffled = [head + "".join(text[index] for index in part) for part in parts]
    alone = read_history(table)
    together = read_history(table, *shuffled)
    assert sorted((d.name, d.aa_string, d.outcome, d.replicates, d.kd_M) for d in together.designs) == [
        (d.name, d.aa_string, d.outcome, d.replicates, pytest.approx(d.kd_M))
        for d in sorted(alone.designs, key=lambda d: (d.name, d.aa_string))
    ]
