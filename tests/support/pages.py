"""The code blocks of a page, for tests that play them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
QUICK_START = ROOT / "docs" / "quickstart.md"


def blocks(page: Path, language: str) -> list[str]:
    """The page's code blocks in this language."""
    return re.findall(
        rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def commands(page: Path) -> list[str]:
    """Its console blocks, a command a line."""
    return [line for block in blocks(page, "console") for line in block.splitlines() if line]
