"""Twice the input is twice the work, for every parser of foreign text: calls are counted, not seconds."""

import sys
from datetime import UTC, datetime

import pytest

from assay_lab.kernel.refusals import Refusal
from assay_lab.requests import filters
from prefect_assay.designs.read import read_sequences
from prefect_assay.errors import AssayError
from prefect_assay.service.client.http.failures import problem_of
from prefect_assay.service.client.http.request import Answer
from prefect_assay.service.webhook_signature import verify

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def calls(work) -> int:
    """How many functions are called, C functions included."""
    count = 0

    def note(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    except (AssayError, Refusal):
        pass
    finally:
        sys.setprofile(None)
    return count


def numbered(template, size):
    return "".join(template.format(n) for n in range(size))


@pytest.mark.parametrize(
    "work",
    [
        lambda size: read_sequences("d", text=numbered(">d{0}\nMKV" + "A" * 5 + "\n", size)),
        lambda size: read_sequences("d", text=">d\n" + "MKV\n" * size),
        lambda size: read_sequences("d", text=">d\n" + "MK:" * size),
        lambda size: read_sequences("d", text=">d\n" + "X" * size),
        lambda size: read_sequences("d", text=numbered(">d\nMKV\n", size)),
        lambda size: read_sequences("d", text="name,sequence\n" + numbered("d{0},MKV\n", size)),
        lambda size: read_sequences("d", text='name,sequence\n"' + '""' * size),
        lambda size: read_sequences("d", text="name,sequence" + ",x" * size + "\n"),
        lambda size: read_sequences("d", text="\n" * size),
        lambda size: verify(b"x" * size, {"X-Service-Signature": "y" * size}, ["z"], now=NOW, tolerance=None),
        lambda size: problem_of(Answer(status=400, content=b'{"error": [' + b'"a; b",' * size + b'""]}')),
    ],
)
def test_work_grows_with_the_input_and_no_faster(work):
    small, large = calls(lambda: work(300)), calls(lambda: work(1_200))
    assert large <= 4.4 * small + 200


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000,
        "and(" * 10_000,
        "in(a" + ",b" * 10_000,
        '"' * 10_000,
        '"\\' * 10_000,
        " " * 10_000,
        "a" * 10_000,
    ],
)
@pytest.mark.parametrize("cut", [filters.LENGTH_MAX, 10_000])
def test_a_filter_is_bounded_whatever_it_is(text, cut):
    assert calls(lambda: filters.parse_expression(text[:cut])) < 20 * filters.NODES_MAX
