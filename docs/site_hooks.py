"""Hooks of `mkdocs.yml`: the README is the first page, and links that leave docs/ become plain text."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_OUTSIDE = re.compile(
    r"\[([^\]]*)\]\((?:\.\./(?!\w[\w-]*\.md)|(?!https?:|#)(?:src|tests|bench|examples|\.github)/)[^)]*\)"
)
_OF_README = re.compile(r"\]\(docs/")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by MkDocs with each page's text."""
    if page.file.src_uri == "index.md":
        markdown = (ROOT / "README.md").read_text(encoding="utf-8")
        markdown = _OF_README.sub("](", markdown).replace("](CONTRIBUTING.md)", "](developing.md)")
    depth = page.file.src_uri.count("/")
    return re.sub(
        r"\[([^\]]*)\]\(((?:\.\./)+)([^)#]*)(#[^)]*)?\)",
        lambda link: link[0] if link[2].count("../") <= depth else link[1],
        _OUTSIDE.sub(r"\1", markdown) if not depth else markdown,
    )
