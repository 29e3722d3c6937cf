"""A user's table is read as it is meant, or refused with file, line, column and what to change."""

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay_lab.errors import ConfigurationError
from assay_lab.measure import open_landscape
from assay_lab.measure.bundled import CATALOG

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
KD_TITLES = {"kd_M": 1, "kd_uM": 1e-6, "kd_nM": 1e-9, "kd_pM": 1e-12}
TARGETS = st.sampled_from(["P00533", "p00533", "LOCAL-002", "Human IL-6", "Mine, with a comma", 'My "other"'])
SEQUENCES = st.lists(st.text(LETTERS, min_size=1, max_size=12), min_size=1, max_size=2).map(":".join)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("tables") / "table.csv"


def read(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return open_landscape(str(path))


def refusal(path, text):
    with pytest.raises(ConfigurationError) as refused:
        read(path, text)
    assert str(path) in str(refused.value)
    return str(refused.value)


def written(titles, rows):
    out = io.StringIO()
    csv.writer(out).writerows([titles, *rows])
    return out.getvalue()


@given(
    title=st.sampled_from(sorted(KD_TITLES)),
    rows=st.dictionaries(
        st.tuples(SEQUENCES, TARGETS), st.one_of(st.none(), st.floats(1e-11, 1e-2)), min_size=1, max_size=8
    ),
    bom=st.booleans(),
)
def test_every_affinity_comes_back_in_molar_for_its_own_target(path, title, rows, bom):
    factor = KD_TITLES[title]
    unique = {(residues, target.casefold()): (target, kd) for (residues, target), kd in rows.items()}
    cells = [
        (
            f" {residues.lower()} ",
            target,
            "" if kd is None else repr(kd / factor),
            "false" if kd is None else "",
        )
        for (residues, _), (target, kd) in unique.items()
    ]
    landscape = read(path, "\ufeff" * bom + written(("sequence", "target", title, "binding"), cells))
    orderable = [*CATALOG, *landscape.targets]
    for (residues, key), (_, kd) in unique.items():
        names = ("uniprot_id", "catalog_number", "name")
        target = next(t for t in orderable if key in [str(t[name]).casefold() for name in names])
        facts = landscape.lookup("affinity", target)(residues)
        if kd is None:
            assert facts == {"binding": "false"}
        else:
            assert facts["binding"] == "true"
            assert math.isclose(facts["kd_M"], kd, rel_tol=1e-12)


@given(tables=st.text(max_size=300) | st.binary(max_size=300))
def test_any_file_is_read_or_refused_by_name(path, tables):
    try:
        landscape = read(path, tables)
    except ConfigurationError as error:
        assert str(path) in str(error)  # noqa: PT017 - anything else fails the test
    else:
        assert landscape.facts


HEADER = ["sequence", "kd_nM", "tm_C", "binding", "expression", "target"]


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["MKT", "MKW", "MK:TA", "", "MXT"]),
            st.sampled_from(["", "20", "0", "-1", "1e99", "nan", "<5", "null"]),
            st.sampled_from(["", "61.5", "334.65", "x"]),
            st.sampled_from(["", "true", "false", "unknown", "maybe"]),
            st.sampled_from(["", "high", "NONE", "ok"]),
            st.sampled_from(["P00533", "Mine", ""]),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_no_contradiction_and_no_odd_number_passes(path, rows):
    try:
        landscape = read(path, written(HEADER, rows))
    except ConfigurationError as error:
        assert "line" in str(error)  # noqa: PT017
        return
    for facts in (f for table in landscape.bound.values() for f in table.values()):
        assert ("kd_M" in facts) == (facts["binding"] == "true")
        assert 1e-15 <= facts.get("kd_M", 1e-9) <= 0.1
    assert all(0 <= facts.get("tm_C", 0) <= 130 for facts in landscape.proteins.values())


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("sequence,kd\nMKT,20\n", ["line 1", "column 'kd'", "kd_nM"]),
        ("sequence,K_D\nMKT,20\n", ["line 1", "column 'K_D'", "kd_nM"]),
        ("sequence,Tm\nMKT,60\n", ["line 1", "column 'Tm'", "tm_C"]),
        ("sequence,yield\nMKT,60\n", ["column 'yield'", "yield_mg_per_l"]),
        ("sequence,kd_nM,kd_uM\nMKT,20,1\n", ["line 1", "'kd_nM' says the same"]),
        ("sequence,kd_nM,kd_nM\nMKT,20,20\n", ["line 1", "'kd_nM' says the same"]),
        ("sequence,K_D (nM)\nMKT,20\n", ["line 1", "column 'K_D (nM)'", "kd_nM"]),
        ("sequence,pKD\nMKT,8\n", ["line 1", "column 'pKD'", "kd_nM"]),
        ("sequence,tm_K\nMKT,334\n", ["line 1", "column 'tm_K'", "tm_C"]),
        ("Sequence,kd_nM\nMKT,20\n", ["line 1", "column 'Sequence'", "name it sequence"]),
        ("sequence\tkd_nM\nMKT\t20\n", ["line 1", "no column 'sequence'", "commas"]),
        ("sequence,tm_C,Binding\nMKT,60,false\n", ["line 1", "column 'Binding'"]),
        ("sequence,kd_nM\nMKT,NB\n", ["line 2", "'NB' is not a number", "'false' in a column 'binding'"]),
        ('sequence,kd_nM\nMKT,"12,5"\n', ["line 2", "'12,5' is not a number"]),
        ("sequence,KD,unit\nMKT,12.5,nM\n", ["line 1", "column 'KD'", "kd_nM"]),
        ("sequence;kd_nM\nMKT;1,250\n", ["line 1", "no column 'sequence'", "commas"]),
        (b"PK\x03\x04\xff", ["save the table as CSV"]),
        ("sequence,kd_nM,Kd µM\n".encode("cp1252"), ["no text in UTF-8"]),
        ("sequence,affinity\nMKT,20\n", ["line 1", "column 'affinity'", "kd_nM"]),
        ("sequence,log10_kd\nMKT,-8\n", ["line 1", "column 'log10_kd'", "kd_nM"]),
        ("name,kd_nM\na,20\n", ["line 1", "no column 'sequence'"]),
        ("sequence,score\nMKT,20\n", ["line 1", "no column with values"]),
        ("sequence,kd_nM\n", ["no measurements"]),
        ("", ["empty"]),
        ("sequence,kd_nM\nMKT,20\nMKX,20\n", ["line 3", "column 'sequence'", "'X'"]),
        ("sequence,kd_nM\nMKT:,20\n", ["line 2", "column 'sequence'", "empty"]),
        (
            "sequence,kd_nM\nMKT,>1000\n",
            ["line 2", "column 'kd_nM'", "'>1000' is not a number", "'false' in a column 'binding'"],
        ),
        ("sequence,kd_M\nMKT,20\n", ["line 2", "column 'kd_M'", "unit"]),
        ("sequence,tm_C\nMKT,334\n", ["line 2", "column 'tm_C'", "unit"]),
        ("sequence,kd_nM\nMKT,1,2\n", ["line 2", "more cells than the 2 columns"]),
        ("sequence,kd_nM,KD (nM) 2\nMKT,1,2\n", ["line 1", "column 'KD (nM) 2'"]),
        ("sequence,kd_nM\nMKT,20\nMKT,30\n", ["line 3", "line 2", "keep one"]),
        ("sequence,kd_nM,target\nMKT,20,\n", ["line 2", "column 'target'", "leave the column out"]),
        ("sequence,kd_nM,binding\nMKT,20,false\n", ["line 2", "binding is 'false'"]),
        ("sequence,kd_nM,expression\nMKT,20,none\n", ["line 2", "expression is 'none'"]),
        ("sequence,binding\nMKT,true\n", ["line 2", "without a K_D"]),
        ('sequence,kd_nM\n"MKT,20\n', ["line 2", "the row does not parse"]),
        (b"sequence,kd_nM\nMK\0T,20\n", ["line 2", "no amino acids", "x00"]),
    ],
)
def test_a_refusal_names_the_place_and_the_next_step(path, text, phrases):
    message = refusal(path, text)
    assert [part for part in phrases if part not in message] == []


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        open_landscape(str(tmp_path / "none.csv"))


def test_columns_of_a_designer_are_no_measurements(path):
    titles = "name,sequence,tm_score,kd_log_std,iptm,kd_nM,kon_per_M_s"
    landscape = read(path, f"{titles}\nbest,mkt ayi,0.9,0.1,0.8,20,2e5\n")
    assert landscape.lookup("screening", None)("MKTAYI") == {
        "binding": "true",
        "kd_M": 20e-9,
        "kon_per_M_s": 2e5,
    }


def test_the_same_twice_is_said_once(path):
    landscape = read(path, "sequence,target,kd_nM,tm_C\nMKT,Mine,20,61.5\nMKT,mine,20,61.5\nMKT,Other,30,\n")
    assert [target["name"] for target in landscape.targets] == ["Mine", "Other"]
    assert landscape.lookup("thermostability", None)("MKT")["tm_C"] == pytest.approx(61.5)
