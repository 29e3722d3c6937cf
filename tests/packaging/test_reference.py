"""docs/reference.md: its tables are those of the code, whole, and its places are linked by name."""

import re
from pathlib import Path

import pytest

from prefect_assay import blocks, errors, flows, tasks
from prefect_assay.campaigns.events import KINDS
from support.reference import fill

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"
BLOCKS = [name for name in blocks.__all__ if name not in {"Archive", "Wallet"}]


def test_the_tables_are_made_from_the_code():
    """After an intended change: `make description`, and read the difference."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == fill(page)


@pytest.mark.parametrize(
    "region", [f"block {name}" for name in BLOCKS] + [f"flow {name}" for name in flows.__all__]
)
def test_every_block_and_flow_has_its_table(region):
    assert PAGE.read_text(encoding="utf-8").count(f"<!-- made: {region} -->") == 1


def test_every_error_event_and_task_is_on_the_page_once():
    page = PAGE.read_text(encoding="utf-8")
    tree = page[page.index("<!-- made: errors -->") :]
    kinds = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)
    }
    drawn = re.findall(r"^[│├└─ ]*([A-Z]\w+)  ", tree, re.MULTILINE)
    assert sorted(drawn) == sorted(name for name in kinds if not name.startswith("_"))
    assert [kind.event for kind in KINDS if page.count(f"\n| `{kind.event}` |") != 1] == []
    assert [name for name in tasks.__all__ if page.count(f"\n| `{name}` |") != 1] == []
