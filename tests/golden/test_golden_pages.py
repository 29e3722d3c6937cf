"""Pages of small campaigns, kept as they were looked at; and what each of them must say, whatever else changes."""

import re
from html import unescape

import pytest

from support.golden.pages import CASES, PAGES, page_of

SAID = {
    "weak-binders": [
        "2 of 3 bind; best 2.54 µM, extrapolated (weak-1)",
        "no value (weak)",
        "No binding (1)",
    ],
    "failed-control": [
        "A control failed. EGF was expected to bind, and did not bind",
        "0 of 1 control as expected: EGF did not bind.",
        "Ask the laboratory about EGF before you rely on the 2 calls in doubt.",
        "doubt",
    ],
    "one-replicate-used": [
        "34.8 nM (1/3)",
        "37.6 nM (1/3)",
        "2 of 2 bind; best 50.1 nM (rank-1)",
        "Not to be told apart from it: rank-2.",
    ],
    "tight-limit": [
        "2 of 2 bind; best < 1.91 nM (tight)",
        "< 1.91 nM tightest binder: tight",
        "tight: only a limit is known",
    ],
    "two-groups": ["Not to be told apart from it: second.", "1 A first", "3 B third", "4 B fourth"],
}
NEVER = {
    "weak-binders": ["Failed fit", "No affinity"],
    "failed-control": [],
    "one-replicate-used": ["3 of 3"],
    "tight-limit": ["497 pM", "500 pM", "open to"],
    "two-groups": [],
}


@pytest.mark.parametrize("case", CASES)
def test_a_page_is_as_it_was_looked_at(case):
    assert page_of(case) == (PAGES / f"{case}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES)
def test_a_page_says_what_matters_and_has_one_best_design(case):
    text = " ".join(unescape(re.sub(r"<[^>]+>", " ", page_of(case))).split())
    text = text.replace(" .", ".")
    assert [phrase for phrase in SAID[case] if phrase not in text] == []
    assert [phrase for phrase in NEVER[case] if phrase in text] == []
    best = re.search(r"bind; best ((?:< )?[\d.]+ [µnp]M)(, extrapolated)? \(([\w-]+)\)", text)
    assert f"{best[1]}{best[2] or ''} tightest binder: {best[3]}" in text
    assert re.search(rf"# Design .*? 1 (?:A )?{best[3]} {best[1]}", text)


@pytest.mark.parametrize("case", CASES)
def test_constants_are_typeset_outside_of_figures(case):
    page = re.sub(r"<svg.*?</svg>|<title.*?</title>|<[^>]+>|data:[^\"]+", " ", page_of(case), flags=re.DOTALL)
    assert re.findall(r".{30}\b(?:K_D|k_on|k_off|T_m)\b", page) == []
