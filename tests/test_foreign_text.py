"""Text from elsewhere is harmless in every medium: terminal, Markdown, page, table, state message."""

import io
import re

import pytest
from rich.table import Table

from prefect_assay.analysis.results.tables import format_cell
from prefect_assay.cli.output import TerminalConsole
from prefect_assay.errors import ServiceUnavailable
from prefect_assay.foreign_text import (
    clean_text,
    label_markdown,
    link_markdown,
    quote_markdown,
    safe_link,
    unquote_markdown,
)
from prefect_assay.service.models.experiment import Experiment

DANGEROUS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
TEXTS = [
    "EXP\x1b[2J\x1b]0;title\x07-1",
    "EXP\x9b31m-1",
    "EXP\u202e1-\u2066x",
    "EXP\x00\x08\x7f\u2028-1",
    "EXP\ud800-1",
    "EXP\rOK",
]


@pytest.mark.parametrize("text", TEXTS)
def test_control_characters_become_visible_and_two_texts_stay_two(text):
    assert not DANGEROUS.search(clean_text(text))
    assert clean_text(text) != "".join(DANGEROUS.split(text))
    assert clean_text("line\r\nline\tπ 🧪") == "line\nline\tπ 🧪"


@pytest.mark.parametrize("text", TEXTS)
def test_every_medium_gets_clean_text(text):
    output = io.StringIO()
    console = TerminalConsole(file=output, force_terminal=False)
    table = Table("name")
    table.add_row(text)
    console.print(text)
    console.print(table)
    assert not DANGEROUS.search(output.getvalue())
    assert not DANGEROUS.search(ServiceUnavailable(text).message)
    assert not DANGEROUS.search(str(format_cell(text)))
    assert not DANGEROUS.search(quote_markdown(text))


def test_markup_of_a_terminal_is_text():
    output = io.StringIO()
    TerminalConsole(file=output).print("[red]EXP[/red] [link=javascript:x]a[/] :smile:")
    assert output.getvalue().strip() == "[red]EXP[/red] [link=javascript:x]a[/] :smile:"


SAFE = [
    "https://portal.example.org/e/1?x=a%20b&y=1#z",
    "http://127.0.0.1:8000/e",
    "http://localhost/e",
    "http://[::1]:1/",
]
UNSAFE = [
    None,
    "",
    "javascript:alert(1)",
    "JaVaScRiPt://h/%0aalert(1)",
    "data:text/html,x",
    "http://portal.example.org/e",
    "https://user:pw@portal.example.org/",
    "https://portal.example.org/a)[x](javascript:y",
    'https://portal.example.org/"onmouseover="x',
    "https://portal.example.org/a b",
    "https://portal.example.org/\x1b[2J",
    "https://pörtal.example.org/",
    " https://portal.example.org/",
    "https://",
    "//portal.example.org/",
    "https://[",
]


@pytest.mark.parametrize("address", SAFE)
def test_a_link_over_https_or_to_this_machine_stays(address):
    assert safe_link(address) == address
    assert link_markdown("EXP-1", address) == f"[EXP-1]({address})"


@pytest.mark.parametrize("address", UNSAFE)
def test_any_other_link_is_left_out(address):
    assert safe_link(address) is None
    assert link_markdown("EXP-1", address) == "EXP-1"


def test_a_label_cannot_end_its_link_or_its_cell():
    assert label_markdown("a](javascript:x) `|") == "`a](javascript:x) '/`"
    assert label_markdown("EXP-2026.1") == "EXP-2026.1"
    assert link_markdown("<script>", "https://h.example/") == "[`<script>`](https://h.example/)"


def test_answers_of_the_service_are_clean_where_they_become_models():
    experiment = Experiment.model_validate(
        {
            "id": "11111111-1111-4111-8111-111111111111",
            "code": TEXTS[0],
            "status": "draft",
            "created_at": "2026-11-27T00:00:00Z",
            "experiment_type": "screening",
            "experiment_url": "javascript:alert(1)",
            "notes": TEXTS[2],
        }
    )
    assert not DANGEROUS.search(experiment.model_dump_json())
    assert not DANGEROUS.search(experiment.code or "")
    assert experiment.experiment_url is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("`affinity by BLI`", "affinity by BLI"),
        ("plain", "plain"),
        ("`a` and `b`", "`a` and `b`"),
        ("`", "`"),
        ("", ""),
    ],
)
def test_a_quoted_value_is_plain_at_a_terminal(text, shown):
    assert unquote_markdown(text) == shown
