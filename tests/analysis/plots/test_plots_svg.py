import functools
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest

from prefect_assay.analysis.plots import (
    as_markdown_image,
    calls,
    dose_response,
    measured_against_predicted,
    melting_curve,
    overview,
    ranked_affinities,
    sensorgrams,
)
from prefect_assay.analysis.plots import overview as overview_figure
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
    themed,
)
from prefect_assay.errors import ConfigurationError
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
        "sensorgrams": sensorgrams(replicate(name, unit=name, reasons=(name,))),
        "dose_response": dose_response(replicate(name, unit=name)),
        "melting_curve": melting_curve(melt(name)),
        "ranked_affinities": ranked_affinities([*designs, summary(name)], rows(name, 1e-8, 2e-8)),
        "overview": overview(designs),
        "calls": calls(designs),
        "measured_against_predicted": measured_against_predicted(designs, name or "x"),
    }


# For tests that only read them; one that draws in other circumstances calls the function itself.
drawn_once = functools.cache(every_figure)


@pytest.mark.parametrize("name", [*HOSTILE, "x" * 300, "", "\ud800", "a\x00b\x07", "\u202egnp.exe"])
def test_no_name_breaks_or_scripts_a_figure(name, recwarn):
    for svg in every_figure(name).values():
        root = ET.fromstring(svg.encode())
        assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {
            "svg",
            "title",
            "style",
            "g",
            "defs",
            "clipPath",
            "rect",
            "path",
            "use",
            "text",
            "tspan",
        }
        assert not [a for e in root.iter() for a in e.attrib if a.lower().startswith("on")]
        assert not re.search("[\x00-\x08\u202a-\u202e\ud800-\udfff]", svg)
    warned = [w for w in recwarn if not issubclass(w.category, DeprecationWarning)]
    assert not [w for w in warned if "matplotlib" in str(w.filename) or "lyph" in str(w.message)]


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


def test_another_process_with_other_settings_draws_the_same_bytes(tmp_path):
    (tmp_path / "matplotlibrc").write_text(
        "text.usetex: True\nfont.size: 40\nsvg.fonttype: path\nlines.linewidth: 9\naxes.grid: True\nsvg.hashsalt: other\n"
        "savefig.bbox: tight\nsavefig.dpi: 300\nfigure.constrained_layout.use: True\n"
    )
    here = Path(__file__).parent
    script = SCRIPT.format(tests=str(here.parents[1]), here=str(here))
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": seed} | more,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, more in (("1", {}), ("2", {"MATPLOTLIBRC": str(tmp_path / "matplotlibrc")}))
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 7


def test_threads_draw_the_same_bytes_and_leave_the_users_settings_alone():
    with mpl.rc_context({"font.size": 33.0, "lines.linewidth": 7.0}):
        before = dict(mpl.rcParams)
        alone = every_figure("a")
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(lambda _: every_figure("a"), range(4)))
        assert dict(mpl.rcParams) == before
    assert together == [alone] * 4


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_import_loads_neither_matplotlib_nor_numpy():
    ran = run(
        "import sys, prefect_assay.analysis.plots\n"
        "print(sorted({'matplotlib', 'numpy', 'scipy', 'prefect'} & set(sys.modules)))"
    )
    assert ran.stdout.strip() == "[]", ran.stderr


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigurationError, match=r"prefect-assay\[report\]"):
        overview_figure([summary("a", 1e-8)])


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


def test_every_figure_has_paper_of_its_own_that_changes_with_the_ink():
    for svg in drawn_once().values():
        drawn = Figure(svg)
        first = drawn.paths[0]
        assert first.attributes["fill"] == PAPER
        assert {x for x, _ in first.points} == {0, float(drawn.root.get("width"))}
        assert {y for _, y in first.points} == {0, float(drawn.root.get("height"))}
        assert {PAPER, INK} <= set(dark_colors(svg))


def test_values_in_colored_cells_are_legible_and_do_not_change_with_the_scheme():
    svg = overview([summary(str(n), 10 ** (-9.5 + n)) for n in range(5)])
    dark, drawn = dark_colors(svg), Figure(svg)
    cells = [p for p in drawn.paths if p.points[0][1] > 70 and min(x for x, _ in p.points) > 0]
    assert len(cells) == 5
    for cell in cells:
        left, right = min(x for x, _ in cell.points), max(x for x, _ in cell.points)
        words = [w for w in drawn.words if left < w.x < right and w.y > 70]
        assert len(words) == 2
        for word in words:
            assert {cell.attributes["fill"], word.attributes["fill"]}.isdisjoint(dark)
            assert contrast(cell.attributes["fill"], word.attributes["fill"]) > 4


def test_two_figures_on_a_page_agree_on_what_an_id_is():
    known = {}
    for svg in [*drawn_once().values(), *drawn_once("another").values()]:
        for element in ET.fromstring(svg).iter():
            if "id" in element.attrib:
                content = ET.tostring(element)
                assert known.setdefault(element.attrib["id"], content).strip() == content.strip()


@pytest.mark.parametrize(
    "style", ["font: 700 13px 'DejaVu Sans', serif", "font-size: 13px; font-weight: 700; font-family: serif"]
)
def test_fonts_are_read_in_the_notation_of_every_version_of_matplotlib(style):
    raw = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><text style="{style}">@0@</text></svg>'
    text = ET.fromstring(themed(raw, {"@0@": "a <b>"}, title="t")).find(f"{SVG}text")
    assert text.attrib == {"font-size": "13", "font-weight": "700"}
    assert text.text == "a <b>"


def test_a_markdown_image_holds_the_figure_and_its_description_cannot_end_it():
    svg = overview([summary("a", 1e-8)])
    found = re.fullmatch(
        r"!\[([^\]]*)\]\(data:image/svg\+xml,([A-Za-z0-9_~%/:=;,.-]+)\)",
        as_markdown_image(svg, "a](x) <b>\n`c`"),
    )
    assert unquote(found[2]) == svg
    assert found[1] == "a (x) b c"
