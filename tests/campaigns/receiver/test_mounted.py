"""The receiver inside other apps and behind proxies: only the path it sees counts, and no header about the sender."""

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from prefect_assay.campaigns.receiver.receiver import Receiver, create_app
from prefect_assay.campaigns.receiver.settings import ReceiverSettings
from prefect_assay.service.webhook_signature import derive_secret
from support.services.asgi import served
from support.webhooks.deliveries import ORDER_KEY, SIGNING_KEY, body_of, headers_of

SECRET = derive_secret(SIGNING_KEY, ORDER_KEY)


class Woken(list):
    async def __call__(self, experiment_id, *_):
        self.append(experiment_id)
        return 1


def receiver(prefix, woken=None):
    settings = ReceiverSettings(signing_keys=(SIGNING_KEY,), path_prefix=prefix)
    return create_app(settings, wake=Woken() if woken is None else woken)


def starlette(app):
    return Starlette(routes=[Mount("/hooks", app=app)])


def fastapi(app):
    outer = FastAPI()
    outer.mount("/hooks", app)
    return outer


def twice(app):
    return starlette(starlette(app))


def answers(url, **more):
    """Of a genuine delivery, a forged one and the health check below an address."""
    body = body_of()
    genuine = headers_of(body, SECRET) | more
    forged = headers_of(body, "f" * 64) | more
    post = [
        httpx.post(f"{url}/{ORDER_KEY}", content=body, headers=h, trust_env=False) for h in (genuine, forged)
    ]
    return [
        answer.status_code for answer in (*post, httpx.get(f"{url}/health", trust_env=False, headers=more))
    ]


@pytest.mark.parametrize(
    ("outer", "prefix", "path"),
    [
        (starlette, "", "/hooks"),
        (starlette, "/assay", "/hooks/assay"),
        (fastapi, "", "/hooks"),
        (fastapi, "/a/b", "/hooks/a/b"),
        (twice, "/assay", "/hooks/hooks/assay"),
    ],
)
def test_mounted_below_a_path(outer, prefix, path):
    with served(outer(receiver(prefix))) as url:
        assert answers(url + path) == [200, 401, 200]
        assert httpx.get(f"{url}{path}/ready", trust_env=False).status_code == 200
        assert httpx.get(f"{url}{path}/metrics", trust_env=False).status_code == 200
        assert answers(url + "/elsewhere") == [404, 404, 404]


def test_a_proxy_that_strips_the_prefix_and_sets_root_path(monkeypatch):
    """`uvicorn --root-path`: the receiver sees the path without the prefix."""
    config = uvicorn.Config
    monkeypatch.setattr(uvicorn, "Config", lambda app, **options: config(app, root_path="/public", **options))
    with served(receiver("/assay")) as url:
        assert answers(f"{url}/assay") == [200, 401, 200]


def test_forwarded_headers_change_nothing():
    lies = {
        "X-Forwarded-For": "127.0.0.1",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "elsewhere.example",
        "X-Forwarded-Prefix": "/elsewhere",
        "Forwarded": "for=127.0.0.1;host=elsewhere.example",
        "X-Original-URL": f"/assay/{'f' * 20}",
        "X-Rewrite-URL": f"/assay/{'f' * 20}",
        "X-HTTP-Method-Override": "GET",
    }
    with served(receiver("/assay")) as url:
        assert answers(f"{url}/assay", **lies) == [200, 401, 200]


def test_two_receivers_in_one_app_share_nothing():
    """No global state: neither counters nor the memory of updates."""
    woken = [Woken(), Woken()]
    settings = ReceiverSettings(signing_keys=(SIGNING_KEY,), path_prefix="")
    pair = [Receiver(settings, wake=wake) for wake in woken]
    app = Starlette(routes=[Mount("/one", app=pair[0].app), Mount("/two", app=pair[1].app)])
    with served(app) as url:
        body = body_of(data_experiment_id="e-1")
        for _ in range(2):
            for path in ("/one", "/two"):
                httpx.post(
                    f"{url}{path}/{ORDER_KEY}",
                    content=body,
                    headers=headers_of(body, SECRET),
                    trust_env=False,
                )
    assert woken == [["e-1"], ["e-1"]]
    for one in pair:
        counted = [
            one.metrics.registry.get_sample_value(
                "assay_receiver_deliveries_total", {"outcome": outcome, "reason": ""}
            )
            for outcome in ("woken", "repeated")
        ]
        assert counted == [1, 1]


def test_an_unexpected_error_is_a_500_that_the_service_repeats(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("prefect_assay.campaigns.receiver.endpoint.prove", broken)
    woken = Woken()
    for app, path in ((receiver("", woken), ""), (starlette(receiver("", woken)), "/hooks")):
        with served(app) as url:
            assert answers(url + path) == [500, 500, 200]
    assert woken == []
