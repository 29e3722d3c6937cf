"""The designer's own columns reach the plan and nothing that is ordered."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from prefect_assay.designs.campaign import campaign_digest, kept_attributes, split_into_batches
from prefect_assay.designs.read import read_sequences
from prefect_assay.orders.identity import order_key
from prefect_assay.service.models.sequences import ProteinSequence, Sequences
from prefect_assay.service.models.spec import Assay, ExperimentSpec

DATA = Path(__file__).parent / "data"
WORDS = st.text(max_size=20)
COLUMNS = st.dictionaries(WORDS, WORDS, max_size=4)


def designs(*columns: dict[str, str]) -> Sequences:
    items = tuple(
        ProteinSequence(name=f"d{n}", aa_string="ACD" + "E" * n, attributes=c) for n, c in enumerate(columns)
    )
    return Sequences(source="x", items=items)


@settings(max_examples=100)
@given(st.lists(COLUMNS, min_size=1, max_size=5))
def test_columns_change_neither_order_nor_campaign(columns):
    bare, full = designs(*[{} for _ in columns]), designs(*columns)
    assert campaign_digest(full, Assay()) == campaign_digest(bare, Assay())
    for one, other in zip(
        split_into_batches(bare, Assay(), 2), split_into_batches(full, Assay(), 2), strict=True
    ):
        specs = [ExperimentSpec.of(Assay(), batch, None) for batch in (one, other)]
        assert specs[0] == specs[1]
        assert specs[0].wire() == specs[1].wire()
        assert order_key("c", 0, specs[0]) == order_key("c", 0, specs[1])
    kept = kept_attributes(full.items)
    assert kept.by_design == {f"d{n}": c for n, c in enumerate(columns) if c}
    assert kept.left_out == ()


def test_every_other_column_is_an_attribute_under_its_own_title():
    text = (
        "Design,Sequence,ipTM,is control,Method,ipTM,,\nd1,ACD, 0.9 ,no,mpnn,0.8,x,\nd2,EFG,,no,null,nan,,y\n"
    )
    items = read_sequences("d.csv", text=text).items
    assert items[0].attributes == {
        "ipTM": "0.9", "Method": "mpnn", "ipTM (column 6)": "0.8", "(column 7)": "x"
    }  # fmt: skip
    assert items[1].attributes == {"ipTM (column 6)": "nan", "(column 8)": "y"}
    assert items[0].metadata == {}


def test_a_table_of_two_hundred_columns_is_kept_as_it_is():
    sequences = read_sequences(str(DATA / "bindcraft_final_design_stats.csv"))
    kept = kept_attributes(sequences.items)
    first = sequences.items[0].name
    assert kept.left_out == ()
    assert kept.by_design[first]["Average_i_pTM"]
    assert "Sequence" not in kept.by_design[first]


def test_designs_of_rfdiffusion_in_colab_have_their_backbone_as_parent():
    rows = ("design,n,mpnn,plddt,seq", "0,0,1.2,0.9,ACD", "0,1,1.1,0.8,EFG", "12,0,1.0,0.7,GHI")
    sequences = read_sequences("d.csv", text="\n".join(rows))
    assert [(item.name, item.attributes["parent"]) for item in sequences.items] == [
        ("0_0", "0"), ("0_1", "0"), ("12_0", "12")
    ]  # fmt: skip
    assert sequences.report.columns["parent"] == "part of the name"
    written = read_sequences("d.csv", text="\n".join((f"{rows[0]},parent", f"{rows[1]},bb7")))
    assert written.items[0].attributes["parent"] == "bb7"
    assert written.report.columns["parent"] == "parent"


def test_columns_that_do_not_fit_are_left_out_whole_and_named():
    structure = "HHEE" * 100
    sequences = designs(
        *({"ss": structure + str(n), "protocol": "4stage", "ipTM": f"0.{n}"} for n in range(5))
    )
    assert kept_attributes(sequences.items, limit=500).left_out == ("ss",)
    small = kept_attributes(sequences.items, limit=200)
    assert small.left_out == ("ss", "protocol")
    assert small.by_design["d3"] == {"ipTM": "0.3"}
    assert kept_attributes(sequences.items, limit=0).by_design == {}


@settings(max_examples=50)
@given(st.lists(COLUMNS, min_size=1, max_size=5), st.integers(0, 400))
def test_what_is_kept_has_the_size_that_was_asked_for(columns, limit):
    kept = kept_attributes(designs(*columns).items, limit=limit)
    values = [pair for row in kept.by_design.values() for pair in row.items()]
    assert sum(len((title + value).encode()) for title, value in values) <= limit
    left = {title for row in columns for title in row} - {title for title, _ in values}
    assert set(kept.left_out) == left
