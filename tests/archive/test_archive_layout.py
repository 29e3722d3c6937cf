"""Names in the archive: any text becomes a safe name, and no two texts share one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefect_assay.archive.layout import (
    NAME_LENGTH,
    PATH_DEPTH,
    experiment_folder,
    safe_code,
    safe_name,
    safe_path,
    safe_prefix,
    version_folder,
    version_of,
)
from prefect_assay.archive.store import check_key
from prefect_assay.errors import ArchiveError

NASTY = [
    "",
    ".",
    "..",
    "...",
    "CON",
    "con",
    "nul.csv",
    "lpt1",
    "v001",
    "V1",
    "a",
    "A",
    "a.",
    "a ",
    " a",
    "~",
    "a~b",
]
NASTY += [
    "-rf",
    ".git",
    "ä",
    "a\u0308",
    "ﬁ",
    "fi",
    "日本",
    "a/b",
    "a\\b",
    "a\0",
    "a\n",
    "x" * 300,
    "X" * 300,
    "💥",
]
NASTY += [
    "manifest.json",
    "Manifest.json",
    "aux.tar.gz",
    "claim.json",
    "a?b",
    "a*b",
    "s\u0131",
    "SI",
    "si",
    "K",
    "K",
]

# Short texts of characters that go wrong, so that near-collisions are actually tried.
any_text = st.one_of(
    st.sampled_from(NASTY),
    st.text(st.sampled_from("aAbB.-_~/ 0vV1äÄ\u0308\\"), max_size=6),
    st.text(max_size=120),
)

SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~-]*")
WINDOWS = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def assert_safe(segment):
    assert SAFE.fullmatch(segment), segment
    assert len(segment) <= NAME_LENGTH
    assert not segment.endswith(".")
    assert not WINDOWS.fullmatch(segment)
    assert version_of(segment) is None
    check_key(segment)


@given(any_text)
def test_every_text_becomes_a_safe_name(text):
    assert_safe(safe_name(text))
    assert safe_name(text) == safe_name(text).lower()
    assert_safe(safe_code(text))
    assert safe_code(text) == safe_code(text).upper()


@given(any_text, any_text)
def test_two_texts_never_meet_even_where_case_is_ignored(one, two):
    if one != two:
        assert safe_name(one) != safe_name(two)
        assert safe_code(one).lower() != safe_code(two).lower()
        assert safe_path(one) != safe_path(two)


@given(any_text)
def test_a_digest_never_looks_like_a_kept_name(text):
    name = safe_name(text)
    assert ("~" in name) is (name != text)


@given(st.lists(any_text, min_size=1, max_size=12).map("/".join))
def test_every_path_is_safe_and_bounded(path):
    segments = safe_path(path).split("/")
    assert len(segments) <= PATH_DEPTH
    for segment in segments:
        assert_safe(segment)


@given(any_text, any_text, st.integers(1, 999_999))
def test_every_key_fits_into_s3_and_stays_below_the_prefix(campaign, code, version):
    key = (
        version_folder(experiment_folder("a" * 200, campaign, code), version)
        + "/"
        + "/".join("p" * 80 for _ in range(8))
    )
    assert len(key.encode()) <= 1024
    assert key.startswith("a" * 200 + "/")
    assert version_of(key.split("/")[3]) == version


@pytest.mark.parametrize(
    "name", ["results.csv", "results-001.json", "_p01133-971-1023_1_316.2.csv", "a" * 80]
)
def test_a_safe_name_stays_as_it_is(name):
    assert safe_name(name) == name


def test_readable_remains():
    assert re.fullmatch(r"my-design-1~[0-9a-f]{12}\.csv", safe_name("My Design (1).csv"))
    assert re.fullmatch(r"egfr-runde-2~[0-9a-f]{12}", safe_name("EGFR Runde 2"))
    assert safe_code("EGFR-2025-001") == "EGFR-2025-001"
    assert safe_path("raw_data/a.csv") == "raw_data/a.csv"


@pytest.mark.parametrize("prefix", ["..", "a/../b", "a//b", ".hidden", "ä", "a b", "a" * 201, "a\\b", "a/."])
def test_a_prefix_that_leads_elsewhere_is_refused(prefix):
    with pytest.raises(ArchiveError, match="prefix"):
        safe_prefix(prefix)


@pytest.mark.parametrize(
    ("prefix", "kept"), [("", ""), ("/", ""), ("/Lab/assays/", "Lab/assays"), ("y=2025", "y=2025")]
)
def test_a_plain_prefix_is_kept(prefix, kept):
    assert safe_prefix(prefix) == kept
