"""Docs and code agree: every record, command, extra and page is in the docs. test_reference.py compares the reference."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import get_args

import pytest
import typer

from prefect_assay.campaigns.events import EVENTS_LABEL
from prefect_assay.campaigns.problems.problem import AlertLimits
from prefect_assay.campaigns.runs import tags as run_tags
from prefect_assay.cli.app import app
from prefect_assay.orders.ledger.campaign_log import CampaignRecord
from prefect_assay.orders.ledger.log import OrderRecord
from prefect_assay.orders.question import Question
from support.pages import QUICK_START, README, commands

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_every_record_and_tag_and_field_of_a_form_is_documented():
    waiting, ordering = ((DOCS / page).read_text(encoding="utf-8") for page in ("waiting.md", "ordering.md"))
    records = [kind for union in (OrderRecord, CampaignRecord) for kind in get_args(get_args(union)[0])]
    kinds = [get_args(kind.model_fields["kind"].annotation)[0] for kind in records]
    assert [kind for kind in kinds if f"`{kind}`" not in ordering] == []
    names = [value for name, value in vars(run_tags).items() if name.endswith(("_TAG", "_LABEL"))]
    assert [name for name in (*names, EVENTS_LABEL) if name not in waiting] == []
    assert [name for name in Question.model_fields if f"`{name}`" not in ordering] == []


def test_every_limit_of_an_alert_is_documented_with_its_default():
    alerts = (DOCS / "operating.md").read_text(encoding="utf-8")
    for name, field in AlertLimits.model_fields.items():
        assert re.search(rf"\b{field.default:,}\b[^|]*\(`{name}`\)", alerts), name


def commands_of(group, before=""):
    """The commands that can be called, those of groups with the group's name."""
    for name, command in group.commands.items():
        yield from commands_of(command, f"{name} ") if hasattr(command, "commands") else (before + name,)


def test_every_command_is_documented_and_no_other():
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    table = page[page.index("| command |") :].split("\n\n")[0]
    firsts = [line.split("|")[1] for line in table.splitlines()[2:]]
    documented = {name for first in firsts for name in re.findall(r"`([a-z][a-z -]*)`", first)}
    assert documented == {*commands_of(typer.main.get_command(app))}


def test_every_extra_is_documented():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    page = (DOCS / "operating.md").read_text(encoding="utf-8")
    rows = page[page.index("\n## Extras\n") :].split("\n## ")[1]
    documented = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", rows, re.MULTILINE))
    assert documented.keys() == extras.keys() - {"dev", "test"}
    for extra, purpose in documented.items():
        (within,) = re.findall(r"prefect-assay\[(.+?)\]", " ".join(extras[extra])) or [""]
        assert [name for name in within.split(",") if name and f"`{name}`" not in purpose] == [], extra


PAGES = [
    *ROOT.glob("*.md"),
    *DOCS.rglob("*.md"),
    ROOT / "lab" / "README.md",
    *(ROOT / "lab" / "docs").glob("*.md"),
]


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_can_be_reached_from_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w./-]+)\)", readme))
    assert {f"docs/{page.name}" for page in DOCS.glob("*.md")} - linked == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_a_heading(page):
    broken = []
    for path, anchor in re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", page.read_text(encoding="utf-8")):
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{path}#{anchor}")
    assert broken == []


def test_every_code_block_of_the_readme_is_played():
    """`test_readme.py` plays the quick start's commands, `test_scripts.py` the Python, `test_demo.py` the demo."""
    install, *others = commands(README)
    assert install == "pip install '.[demo]' ./lab"
    make = [command for command in others if command.startswith("make ")]
    product_commands = [command for command in others if command not in make]
    assert set(product_commands) <= set(commands(QUICK_START))
    assert len(product_commands) == 2
    for page in (README, QUICK_START):
        fences = re.findall(r"^```(\w*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert set(fences[::2]) <= {"text", "console", "python"}
        assert not any(fences[1::2])
    played = {"make demo": "prefect-assay demo", "make test": "bin/pytest"}
    assert make == list(played)
    for command, runs in played.items():
        shown = subprocess.run(
            [*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert runs in shown.stdout


def test_docs_name_no_machine_path():
    machine = re.compile(r"/work/|/root/|/home/\w+/|\.\./shared")
    assert [page.name for page in PAGES if machine.search(page.read_text(encoding="utf-8"))] == []


def test_the_layout_page_names_what_is_there():
    """`name` in `path`: a function or a class of that file."""
    page = (DOCS / "developing.md").read_text(encoding="utf-8")
    table = page[page.index("## Where to look first") : page.index("## Packages")]
    named = []
    for names, path in re.findall(r"((?:`\w+`[^`|]*?)+) in `([\w/]+\.py)`", table):
        (file,) = [top / path for top in (ROOT, ROOT / "src" / "prefect_assay") if (top / path).is_file()]
        text = file.read_text(encoding="utf-8")
        named += [(path, name, text) for name in re.findall(r"`(\w+)`", names)]
    assert len(named) > 20
    missing = [
        f"{path}: {name}" for path, name, text in named if not re.search(rf"(?:def|class) {name}\b", text)
    ]
    assert missing == []
