"""Every command that this package prints, or that a page shows, is one that the command line takes.

Texts of the code are read from its syntax trees; a value that is put into a text counts as a word.
"""

import ast
import re
import shlex

import pytest
import typer.main

from prefect_assay.cli.app import app
from support.pages import ROOT

PROGRAM = typer.main.get_command(app)
UsageError = typer.BadParameter.__base__  # of the click that typer brings along
CODE = [
    path
    for folder in ("src/prefect_assay", "flows", "tasks", "blocks", "deployments")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
HOLE = "\0"
VALUE = "1"  # in place of a value that the code puts in: a number is also a name
NAMED = re.compile(r"prefect-assay ((?:[a-z][a-z-]*)(?: [^\n`;]*)?)")
# The program itself is the subject of these sentences.
VERBS = {
    "before",
    "adds",
    "flow",
    "flows",
    "here",
    "reads",
    "wrote",
    "worker",
    "runs",
    "has",
    "is",
    "needs",
    "and",
    "by",
}


def texts_of(path):
    """The texts of a module, those of f-strings with a value in each place; no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    within = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)
            # What follows a word directly is the word's ending, or further options.
            yield re.sub(HOLE, VALUE, re.sub(f"(?<=[A-Za-z]){HOLE}", "", "".join(parts)))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in within | docstrings
        ):
            yield node.value


def command_of(words):
    """The command that the words begin with, and the words after it; None if the first word is not a command."""
    command, rest = PROGRAM, list(words)
    while hasattr(command, "commands") and rest and rest[0] in command.commands:
        command = command.commands[rest.pop(0)]
    return None if command is PROGRAM else (command, rest)


def options_of(command):
    names = {"--help"}
    for parameter in command.params:
        if parameter.param_type_name == "option":
            names |= {*parameter.opts, *parameter.secondary_opts}
    return names


def commands_in(text):
    """Each command that a text names, as (words of the command, options up to the end of its sentence)."""
    for match in NAMED.finditer(re.sub(r"\[/?(?:dim|bold|red)\]", "", text)):
        sentence = re.split(r"[.,:)(] |[.,:)(]$| or | and ", match[1])[0]
        words = [word.strip(".,:)(\"'") for word in sentence.split()]
        yield words, re.findall(r"(?<!\S)--[a-z][a-z-]*", sentence)


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_commands_in_messages_exist_with_their_options(path):
    for text in texts_of(path):
        check_commands(text)


@pytest.mark.parametrize("path", CODE, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_in_brackets_follows_a_command_to_paste(path):
    """A shell takes a bracket for its own syntax."""
    assert not [command for text in texts_of(path) for command in followed_by_brackets(text)]


def followed_by_brackets(text):
    """The commands of a text that nothing but spaces separates from a bracket; those in backticks have an end."""
    for match in re.finditer(r"(?<!`)prefect-assay ([a-z][^`\n(.;,]*) \(", text):
        known = command_of(match[1].split())
        if known:
            yield match[0]


def test_brackets_after_a_command_are_noticed():
    assert list(followed_by_brackets("Answer: prefect-assay approve c --usd 1  (or reject)"))
    assert not list(followed_by_brackets("`prefect-assay approve c` (or reject)"))


def check_commands(text):
    for words, options in commands_in(text):
        known = command_of(words)
        assert known or words[0] in VERBS, f"there is no command {' '.join(words)!r}, in: {text}"
        if known:
            missing = set(options) - options_of(known[0])
            assert not missing, f"{' '.join(words)!r} has no option {missing}, in: {text}"


def check_sentences(page_text):
    """Check the commands in the sentences of a page; an ellipsis in one does not end it."""
    for shown in re.findall(r"`(prefect-assay [^`]*)`", page_text):
        check_commands(re.sub(r"\s+(?:\.\.\.)?", " ", shown))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_commands_in_sentences_of_a_page_exist_with_their_options(page):
    check_sentences(page.read_text(encoding="utf-8"))


def test_an_option_after_an_ellipsis_is_checked():
    check_sentences("Write `prefect-assay run ... --payment x402-exact`.")
    with pytest.raises(AssertionError, match="has no option"):
        check_sentences("Write `prefect-assay run ...\n--no-such-option main`.")


def shown_commands(page):
    """The lines of code blocks, indented or fenced, that are commands of ours, continued lines joined."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    fenced = re.findall(r"^```(?:console|bash|sh|)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line for block in fenced for line in block.splitlines()]
    lines += [line for line in text.splitlines() if line.startswith("    ")]
    for line in lines:
        match = re.match(r"\s*(?:[A-Z_]+=\S* )*prefect-assay (.*)", line)
        if match:
            yield match[1]


def parse(line):
    """Read a command as the program does, without running it."""
    words = shlex.split(line.split(" < ")[0].split(" | ")[0].split(" > ")[0], comments=True)
    known = command_of(words)
    assert known, f"there is no command {words[0]!r}"
    command, rest = known
    rest = [re.sub(r"^<.*>$", VALUE, word) for word in rest if word not in {"...", "…"}]
    with command.make_context(command.name, rest):
        pass


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_commands_of_a_page_are_read_by_the_command_line(page):
    for line in shown_commands(page):
        try:
            parse(line)
        except typer.Exit:
            pass  # --help
        except UsageError as error:
            raise AssertionError(f"prefect-assay {line}: {error.format_message()}") from None


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Next: `prefect-assay run designs.fasta --target NAME --no-such-option`", {"--no-such-option"}),
        ("there is no block; make it with prefect-assay init --name lab. --gone is another thing", set()),
    ],
)
def test_an_option_that_does_not_exist_is_noticed(text, options):
    ((words, seen),) = commands_in(text)
    command, _ = command_of(words)
    assert set(seen) - options_of(command) == options
