import functools
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pytest

from prefect_assay.analysis.plots import (
    draw_calls,
    draw_dose_response,
    draw_measured_against_predicted,
    draw_melting_curve,
    draw_overview,
    draw_ranked_affinities,
    draw_sensorgrams,
    make_markdown_image,
)
from prefect_assay.analysis.plots.svg import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PAPER,
    PURPLE,
    SKY,
    VERMILLION,
)
from support.reporting.campaigns import melt, replicate, rows, summary
from support.reporting.figure import SVG, Figure

HOSTILE = [
    "</text><script>alert(1)</script>",
    "$\\alpha$ and $x_1^2$",
    "&lt;b&gt; \"quoted\" 'too'",
    "設計された結合タンパク質",
    "👩🏽‍🔬🧬",
    "@0@",
    "K_D \ue000",
]


def every_figure(name="design"):
    designs = [
        summary(
            name,
            10 ** (-9 + number / 3),
            target=f"t{number}",
            attributes={name or "x": str(number)},
            expression="high",
        )
        for number in range(6)
    ]
    return {
        "sensorgrams": draw_sensorgrams(replicate(name, unit=name, reasons=(name,))),
        "dose_response": draw_dose_response(replicate(name, unit=name)),
        "melting_curve": draw_melting_curve(melt(name)),
        "ranked_affinities": draw_ranked_affinities([*designs, summary(name)], rows(name, 1e-8, 2e-8)),
        "overview": draw_overview(designs),
        "calls": draw_calls(designs),
        "measured_against_predicted": draw_measured_against_predicted(designs, name or "x"),
    }


# For tests that only read them; one that draws in other circumstances calls the function itself.
drawn_once = functools.cache(every_figure)


@pytest.mark.parametrize("name", [*HOSTILE, "x" * 300, "", "\ud800", "a\x00b\x07", "\u202egnp.exe"])
def test_no_name_breaks_or_scripts_a_figure(name):
    for svg in every_figure(name).values():
        root = ET.fromstring(svg.encode())
        tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert tags <= {"svg", "title", "style", "g", "rect", "circle", "path", "text", "tspan"}
        assert not [a for e in root.iter() for a in e.attrib if a.lower().startswith("on")]
        assert not re.search("[\x00-\x08\u202a-\u202e\ud800-\udfff]", svg)


@pytest.mark.parametrize("name", HOSTILE[:6])
def test_a_short_name_is_shown_as_it_is(name):
    figures = drawn_once(name)
    for figure in ("sensorgrams", "dose_response", "melting_curve"):
        assert name in Figure(figures[figure]).texts


@pytest.mark.parametrize("name", ["x" * 300, "long words " * 30])
def test_a_long_name_stays_on_the_sheet(name):
    for figure, svg in drawn_once(name).items():
        drawn = Figure(svg)
        width = float(drawn.root.get("width"))
        for word in drawn.words:
            if "rotate" not in word.attributes.get("transform", ""):
                length = len(word.text) * word.size * 0.5
                left = word.x - length * {"middle": 0.5, "end": 1}.get(word.attributes.get("text-anchor"), 0)
                assert -1 <= left < left + length <= width + 1, (figure, word)


SCRIPT = """
import sys, hashlib
sys.path.insert(0, {tests!r})
sys.path.insert(0, {here!r})
from test_plots_svg import every_figure
for name, svg in every_figure("design $x$").items():
    print(name, hashlib.sha256(svg.encode()).hexdigest())
"""


def test_another_process_draws_the_same_bytes():
    here = Path(__file__).parent
    script = SCRIPT.format(tests=str(here.parents[1]), here=str(here))
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 7


WITHOUT_EXTRAS = """
import sys
for name in ("matplotlib", "numpy", "scipy"):
    sys.modules[name] = None
from prefect_assay.analysis.plots import draw_calls, draw_measured_against_predicted, draw_overview, draw_ranked_affinities
from prefect_assay.analysis.results.design import DesignSummary
designs = [
    DesignSummary(name=str(n), experiment_code="E", outcome="measured", kd_M=10.0**-n, attributes={"x": str(n)})
    for n in range(3, 10)
]
figures = [draw_calls(designs), draw_overview(designs), draw_ranked_affinities(designs, [])]
print(len(figures), draw_measured_against_predicted(designs, "x").count("Spearman"), "prefect" in sys.modules)
"""


def test_the_figures_of_a_campaign_need_no_extra():
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.strip() == "3 2 False", ran.stderr


def luminance(color):
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def dark_colors(svg):
    style = ET.fromstring(svg).findtext(f"{SVG}style")
    assert style.startswith("@media screen and (prefers-color-scheme:dark){.assay-plot ")
    return dict(re.findall(r'\[(?:fill|stroke)="(#\w+)"\]\{(?:fill|stroke):(#\w+)\}', style))


def test_words_and_lines_are_legible_on_light_and_dark_paper():
    dark = {}
    for svg in drawn_once().values():
        dark |= dark_colors(svg)
    assert {INK, MUTED, PAPER, BLUE} <= set(dark)
    for paper, shown in ((PAPER, lambda color: color), (dark[PAPER], lambda color: dark.get(color, color))):
        assert contrast(shown(INK), paper) > 12
        assert contrast(shown(MUTED), paper) > 5
        for color in (BLUE, VERMILLION, GREEN):
            assert contrast(shown(color), paper) > 3
        for color in (PURPLE, ORANGE, SKY):
            assert contrast(shown(color), paper) > 2


def test_two_figures_on_a_page_share_no_id():
    assert not [svg for svg in drawn_once().values() if re.search(r"\b(id|href)=|url\(", svg)]


def test_a_markdown_image_holds_the_figure_and_its_description_cannot_end_it():
    svg = draw_overview([summary("a", 1e-8)])
    match = re.fullmatch(
        r"!\[([^\]]*)\]\(data:image/svg\+xml,([A-Za-z0-9_~%/:=;,.-]+)\)",
        make_markdown_image(svg, "a](x) <b>\n`c`"),
    )
    assert unquote(match[2]) == svg
    assert match[1] == "a (x) b c"
