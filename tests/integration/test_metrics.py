# SPDX-License-Identifier: Apache-2.0
"""The metrics of a mount, over HTTP on loopback, in both formats. Prometheus' client library checks
the text. The log of a proxy, which records every request, checks the numbers."""
import collections
import json
import os
import shutil
import signal
import socket
import time
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

import faultproxy
import mounts
import sampling


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(port, path, host="127.0.0.1"):
    with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=10) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def stats(port):
    kind, text = ask(port, "/stats")
    assert kind == "application/json"
    return json.loads(text)


def samples(port):
    """{(name, labels …): value}, as Prometheus parses them."""
    kind, text = ask(port, "/metrics")
    assert kind == "text/plain; version=0.0.4; charset=utf-8"
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type != "unknown", family.name
        for s in family.samples:
            key = (s.name, *sorted(s.labels.items()))
            assert s.name.startswith("hsmount_") and key not in found
            found[key] = s.value
    return found


def read_some(mount, sample, n=5):
    """Reads whole files through the mount; returns their bytes."""
    done = 0
    for entry in sample.entries()[:n]:
        with open(mount.file(entry.path), "rb") as f:
            done += len(f.read())
    return done


def test_both_formats(sample, mount):
    """No reads happen between the two reports, so all counters are equal."""
    port = free_port()
    m = mount(sample.bucket.root, f"metrics_listen={port}", "debug_count")
    done = read_some(m, sample)
    counts, prometheus, js = m.counts(), samples(port), stats(port)
    assert js["read"]["bytes"] == prometheus[("hsmount_read_bytes_total",)] >= done
    assert js["read"]["fetched_bytes"] == counts["bytes_in"] > 0
    for call, counter in ("get", "gets"), ("head", "heads"), ("list", "lists"):
        assert sum(js["store"]["calls"][call].values()) == counts[counter]
        assert js["store"]["call_seconds"][call]["count"] == counts[counter]
    assert js["mount"]["info"]["bucket"] == str(sample.bucket.root)
    for name in ("hits", "misses", "loads"):
        assert js["cache"][name] == counts[f"cache_{name}"]
    assert js["cache"]["wait_seconds"]["count"] >= js["cache"]["misses"]
    domains = {d["domain"]: d for d in js["domain"]}
    for entry in sample.entries()[:5]:
        mine = domains.pop("/" + entry.path.removesuffix(".h5"), None) or domains[f"/{entry.path}"]
        assert mine["opens"] == 1 and mine["reads"] >= 1 and mine["open"] == 0
        size = os.path.getsize(m.file(entry.path))
        # The kernel reads a page again if it evicted it before the program read it.
        assert size <= mine["read_bytes"] <= size + (1 << 20)


def test_what_is_open(sample, mount):
    port = free_port()
    m = mount(sample.bucket.root, f"metrics_listen=[::1]:{port}")
    with open(m.file(sample.entries()[0].path), "rb"):
        [domain] = json.loads(ask(port, "/stats", "[::1]")[1])["domain"]
        assert domain["open"] == 1
    assert mounts.wait_for(
        lambda: json.loads(ask(port, "/stats", "[::1]")[1])["domain"][0]["open"] == 0)


@pytest.mark.parametrize("path, code", [("/", 404), ("/metrics/x", 404), ("/.hsmount/stats", 404)])
def test_other_paths(sample, mount, path, code):
    port = free_port()
    mount(sample.bucket.root, f"metrics_listen={port}")
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(port, path)
    assert refused.value.code == code


def test_in_the_background(sample, tmp_path):
    """The daemon serves metrics, and stops when it is unmounted."""
    port, path = free_port(), tmp_path / "mnt"
    path.mkdir()
    mounts.run(mounts.HSMOUNT, sample.bucket.root, path, "-o", f"metrics_listen={port}", check=True)
    try:
        assert stats(port)["mount"]["uptime_seconds"] > 0
        assert samples(port)[("hsmount_read_calls_total",)] == 0
    finally:
        mounts.unmount(os.fspath(path))
    assert mounts.wait_for(lambda: not listens(port))


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("address, words", [
    ("0.0.0.0:9464", "must be a loopback address"),
    ("[::]:9464", "must be a loopback address"),
    ("10.0.0.1:9464", "must be a loopback address"),
    ("localhost:9464", "localhost is not an IP address"),
    ("127.0.0.1", "must be [ADDRESS:]PORT"),
    ("0", "must be [ADDRESS:]PORT"),
])
def test_refused_addresses(sample, tmp_path, address, words):
    done = mounts.run(mounts.HSMOUNT, sample.bucket.root, tmp_path, "-f", "-o",
                      f"metrics_listen={address}")
    assert done.returncode == 2
    assert words in done.stderr


