"""Reading what was measured before: this package's tables and the public competition's."""

import gzip
import io
import lzma
import math
from collections import Counter
from pathlib import Path

import openpyxl
import pytest

from prefect_assay.analysis.results import (
    DesignSummary,
    Level,
    Outcome,
    ResultRow,
    to_csv,
    write_summary_csv,
)
from prefect_assay.analysis.results.hits import (
    HitRate,
    compute_beta_quantile,
    count_hit_rates,
    get_objective_value,
    is_hit,
)
from prefect_assay.analysis.results.repeats import get_residues
from prefect_assay.analysis.selection import read_history
from prefect_assay.errors import InputError
from prefect_assay.service.assays import Objective


def row(name, outcome, kd=None, *, level=Level.SUMMARY, replicate=None, **words):
    return ResultRow(
        experiment_code="E1",
        result_id="r1",
        result_type="affinity",
        level=level,
        name=name,
        replicate=replicate,
        outcome=outcome,
        kd_M=kd,
        aa_string="ACD" + name.upper(),
        **words,
    )


ROWS = [
    row("a", Outcome.MEASURED, 1e-8, binding="true", binding_strength="strong", expression="high"),
    row("c", Outcome.NO_BINDING, binding="false", expression="high"),
    row("d", Outcome.NO_EXPRESSION, expression="none"),
    row("e", Outcome.PENDING),
]


def outcomes(history):
    return {design.name: design.outcome for design in history.designs}


def test_the_tidy_table_is_read_with_its_failures():
    history = read_history(to_csv(ROWS))

    assert outcomes(history) == {row.name: row.outcome for row in ROWS}
    assert set(map(get_residues, history.designs)) == {"ACDA", "ACDC", "ACDD", "ACDE"}


def test_the_summary_is_read_with_the_designers_columns():
    designs = [
        DesignSummary(
            name=row.name,
            experiment_code="E1",
            outcome=row.outcome,
            kd_M=row.kd_M,
            aa_string=row.aa_string,
            price_cents=19900.5,
            reasons=("one", "two"),
            attributes={"method": "m1", "ipTM": "0.5"},
        )
        for row in ROWS
    ]

    history = read_history(write_summary_csv(designs))

    assert [design.model_copy(update={"reasons": ("one", "two")}) for design in history.designs] == designs


def test_the_competitions_files_are_read_per_design_and_per_replicate():
    per_design = read_history(
        '\ufeff"name","kd","binding_strength","binding","expression","sequence"\n'
        '"a",1e-08,"strong","true","high","ACDA"\n'
        '"b",">0.0001","null","true","high","ACDB"\n'
        '"c","null","null","false","high","ACDC"\n'
        '"d","null","null","null","none","ACDD"\n'
    )
    assert outcomes(per_design) == {
        "a": Outcome.MEASURED,
        "b": Outcome.MEASURED,
        "c": Outcome.NO_BINDING,
        "d": Outcome.NO_EXPRESSION,
    }
    assert [(row.qualifier, row.kd_M) for row in per_design.designs[:2]] == [(None, 1e-8), (">", 1e-4)]

    (design,) = read_history(
        '\ufeff"name","replicate","kd","kon","koff","binding_strength","binding","expression"\n'
        '"a",1,1e-08,70048.0324672482,0.00672336248125063,"null","true","null"\n'
        '"a",2,4e-08,"null","null","null","true","null"\n'
        '"a",3,"null","null","null","null","false","null"\n'
    ).designs
    assert design.outcome is Outcome.MEASURED
    assert design.kd_M == pytest.approx(2e-8)
    assert design.replicates == 3


def test_the_published_file_of_a_competition_is_read():
    path = Path(__file__).parents[3] / "lab/src/assay_lab/data/egfr_round1/egfr_round1_summary.csv"

    designs = read_history(path).designs

    assert Counter(design.outcome for design in designs) == {Outcome.NO_BINDING: 10, Outcome.MEASURED: 1}
    assert designs[0].kd_M == pytest.approx(9.17e-8, rel=0.01)
    assert {design.replicates for design in designs} == {3}


