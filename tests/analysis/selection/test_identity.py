"""Clusters of similar sequences: the fast tests decide as the definition does."""

from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.analysis.selection import History, select_designs
from prefect_assay.analysis.selection.identity import Clusters, count_edits
from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.proposed import pool_of
from prefect_assay.designs.selection import Fate, SelectionSettings

WORDS = st.text("ACD", max_size=14)


def reference(first, second):
    row = list(range(len(second) + 1))
    for row_number, one in enumerate(first, start=1):
        above, row = row, [row_number]
        for place, other in enumerate(second, start=1):
            row.append(min(above[place] + 1, row[-1] + 1, above[place - 1] + (one != other)))
    return row[-1]


@given(WORDS, WORDS)
def test_edits_are_those_of_the_table(first, second):
    assert count_edits(first, second) == reference(first, second)


@given(
    st.lists(st.text("ACDE", min_size=1, max_size=30), min_size=1, max_size=12),
    st.sampled_from([0.7, 0.8, 0.9, 1]),
)
def test_a_design_is_in_a_cluster_if_it_is_identical_enough_to_a_founder(sequences, identity):
    clusters, founders = Clusters(identity, 1), []
    for residues in sequences:
        similar = {
            number
            for number, founder in enumerate(founders)
            if reference(founder, residues) <= (1 - identity) * max(len(founder), len(residues)) + 1e-9
        }
        cluster = clusters.find_cluster(residues)
        assert cluster in similar if similar else cluster is None
        if cluster is None:
            founders.append(residues)
            clusters.add(residues, None)


def test_a_cluster_takes_as_many_as_allowed():
    base = "MKLVTAGREWQNPSDYHFIC" * 3
    family = [base[:index] + "A" + base[index + 1 :] for index in range(1, 5)]
    shifted = ["GS" + family[0], family[1][:-2]]  # two residues more or fewer: still 95 % identical
    others = [base[::-1], "ACDEFGHIKL" * 6]
    pool = pool_of(
        Candidate(name=f"d{index}", sequence=residues, columns={"score": str(-index)})
        for index, residues in enumerate([*family, *shifted, *others])
    )
    settings = SelectionSettings(
        policy="top_score", score_column="score", higher_is_better=True, identity=0.9, max_per_cluster=2
    )

    selection = select_designs(pool, History(), 8, settings)

    assert [choice.candidate.name for choice in selection.choices] == ["d0", "d1", "d6", "d7"]
    assert selection.counts() == {Fate.CHOSEN: 4, Fate.CLUSTER_LIMIT: 4}
