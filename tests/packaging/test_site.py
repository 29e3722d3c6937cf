"""The site of `make docs` has every page, and its reference names what is public."""

import importlib
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def pages(nav):
    for entry in nav:
        for value in entry.values():
            yield from pages(value) if isinstance(value, list) else [value]


def test_every_page_is_in_the_navigation_once():
    named = list(pages(SITE["nav"]))
    assert sorted(named) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


def test_the_reference_names_modules_and_flows_that_exist():
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    names = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    assert len(names) > 5
    for name in names:
        assert importlib.import_module(name).__doc__


def test_nothing_is_fetched_from_another_server():
    assert SITE["theme"]["font"] is False