def test_a_table_of_another_program_keeps_its_own_columns():
    text = "Name;KD;Binding;Sequence;Method;ipTM\nx;3e-9;Yes;acd;RFd;0.8\ny;;No;ACE;RFd;\n"

    first, second = read_history(text).designs

    assert (first.outcome, first.kd_M, first.attributes) == (
        Outcome.MEASURED,
        3e-9,
        {"Method": "RFd", "ipTM": "0.8"},
    )
    assert (second.outcome, second.attributes) == (Outcome.NO_BINDING, {"Method": "RFd"})
    assert set(map(get_residues, read_history(text).designs)) == {"ACD", "ACE"}


def test_several_tables_are_one_history_and_rows_without_residues_are_named():
    history = read_history(to_csv(ROWS), "name,kd_M\nz,1e-9\n")

    assert len(history) == 5
    assert history.notes == ("1 of 5 measured designs have no residues: they count only for hit rates",)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "a,b\n1,2\n",
            r"the given table, line 1: no table of results; a history needs .* and this line has \[a, b\]",
        ),
        (
            "HCDR1,KD (nM)\nACD,12\n",
            r"line 1: a table of measurements without names of designs \(name, design",
        ),
        ("name,kd (kcal/mol)\nx,-9\n", r"line 1: the unit of 'kd \(kcal/mol\)' is not clear; .* 'KD \(nM\)'"),
        (
            "name,kd\nx,low\n",
            r"the given table, line 2: kd is 'low', which .*; write a number, with < or > for a limit",
        ),
        ("name,kd_nM\n\ny,1\nx,1,2\n", r"the given table, line 4: 3 cells under 2 columns; quote cells"),
        ("name,outcome\nx,fine\n", r"line 2: column outcome"),
        (
            "name,kd_nM\na,12\nb,0\n",
            r"the given table, line 3: kd_nM is '0', that is 0 M, outside of what is possible",
        ),
        (b"\xff\xfe\x00\n", r"the given table"),
        (b"", r"the given table: empty"),
        ("no-such-table.csv", r"no-such-table.csv: no such file"),
    ],
)
def test_a_table_that_cannot_be_read_is_named_with_its_row(table, message):
    with pytest.raises(InputError, match=message):
        read_history(table)


def design(outcome, **values):
    return DesignSummary(name="x", experiment_code="", outcome=outcome, **values)


