"""In Chromium, a page of another origin reads nothing of this machine's servers and changes nothing in them.

The page comes from another port of the loopback, as a notebook's does, or by DNS rebinding from the servers' own ports
under a foreign name. The servers' own interfaces work under each of their names.
"""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from prefect_assay.blocks import SpendingPolicy
from support.browser.screenshots import CHROMIUM
from support.services.prefect_http import open_prefect_http
from support.services.prefect_server import prefect_server
from support.services.serving import serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
NAMES = (
    "--host-resolver-rules=MAP evil.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
)
# Everything that a page can send; what it could read is the answer.
TRIALS = """async ({api, block, quote, lab, receiver}) => {
  const read = []
  const attempt = async (what, action) => {
    try { const got = await action(); if (got) read.push([what, String(got).slice(0, 200)]) } catch (error) {}
  }
  const send = (url, options) => attempt(url, async () => {
    const answer = await fetch(url, options)
    return answer.type === 'opaque' ? '' : await answer.text()
  })
  const variable = JSON.stringify({name: 'planted', value: '1'})
  const secrets = JSON.stringify({include_secrets: true})
  for (const mode of ['no-cors', 'cors']) {
    await send(`${api}/variables/`, {method: 'POST', mode, body: new Blob([variable])})
    await send(`${api}/variables/`, {method: 'POST', mode, body: variable})
    await send(`${api}/block_documents/filter`, {method: 'POST', mode, body: new Blob([secrets])})
    await send(`${quote}accept`, {method: 'POST', mode})
    await send(`${lab}/_sim/reset`, {method: 'POST', mode, body: '{}'})
    await send(`${receiver}/${'a'.repeat(20)}`, {method: 'POST', mode, body: '{}'})
    for (const url of [`${api}/block_documents/${block}?include_secrets=true`, `${api}/admin/settings`, quote,
                       `${lab}/portal/`, `${receiver}/metrics`])
      for (const cache of ['default', 'force-cache']) await send(url, {mode, cache})
  }
  const json = {'Content-Type': 'application/json'}
  const raised = JSON.stringify({data: {per_experiment_usd: 999999}})
  await send(`${api}/block_documents/${block}`, {method: 'PATCH', headers: json, body: raised})
  await send(`${api}/block_documents/${block}`, {method: 'DELETE'})
  for (const path of ['events/out', 'logs/out', 'events/in']) await attempt(path, () => new Promise((done) => {
    const socket = new WebSocket(`${api.replace('http', 'ws')}/${path}`, path === 'events/in' ? [] : ['prefect'])
    socket.onopen = () => done('opened')
    socket.onerror = () => done('')
  }))
  for (const element of ['img', 'script', 'iframe']) await attempt(element, () => new Promise((done) => {
    const node = document.createElement(element)
    node.onerror = node.onload = () => done('')
    node.src = element === 'iframe' ? `${api.slice(0, -4)}/dashboard` : `${api}/variables/count`
    document.body.append(node)
  }))
  for (const [action, name, value] of [[`${api}/variables/`, variable.slice(0, -1) + ', "tags": ["', '"]}'],
                                       [`${quote}accept`, 'a', 'b'], [`${quote}reject`, 'reason', 'price']])
    await attempt(action, () => new Promise((done) => {
      const frame = Object.assign(document.createElement('iframe'), {name: `f${Math.random()}`})
      const form = Object.assign(document.createElement('form'), {method: 'post', enctype: 'text/plain', action})
      const field = Object.assign(document.createElement('input'), {name, value})
      document.body.append(frame, form)
      form.append(field)
      form.target = frame.name
      frame.onload = () => { if (frame.contentWindow.location.href !== 'about:blank') done('') }
      setTimeout(() => done(''), 3000)
      form.submit()
    }))
  return read
}"""


class Page(BaseHTTPRequestHandler):
    """An empty page."""

    def do_GET(self):
        body = b"<!doctype html><title>foreign</title><body></body>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture(scope="module")
