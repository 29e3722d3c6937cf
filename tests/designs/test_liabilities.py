"""Warnings before a paid well: one line per kind, never a refusal."""

import pytest

from prefect_assay.designs.liabilities import LONGEST, SHORTEST, design_warnings

PLAIN = "MKVLAAEIEKWLEEAKKLIEEAKKLAEEGRLE"


def kinds(residues: str) -> str:
    return "\n".join(design_warnings([("d", residues)]))


def test_a_plain_design_has_no_warning():
    assert design_warnings([("d", PLAIN)]) == ()
    assert design_warnings([]) == ()


@pytest.mark.parametrize(
    ("residues", "expected"),
    [
        (PLAIN + "C", "unpaired"),
        (PLAIN + "CCC:" + PLAIN, "unpaired"),
        (PLAIN + "NAS", "N-glycosylation"),
        (PLAIN + "NNTA", "N-glycosylation"),
        (PLAIN + "NG", "deamidates"),
        (PLAIN + "DG", "isomerizes"),
        ("HHHHHH" + PLAIN, "His tag"),
        ("A" * (SHORTEST - 1), "outside 30 to 600"),
        (PLAIN + ":" + "A" * (LONGEST + 1), "outside 30 to 600"),
    ],
)
def test_each_kind_is_found(residues, expected):
    warnings = design_warnings([("d", residues)])
    assert len(warnings) == 1
    assert expected in warnings[0]


@pytest.mark.parametrize(
    "residues",
    [
        PLAIN + "CC",
        PLAIN + "C:" + PLAIN + "C",
        PLAIN + "NPS",
        PLAIN + "NAA",
        PLAIN + "N:SS" + PLAIN,
        PLAIN + "NA:SA" + PLAIN,
        PLAIN + "N:GA" + PLAIN,
        PLAIN + "HHHHH",
        "A" * SHORTEST,
        "A" * LONGEST,
    ],
)
def test_what_only_looks_like_one_is_not(residues):
    assert kinds(residues) == ""


def test_designs_are_counted_and_the_first_are_named():
    designs = [(f"d{n}", PLAIN + "C" + "A" * n) for n in range(5)] + [("odd\nname", PLAIN)]
    assert design_warnings(designs) == (
        "5 of 6 designs have an odd number of cysteines, so at least one is unpaired: 'd0', 'd1', 'd2' and 2 more",
    )
