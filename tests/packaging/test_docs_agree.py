"""Docs and code say the same: every block field, flow parameter, task, command and page is in the docs."""

import inspect
import re
from pathlib import Path
from typing import get_args

import pytest

from prefect_assay import blocks, flows, tasks
from prefect_assay.approvals.questions import Question
from prefect_assay.books.records import OrderRecord
from prefect_assay.runs import tags as run_tags

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCKS = [getattr(blocks, name) for name in blocks.__all__ if name not in {"Archive", "Wallet"}]
FLOWS = [getattr(flows, name) for name in flows.__all__]


def section(page: str, heading: str) -> str:
    text = (DOCS / page).read_text(encoding="utf-8")
    start = text.index(f"## `{heading}`")
    end = text.find("\n## ", start + 1)
    return text[start : end if end > 0 else len(text)]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: b.__name__)
def test_every_block_field_is_documented(block):
    text = section("blocks.md", block.__name__)
    fields = {name for name in block.model_fields if not name.startswith("_")}
    documented = set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE))
    assert documented == fields


@pytest.mark.parametrize("flow", FLOWS, ids=lambda f: f.name)
def test_every_flow_parameter_is_documented(flow):
    text = section("flows.md", flow.fn.__name__)
    missing = [name for name in inspect.signature(flow.fn).parameters if f"`{name}`" not in text]
    assert missing == []


def test_every_task_is_documented():
    text = (DOCS / "flows.md").read_text(encoding="utf-8")
    assert [name for name in tasks.__all__ if f"`{name}`" not in text] == []


def test_every_record_and_tag_and_field_of_a_form_is_documented():
    books, waiting, ordering = (
        (DOCS / page).read_text(encoding="utf-8") for page in ("books.md", "waiting.md", "ordering.md")
    )
    kinds = [get_args(kind.model_fields["kind"].annotation)[0] for kind in get_args(get_args(OrderRecord)[0])]
    assert [kind for kind in kinds if f"`{kind}`" not in books] == []
    tags = [value for name, value in vars(run_tags).items() if name.endswith("_TAG")]
    assert [tag for tag in tags if tag not in waiting] == []
    assert [name for name in Question.model_fields if f"`{name}`" not in ordering] == []


def test_every_page_can_be_reached_from_the_readme_and_every_link_leads_somewhere():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w./-]+)\)", readme))
    assert [target for target in linked if not (ROOT / target).exists()] == []
    pages = {f"docs/{page.name}" for page in DOCS.glob("*.md")}
    assert pages - linked == set()


def test_docs_name_no_machine_path():
    texts = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    found = [
        t.name
        for t in texts
        if re.search(r"/work/|/root/|/home/\w+/|\.\./shared", t.read_text(encoding="utf-8"))
    ]
    assert found == []