def prey(world):
    """What a page would like to have: a policy, an open quote, and where to send."""
    policy = SpendingPolicy(per_experiment_usd=5_000, per_campaign_usd=5_000)
    block = policy.save("prey", overwrite=True)
    lab = world.stack.lab
    with lab.http() as http:
        order = {
            "experiment_spec": {
                "experiment_type": "thermostability",
                "sequences": {"a": "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"},
            },
            "name": "prey",
            "skip_draft": True,
        }
        experiment = http.post("/experiments", json=order).json()["experiment_id"]
        lab.advance(hours=2)
        quote = http.get(f"/experiments/{experiment}").json()["provider_quote_url"]
    return {
        "api": world.stack.api_url,
        "block": str(block),
        "quote": quote,
        "lab": lab.base_url,
        "receiver": world.stack.receiver_url,
        "experiment": experiment,
    }


@pytest.fixture
def chromium(world, prey):  # a browser's loop would keep blocks from being saved
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS, NAMES])
        yield browser
        browser.close()


def unharmed(world, prey):
    with open_prefect_http(prey["api"]) as api:
        assert api.post("/variables/filter", json={}).json() == []
        block = api.get(f"/block_documents/{prey['block']}").json()
    assert block["data"]["per_experiment_usd"] == 5_000
    with world.stack.lab.http() as http:
        assert http.get(f"/experiments/{prey['experiment']}").json()["status"] == "quote_sent"


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_page_of_another_port_reads_and_changes_nothing(world, prey, chromium, name):
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Page)) as url:
        page = chromium.new_page()
        page.goto(url.replace("127.0.0.1", name))
        assert page.evaluate(TRIALS, prey) == []
        assert [
            frame.url
            for frame in page.frames
            if "/dashboard" in frame.url and frame.content().count("<script")
        ] == []
    unharmed(world, prey)


def test_a_page_under_a_rebound_name_reads_and_changes_nothing(world, prey, chromium):
    """The browser takes the page and its requests as of one origin: no rule of CORS would hold it."""
    rebound = {
        key: value.replace("127.0.0.1", "evil.example") if isinstance(value, str) else value
        for key, value in prey.items()
    }
    page = chromium.new_page()
    answer = page.goto(rebound["api"] + "/health")
    assert answer.status == 421
    read = page.evaluate(TRIALS, rebound)
    own_origin = urlsplit(rebound["api"]).netloc
    assert {
        what for what, _ in read if urlsplit(what).netloc == own_origin
    }  # the browser lets it read, and it gets refusals
    for what, text in read:
        assert "--allow-host" in text, (what, text)
    unharmed(world, prey)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("root", ["", "/v2"], ids=["v1", "v2"])
def test_the_interfaces_work_under_each_own_name(world, prey, chromium, host, root):
    host_url = world.stack.ui_url.replace("127.0.0.1", host)
    context = chromium.new_context(base_url=host_url)
    context.add_cookies([{"name": "prefect_ui_version", "value": "v2" if root else "v1", "url": host_url}])
    asked = []
    context.on("response", lambda answer: asked.append((answer.url, answer.status)))
    page = context.new_page()
    page.goto(f"{root}/blocks")
    page.get_by_text("prey").first.wait_for(timeout=120_000)
    calls = [(url, status) for url, status in asked if "/api/" in url and "amplitude" not in url]
    assert calls
    assert {urlsplit(url).netloc for url, _ in calls} == {urlsplit(host_url).netloc}
    assert {status for _, status in calls} <= {200, 201, 422}  # V2 asks for tasks of artifacts without one
    context.close()


@pytest.mark.parametrize(("version", "root"), [("v1", ""), ("v2", "/v2")])
def test_both_interfaces_ask_for_the_password(tmp_path, version, root):
    with prefect_server(tmp_path, "--password", PREFECT_ASSAY_SERVER_PASSWORD="correct horse") as url:
        local_url = url.replace("127.0.0.1", "localhost")
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS, NAMES])
            context = browser.new_context(base_url=local_url)
            context.set_default_timeout(120_000)
            context.add_cookies([{"name": "prefect_ui_version", "value": version, "url": local_url}])
            page = context.new_page()
            page.goto(f"{root}/blocks")
            field = page.locator("input[type=password]")
            field.wait_for()
            assert "/login" in page.url
            field.fill("admin:correct horse")
            with page.expect_response(lambda answer: "/api/" in answer.url and answer.status == 200):
                field.press("Enter")
            page.wait_for_url(lambda address: "/login" not in address)
            browser.close()