def test_port_is_taken(sample, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = mounts.run(mounts.HSMOUNT, sample.bucket.root, tmp_path, "-o",
                          f"metrics_listen={port}")
    assert done.returncode == 1
    assert done.stderr == (f"hsmount: error: metrics_listen: port {port}: "
                           "Address already in use\n")
    assert not mounts.is_mounted(tmp_path)


def test_idle_connections_do_not_delay_a_scrape(sample, tmp_path):
    """Nor do they delay the end of the daemon."""
    port = free_port()
    idle = []
    try:
        with mounts.Mount(sample.bucket.root, tmp_path, f"metrics_listen={port}"):
            for _ in range(40):
                idle.append(socket.create_connection(("127.0.0.1", port)))
            started = time.monotonic()
            assert stats(port)
            idle.append(socket.create_connection(("127.0.0.1", port)))
            mounts.unmount(os.path.join(tmp_path, "mnt"))
            assert mounts.wait_for(lambda: not listens(port))
            assert time.monotonic() - started < 10, "one at a time took 34 s"
    finally:
        for s in idle:
            s.close()


def test_usr1_moves_the_log_level(sample, mount):
    m = mount(sample.bucket.root, "log_level=warning")
    for level in ("info", "debug", "error", "warning"):
        m.process.send_signal(signal.SIGUSR1)
        line = f"{level}: the log level is {level} now"
        assert mounts.wait_for(lambda: line in m.log()), m.log()
    assert m.alive()


def metered(request):
    """The method under which the daemon counts a request in the proxy's log."""
    is_bucket = "/" not in request.target.split("?")[0].strip("/")
    return "LIST" if request.method == "GET" and is_bucket else request.method


@pytest.mark.timeout(300)
@pytest.mark.skipif(not shutil.which("radosgw"), reason="radosgw is not installed")
def test_every_attempt_is_counted(environment, gateway, sample, sample_bucket, tmp_path):
    """The metrics agree with the proxy's log: requests by method, failed requests, and one retry
    for each failed request."""
    faults = [{"what": "status", "value": 503, "every": 7},
              {"what": "status", "value": 500, "every": 11},
              {"what": "cut", "every": 13}]
    port = free_port()
    with faultproxy.Proxy(gateway["endpoint"], faults) as proxy:
        env = dict(environment, AWS_ENDPOINT_URL=proxy.endpoint)
        with mounts.Mount(f"s3://{sample_bucket}", tmp_path, f"metrics_listen={port}",
                          env=env) as m:
            read_some(m, sample, 20 if sampling.EVERYTHING else 10)
            assert mounts.wait_for(lambda: stats(port)["cache"]["loading"] == 0)
            js, seen, prometheus = stats(port)["http"], list(proxy.requests), samples(port)
    came = collections.Counter(metered(r) for r in seen)
    failed = collections.Counter((metered(r), r.fault) for r in seen if r.fault)
    assert {method: sum(by.values()) for method, by in js["requests"].items()} == came
    for method, by in js["requests"].items():
        assert by.get("503", 0) + by.get("500", 0) == failed[method, "status"]
        assert by.get("none", 0) == failed[method, "cut"]
        assert js["request_seconds"][method]["count"] == came[method]
        for status, n in by.items():
            assert prometheus[("hsmount_http_requests_total", ("method", method),
                               ("status", status))] == n
    assert failed["GET", "status"] > 10 and failed["GET", "cut"] > 1
    assert js["retries"] == sum(failed.values())
    assert 0 < js["connections_opened"] == proxy.connections
