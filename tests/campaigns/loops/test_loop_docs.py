"""The examples of docs/loops.md run."""

import re
from pathlib import Path

import pytest

from prefect_assay.analysis.results import DesignSummary
from prefect_assay.campaigns.loops.rules import Stop, StopRules
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.proposed import pool_of
from prefect_assay.designs.read import read_sequences
from prefect_assay.tasks.propose import _read_candidate

PAGE = (Path(__file__).parents[3] / "docs" / "loops.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
HISTORY = [
    DesignSummary(
        name="a",
        experiment_code="X",
        outcome="measured",
        kd_M=2e-9,
        aa_string="ACDEFGHIKL",
        attributes={"round": "1"},
    ),
    DesignSummary(name="b", experiment_code="X", outcome="no_binding", aa_string="ACDEFGHIKM"),
]


def example(*words):
    (program,) = [text for text in EXAMPLES if all(word in text for word in words)]
    return program


def loaded(text):
    namespace = {}
    exec(compile(text, "loops.md", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("history", [[], HISTORY])
def test_the_function_proposes_designs_that_can_be_ordered(history):
    propose = loaded(example("Point mutants"))["propose"]
    proposed = list(propose(history=history, n=8, budget_cents=None, round=2))
    pool = pool_of([_read_candidate(value, number, "docs") for number, value in enumerate(proposed)])
    assert len(pool) + len(pool.duplicates) == 8
    assert pool[0].attributes["method"] == "point mutant"
    assert pool[0].attributes["parents"] == ("a" if history else "wild type")


def test_the_deployed_designer_writes_designs_that_can_be_ordered(tmp_path):
    designer = loaded(example("@flow"))["my_designer"]
    address = tmp_path / "candidates.csv"
    designer.fn(round=1, n=4, history=None, candidates=str(address))
    assert len(read_sequences(str(address), reading=ReadingOptions())) == 4


def test_every_end_of_a_loop_is_described():
    missing = [
        stop for stop in Stop if stop.value.replace("_", " ") not in PAGE.replace("`", "").replace("_", " ")
    ]
    assert missing == []
    assert StopRules(objective=None, max_rounds=1, goals={}).misfits() == []
