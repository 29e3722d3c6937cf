"""Hooks of `mkdocs.yml`: the first page is the README, the reference ends with docstrings, links out of docs/ are text."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESOURCES = "experiments sequences targets custom_targets results updates quotes invoices documents tokens webhooks service"
MODULES = [
    *(f"flows.{name}" for name in ("campaign", "design_build_test", "decide", "sweep")),
    "tasks",
    "blocks",
    "service.client",
    *(f"service.client.resources.{name}" for name in RESOURCES.split()),
    "service.client.filters",
    "service.client.parameters",
    "errors",
    "local",
]
_OUTSIDE = re.compile(
    r"\[([^\]]*)\]\((?:\.\./(?!\w[\w-]*\.md)|(?!https?:|#)(?:src|tests|bench|examples|\.github)/)[^)]*\)"
)
_OF_README = re.compile(r"\]\(docs/")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by MkDocs with each page's text."""
    if page.file.src_uri == "index.md":
        markdown = (ROOT / "README.md").read_text(encoding="utf-8")
        markdown = _OF_README.sub("](", markdown).replace("](CONTRIBUTING.md)", "](developing.md)")
    if page.file.src_uri == "reference.md":
        markdown += "\n## Docstrings\n\n" + "".join(f"::: prefect_assay.{name}\n" for name in MODULES)
    depth = page.file.src_uri.count("/")
    return re.sub(
        r"\[([^\]]*)\]\(((?:\.\./)+)([^)#]*)(#[^)]*)?\)",
        lambda link: link[0] if link[2].count("../") <= depth else link[1],
        _OUTSIDE.sub(r"\1", markdown) if not depth else markdown,
    )
