"""The site of `make docs` has every page, and its reference names what is public."""

import importlib
import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import yaml

ROOT = Path(__file__).parents[2]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def load_hooks():
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "site_hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


site_hooks = load_hooks()


def pages(nav):
    for entry in nav:
        for value in entry.values():
            yield from pages(value) if isinstance(value, list) else [value]


def test_every_page_is_in_the_navigation_once():
    named = list(pages(SITE["nav"]))
    assert sorted(named) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


def test_the_reference_ends_with_the_docstrings_of_modules_that_exist():
    file = SimpleNamespace(src_uri="reference.md")
    text = site_hooks.on_page_markdown("", page=SimpleNamespace(file=file))
    names = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
    assert len(names) == len(site_hooks.MODULES)
    for name in names:
        assert importlib.import_module(name).__doc__


def test_nothing_is_fetched_from_another_server():
    assert SITE["theme"]["font"] is False
