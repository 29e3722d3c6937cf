import pytest
from pydantic import SecretStr

from prefect_assay.errors import ConfigurationError
from prefect_assay.service.client import AssayClient
from prefect_assay.service.client.http.address import checked_base_url, checked_token, origin


@pytest.mark.parametrize(
    ("address", "checked"),
    [
        ("https://lab.example.org", "https://lab.example.org"),
        ("https://LAB.example.org:443//", "https://lab.example.org"),
        (" https://lab.example.org/api/v1/ ", "https://lab.example.org"),
        ("https://lab.example.org/assays/", "https://lab.example.org/assays"),
        ("https://lab.example.org:8443", "https://lab.example.org:8443"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("http://127.8.9.1", "http://127.8.9.1"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_addresses_come_in_one_spelling(address, checked):
    assert checked_base_url(address) == checked


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("http://lab.example.org", "https"),
        ("http://127.0.0.1.example.org", "https"),
        ("http://10.0.0.1", "https"),
        ("http://localhost.example.org", "https"),
        ("ftp://lab.example.org", "whole address"),
        ("lab.example.org", "whole address"),
        ("", "whole address"),
        ("https://", "whole address"),
        ("https://lab.example.org:99999", "whole address"),
        ("https://[::1", "whole address"),
        ("https://user:hunter2@lab.example.org", "user name"),
        ("https://lab.example.org?token=hunter2", "query"),
    ],
)
def test_unusable_addresses_are_refused_and_not_shown_in_full(address, says):
    with pytest.raises(ConfigurationError, match=says) as caught:
        checked_base_url(address)
    assert "hunter2" not in str(caught.value)


def test_the_token_loses_the_line_end_of_its_file():
    assert checked_token("abc\n").get_secret_value() == "abc"
    assert checked_token(SecretStr(" abc ")).get_secret_value() == "abc"


@pytest.mark.parametrize("token", ["", "  \n", "Bearer canary", "canary\r\nX-Evil: 1", "canäry"])
def test_a_token_unfit_for_a_header_is_refused_without_being_shown(token):
    with pytest.raises(ConfigurationError) as caught:
        checked_token(token)
    assert "can" not in str(caught.value).replace("cannot", "")


def test_the_client_checks_its_address_before_anything_is_sent():
    with pytest.raises(ConfigurationError, match="https"):
        AssayClient("http://lab.example.org", "t")
    assert AssayClient("https://lab.example.org/", "t").base_url == "https://lab.example.org"


def test_origins_compare_by_scheme_host_and_port():
    assert origin("https://a.example/x?y") == origin("https://A.example:443/z")
    assert origin("https://a.example") != origin("https://a.example:8443")
    assert origin("http://a.example") != origin("https://a.example")
