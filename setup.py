"""The description for a package index: the README without its pictures and without links that lead into the repository.

Everything else is in pyproject.toml.
"""

import re
from pathlib import Path

from setuptools import setup

readme = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
without_pictures = re.sub(r"^\| !\[.*\n\|---\|---\|\n", "", readme, flags=re.MULTILINE)
setup(
    long_description=re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", without_pictures),
    long_description_content_type="text/markdown",
)
