"""The other filter form of the lists (contract 4.1): one query parameter per field, as in `geq(created_at)=<value>`.

Nothing is quoted, and all tests must hold. `filters` is the language for `or`, null checks and everything else.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from prefect_assay.errors import InputError
from prefect_assay.service.client.filters import Value, bare_text, checked_field
from prefect_assay.service.client.http.request import Parameters

__all__ = ["FieldTest", "encode_tests", "equ", "geq", "gtr", "leq", "lss", "plain"]


@dataclass(frozen=True, slots=True)
class FieldTest:
    """One test of one field: a query parameter and its value."""

    parameter: str
    value: str


def equ(field: str, value: Value) -> FieldTest:
    """The field equals the value."""
    return _test("equ", field, value)


def geq(field: str, value: Value) -> FieldTest:
    """The field is at least the value."""
    return _test("geq", field, value)


def gtr(field: str, value: Value) -> FieldTest:
    """The field is greater than the value."""
    return _test("gtr", field, value)


def leq(field: str, value: Value) -> FieldTest:
    """The field is at most the value."""
    return _test("leq", field, value)


def lss(field: str, value: Value) -> FieldTest:
    """The field is less than the value."""
    return _test("lss", field, value)


def plain(field: str, value: Value) -> FieldTest:
    """The field equals the value, in the shortest form: `status=done`."""
    return FieldTest(checked_field(field), bare_text(value))


def encode_tests(where: Iterable[FieldTest]) -> Parameters:
    """Query parameters, each named once: of two with the same name a service would read only one."""
    parameters = tuple((test.parameter, test.value) for test in where)
    names = [name for name, _ in parameters]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"where: {', '.join(twice)} is given twice; use filters.and_ for several such tests")
    return parameters


def _test(operator: str, field: str, value: Value) -> FieldTest:
    return FieldTest(f"{operator}({checked_field(field)})", bare_text(value))