@pytest.mark.parametrize(
    ("summary", "chosen", "hit"),
    [
        (design(Outcome.MEASURED, kd_M=1e-8), {}, True),
        (design(Outcome.MEASURED, kd_M=1e-8), {"hit_limit": 5}, False),
        (design(Outcome.MEASURED, kd_M=1e-8), {"hit_limit": 10.1}, True),
        (design(Outcome.MEASURED, kd_M=1e-4, qualifier=">"), {}, None),
        (design(Outcome.MEASURED, kd_M=1e-4, qualifier=">", binding="true"), {}, True),
        (design(Outcome.MEASURED, kd_M=1e-7, qualifier=">"), {"hit_limit": 99}, False),
        (design(Outcome.MEASURED, kd_M=1e-8, qualifier=">"), {"hit_limit": 100}, None),
        (design(Outcome.MEASURED, kd_M=1e-8, qualifier="<"), {}, True),
        (design(Outcome.MEASURED, kd_M=1e-8, qualifier="<"), {"hit_limit": 100}, True),
        (design(Outcome.MEASURED, kd_M=1e-8, qualifier="<"), {"hit_limit": 5}, None),
        (design(Outcome.MEASURED, kd_M=1e-4, qualifier=">", tm_C=60), {"objective": "melting"}, True),
        (design(Outcome.MEASURED, concentration_nM=5, qualifier="<"), {"objective": "expression"}, None),
        (
            design(Outcome.MEASURED, concentration_nM=5, qualifier="<"),
            {"objective": "expression", "hit_limit": 5},
            False,
        ),
        (
            design(Outcome.MEASURED, concentration_nM=9, qualifier=">"),
            {"objective": "expression", "hit_limit": 5},
            True,
        ),
        (
            design(Outcome.MEASURED, kd_M=1e-4, qualifier=">", concentration_nM=9),
            {"objective": "expression", "hit_limit": 5},
            True,
        ),
        (design(Outcome.BINDING), {}, True),
        (design(Outcome.BINDING), {"hit_limit": 5}, None),
        (design(Outcome.NO_BINDING), {"hit_limit": 5}, False),
        (design(Outcome.NO_EXPRESSION), {}, False),
        (design(Outcome.PENDING), {}, None),
        (design(Outcome.UNKNOWN), {}, None),
        (design(Outcome.MEASURED, kd_M=1e-8, control=True), {}, None),
        (design(Outcome.MEASURED, concentration_nM=3), {}, None),
        (design(Outcome.MEASURED, tm_C=60), {"objective": "melting"}, True),
        (design(Outcome.MEASURED, tm_C=60), {"objective": "melting", "hit_limit": 70}, False),
        (design(Outcome.NO_BINDING), {"objective": "melting"}, None),
        (design(Outcome.MEASURED, concentration_nM=300), {"objective": "expression", "hit_limit": 100}, True),
        (design(Outcome.NO_BINDING, expression="high"), {"objective": "expression"}, True),
        (design(Outcome.NO_EXPRESSION, expression="none"), {"objective": "expression"}, False),
    ],
)
def test_what_counts_as_a_hit(summary, chosen, hit):
    assert is_hit(summary, Objective(chosen.get("objective", "affinity")), chosen.get("hit_limit")) is hit


@pytest.mark.parametrize(
    ("cells", "qualifier", "kd"),
    [
        ((">1e-4",), ">", 1e-4),
        (("> 1e-5", ">1e-4"), ">", 1e-5),
        (("<1e-12", "< 1e-11"), "<", 1e-11),
        ((">1e-4", "1e-9", "4e-9"), None, 2e-9),
        ((">1e-4", "<1e-12"), None, None),
    ],
)
def test_a_limit_is_not_read_as_a_measurement(cells, qualifier, kd):
    lines = "".join(f"x,{cell},ACD\n" for cell in cells)
    (summary,) = read_history(f"name,kd,sequence\n{lines}").designs
    assert (summary.outcome, summary.qualifier) == (Outcome.MEASURED, qualifier)
    assert summary.kd_M == (None if kd is None else pytest.approx(kd))
    measured = kd is not None and qualifier is None
    assert (get_objective_value(summary, Objective.AFFINITY) is not None) is measured


def test_a_lower_limit_of_a_competition_is_no_hit_and_no_miss():
    (summary,) = read_history("name,kd,sequence\nx,>1e-4,ACD\n").designs
    assert is_hit(summary) is None


def test_rates_count_outcomes_only_and_have_intervals():
    rates = count_hit_rates(read_history(to_csv(ROWS)).designs, lambda summary: summary.experiment_code)

    assert rates == {"E1": HitRate(1, 3)}
    low, high = HitRate(12, 40).interval()
    assert (low, high) == pytest.approx((0.1756, 0.4519), abs=1e-3)
    assert HitRate(0, 10).interval()[0] == 0
    assert HitRate(10, 10).interval()[1] == 1
    assert math.isnan(HitRate(0, 0).rate)


def test_quantiles_of_the_beta_distribution_are_those_of_scipy():
    from scipy.stats import beta

    for a, b in ((0.5, 10.5), (3.5, 8.5), (100, 300), (5000, 2)):
        for share in (0.025, 0.5, 0.975):
            assert compute_beta_quantile(share, a, b) == pytest.approx(beta.ppf(share, a, b), rel=1e-6)


DATA = Path(__file__).parent / "data"


def of_100_nm(history):
    return count_hit_rates(history.designs, lambda _: "all", limit=100)["all"]


