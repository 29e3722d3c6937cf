"""Words that a reader has to translate stay out of code, docs and messages."""

import functools
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = (
    "src",
    "flows",
    "tasks",
    "blocks",
    "deployments",
    "docs",
    "bench",
    "README.md",
    "CONTRIBUTING.md",
    "Makefile",
    "pyproject.toml",
    ".ci/run",
)
# Quoted: the Unix account `nobody`. Hyphenated: a stand-in. After a dot or before a colon: a stored field's name.
WORDS = {
    "stand": r"\bstands?\b(?!-)",
    "tell": r'(?<![.\w"])(?:told|tells)\b(?!\s*[:=])',
    "nobody": r"(?<![`\"'])\bnobody\b",
    "whoever": r"\bwhoever\b",
    "of ours": r"\bof ours\b",
    "anew": r"\banew\b",
    "by itself": r"\bby itself\b",
    "there is none": r"\bthere (?:is|are|was) none\b",
}


@functools.cache
def texts():
    listed = subprocess.run(
        ["git", "ls-files", *PLACES], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [
        (name, (ROOT / name).read_text(encoding="utf-8"))
        for name in listed.splitlines()
        if (ROOT / name).suffix in {".py", ".md", ".toml", ".yaml", ".env", ".html", ".json", ""}
    ]


@pytest.mark.parametrize("word", WORDS)
def test_the_word_is_gone(word):
    pattern = re.compile(WORDS[word], re.IGNORECASE)
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]
    assert found == []
