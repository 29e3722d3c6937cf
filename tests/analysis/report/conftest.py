"""One campaign for all tests of the page: two experiments that a lab has measured, and one that is only ordered."""

import shutil

import pytest

from assay_lab.measure.bundled import data_folder
from assay_lab.testing import LocalLab
from lab_support.designs import invented_designs
from prefect_assay.archive import LocalStore
from support.archive.campaign_archive import lab_campaign

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title><style>*{display:none}",
    "B {{ 7 * 7 }} =HYPERLINK(1)",
    "a\u202egnp.exe",
)


def table_of_designs() -> str:
    """The published designs and invented ones with hostile names and attributes, as a CSV."""
    lines = (data_folder() / "egfr_round1_designs.fasta").read_text(encoding="utf-8").splitlines()
    designs = [(head[1:].strip(), residues) for head, residues in zip(lines[::2], lines[1::2], strict=True)]
    invented = invented_designs(len(HOSTILE), seed=3)
    designs = [*designs[:4], *((name, one["aa_string"]) for name, one in zip(HOSTILE, invented, strict=True))]
    rows = [["name", "sequence", "i_ptm", "<b>method</b>"]]
    rows += [
        [name, residues, f"0.{number}1", f"<i>{number}</i>"]
        for number, (name, residues) in enumerate(designs)
    ]
    return "\n".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)


@pytest.fixture(scope="session")
def lab_archive(tmp_path_factory):
    """The folder and the plan; read only."""
    folder = tmp_path_factory.mktemp("page") / "archive"
    with LocalLab() as lab:
        plan = lab_campaign(lab, folder, table_of_designs(), per_experiment=4, measured=2)
    return folder, plan


@pytest.fixture
def archive(lab_archive, tmp_path):
    """A copy that a test may change."""
    folder = tmp_path / "copy"
    shutil.copytree(lab_archive[0], folder)
    return folder


@pytest.fixture
def store(archive):
    return LocalStore(archive)