def test_a_table_in_nm_without_the_unit_is_refused_and_an_option_or_the_title_decides():
    path = DATA / "history_kd_nM.csv"
    with pytest.raises(
        InputError, match=r"history_kd_nM.csv: kd has no unit.*\(12.5, 850\) cannot be taken as M.*--kd-unit"
    ):
        read_history(path)

    titled = path.read_text().replace(",kd,", ",KD (nM),")
    for history in (read_history(path, kd_unit="nM"), read_history(titled)):
        assert of_100_nm(history) == HitRate(1, 3)
        assert [design.kd_M for design in history.designs] == [
            pytest.approx(12.5e-9),
            pytest.approx(850e-9),
            None,
        ]


@pytest.mark.parametrize(
    "table",
    [
        "name;sequence;K_D (µM);binding\na;ACD;0,0125;true\nb;ACE;0,85;true\nc;ACF;;false\n",
        "name\tsequence\tkd\tunit\na\tACD\t12.5\tnM\nb\tACE\t0.85\tuM\nc\tACF\tno binding\t\n",
        "name,outcome,aa_string,kd_nM\na,measured,ACD,12.5\nb,measured,ACE,850\nc,no_binding,ACF,\n",
        "name,sequence,kd_pM,binding\na,ACD,12500,yes\nb,ACE,850000,yes\nc,ACF,0,no\n",
    ],
)
def test_affinities_of_a_history_are_read_with_their_units(table):
    history = read_history(table)
    assert of_100_nm(history) == HitRate(1, 3)
    assert history.designs[0].kd_M == pytest.approx(12.5e-9, rel=1e-3)


def workbook(rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def test_a_history_may_be_a_workbook_or_packed_or_of_another_dialect():
    rows = [("Design", "Sequence", "KD (nM)"), ("a", "ACD", 12.5), ("b", "ACE", 850), ("NA", "ACF", "NB")]
    text = "".join(";".join(map(str, row)).replace(".", ",") + "\n" for row in rows).encode()
    for data in (
        workbook(rows),
        text,
        gzip.compress(text),
        lzma.compress(text),
        text.decode().encode("utf-16"),
    ):
        history = read_history(data)
        assert of_100_nm(history) == HitRate(1, 3)
        assert [design.name for design in history.designs] == ["a", "b", "NA"]


def test_joined_tables_are_several_and_the_repeated_header_is_said():
    table = "name,sequence,kd_nM\na,ACD,12\nb,ACE,20\n"
    history = read_history(table + table)
    assert [(design.name, design.replicates) for design in history.designs] == [("a", 1), ("b", 1)]
    assert "the given table: 2 tables in one file; the header is repeated in line 4" in history.notes


def test_names_that_look_like_missing_values_are_kept():
    names = ["NA", "null", "nan", "None", "1e5", "2-Mar", "TRUE", "n/a"]
    for head, line in (
        ("name,sequence,kd_nM", "{},{},12"),
        ("name,aa_string,outcome", "{},{},no_binding"),
    ):
        lines = (line.format(name, "ACDEFGHIKL"[: index + 2]) for index, name in enumerate(names))
        history = read_history("\n".join([head, *lines]) + "\n")
        assert [design.name for design in history.designs] == names
        assert any("2 names look like dates, numbers or errors" in note for note in history.notes)
        assert all(design.aa_string for design in history.designs)


@pytest.mark.parametrize(
    "table",
    [
        "protein_id,sequence,binding_label,expressed\na,ACD,1,1\nb,ACE,0,1\nc,ACF,,0\n",
        "Design,Sequence,Binder,expression\na,ACD,True,high\nb,ACE,False,low\nc,ACF,nan,none\n",
        "name,sequence,binds,expression\na,ACD,1.0,high\nb,ACE,0.0,low\nc,ACF,no,false\n",
    ],
)
def test_calls_of_other_tables_are_read(table):
    assert list(outcomes(read_history(table)).values()) == [
        Outcome.BINDING,
        Outcome.NO_BINDING,
        Outcome.NO_EXPRESSION,
    ]
