"""Batches: deterministic, complete, within the contract's sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.designs.campaign import split_into_batches
from prefect_assay.errors import InvalidSpec
from prefect_assay.service.models.sequences import ProteinSequence, Sequences
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.models.vocabulary import ExperimentType

AFFINITY = Assay()
BINNING = Assay(experiment_type=ExperimentType.EPITOPE_BINNING)


def some(designs: int, controls: int = 0) -> Sequences:
    items = [ProteinSequence(name=f"d{i:04}", aa_string="ACD") for i in range(designs)]
    items += [ProteinSequence(name=f"c{i:04}", aa_string="EFG", control=True) for i in range(controls)]
    return Sequences(source="x", items=tuple(items))


def names(batches) -> list[list[str]]:
    return [[s.name for s in batch.items] for batch in batches]


def message(*args) -> str:
    with pytest.raises(InvalidSpec) as caught:
        split_into_batches(*args)
    return caught.value.findings[0]


def test_batches_are_filled_one_after_the_other():
    batches = split_into_batches(some(5), AFFINITY, 2)
    assert names(batches) == [["d0000", "d0001"], ["d0002", "d0003"], ["d0004"]]
    assert [(b.index, b.count) for b in batches] == [(0, 3), (1, 3), (2, 3)]


def test_controls_go_into_every_batch_and_count_towards_its_size():
    assert names(split_into_batches(some(3, 1), AFFINITY, 3)) == [
        ["d0000", "d0001", "c0000"],
        ["d0002", "c0000"],
    ]


def test_controls_alone_are_an_experiment():
    assert names(split_into_batches(some(0, 3), AFFINITY, 2)) == [["c0000", "c0001"], ["c0002"]]


def test_no_room_beside_the_controls():
    assert "set at least 3" in message(some(1, 2), AFFINITY, 2)


@pytest.mark.parametrize("per_experiment", [0, -1])
def test_a_batch_holds_at_least_one(per_experiment):
    assert "at least 1" in message(some(1), AFFINITY, per_experiment)


def test_nothing_to_split():
    assert "none" in message(Sequences(source="x", items=()), AFFINITY, 4)


@pytest.mark.parametrize(
    ("designs", "controls", "per_experiment", "sizes"),
    [
        (4, 0, 28, [4]),
        (28, 0, 96, [28]),
        (32, 0, 96, [28, 4]),
        (32, 0, 19, [16, 16]),
        (6, 1, 28, [4, 4]),  # two designs short of eight, and a control in each
        (12, 5, 8, [8, 8, 8, 8]),
        (4, 27, 28, [28, 28, 28, 28]),
    ],
)
def test_binning_sizes(designs, controls, per_experiment, sizes):
    batches = split_into_batches(some(designs, controls), BINNING, per_experiment)
    assert [len(b.items) for b in batches] == sizes


@pytest.mark.parametrize(
    ("designs", "controls", "per_experiment", "advice"),
    [
        (5, 0, 28, "add 3, or leave out 1"),
        (3, 0, 28, "3 designs cannot be divided so; add 1"),
        (30, 0, 28, "add 2, or leave out 2"),
        (4, 0, 3, "set at least 4"),
        (10, 5, 8, "add 2, or leave out 1"),
        (4, 28, 28, "mark fewer sequences as controls"),
    ],
)
def test_binning_advice(designs, controls, per_experiment, advice):
    assert advice in message(some(designs, controls), BINNING, per_experiment)


def binning_is_possible(designs: int, controls: int, per_experiment: int) -> bool:
    allowed = [size for size in range(4, 29, 4) if controls < size <= per_experiment]
    return bool(allowed) and any(
        (designs + batches * controls) % 4 == 0
        and batches * allowed[0] <= designs + batches * controls <= batches * allowed[-1]
        for batches in range(1, designs + 1)
    )


@given(
    designs=st.integers(1, 200),
    controls=st.integers(0, 30),
    per_experiment=st.integers(1, 100),
    assay=st.sampled_from([AFFINITY, BINNING]),
)
def test_every_design_once_every_control_everywhere_and_sizes_obeyed(
    designs, controls, per_experiment, assay
):
    sequences = some(designs, controls)
    try:
        batches = split_into_batches(sequences, assay, per_experiment)
    except InvalidSpec:
        if assay is AFFINITY:
            assert controls >= per_experiment
        else:
            assert not binning_is_possible(designs, controls, per_experiment)
        return
    placed = [s.name for b in batches for s in b.items if not s.control]
    assert placed == sorted(s.name for s in sequences.items if not s.control)
    for index, batch in enumerate(batches):
        assert (batch.index, batch.count) == (index, len(batches))
        assert sum(s.control for s in batch.items) == controls
        assert controls < len(batch.items) <= per_experiment
        if assay is BINNING:
            assert len(batch.items) in range(4, 29, 4)


@given(st.permutations(some(9, 2).items), st.integers(3, 12))
def test_the_order_of_the_file_plays_no_part(items, per_experiment):
    shuffled = Sequences(source="y", items=tuple(items))
    assert split_into_batches(shuffled, AFFINITY, per_experiment) == split_into_batches(
        some(9, 2), AFFINITY, per_experiment
    )


def test_designs_added_behind_leave_full_batches_as_they_were():
    assert names(split_into_batches(some(7), AFFINITY, 3))[:2] == names(
        split_into_batches(some(6), AFFINITY, 3)
    )
