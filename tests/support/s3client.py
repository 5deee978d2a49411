# SPDX-License-Identifier: Apache-2.0
"""A small S3 client over http.client. The tests use it to fill buckets, and its implementation of
SigV4 to check signatures."""
import concurrent.futures
import datetime
import hashlib
import hmac
import http.client
import pathlib
import socket
import urllib.parse
import uuid

UPLOADERS = 4


def quote(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-_.~")


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def authorization(method, path, query, headers, payload, access_key, secret_key, region, service):
    """The Authorization header for `headers` (names in lower case; x-amz-date is required)."""
    date = headers["x-amz-date"]
    names = ";".join(sorted(headers))
    lines = "".join(f"{k}:{' '.join(headers[k].split())}\n" for k in sorted(headers))
    pairs = sorted((quote(k), quote(v)) for k, v in query.items())
    canonical = "\n".join([method, path, "&".join(f"{k}={v}" for k, v in pairs), lines, names,
                           payload])
    scope = f"{date[:8]}/{region}/{service}/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    return (f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={names}, "
            f"Signature={sign(derived_key(secret_key, scope), text).hex()}")


def derived_key(secret_key, scope):
    key = ("AWS4" + secret_key).encode()
    for part in scope.split("/"):
        key = sign(key, part)
    return key


def presigned(host, path, access_key, secret_key, region="us-east-1", seconds=3600, method="GET"):
    """Path and query of a request that needs no headers but Host."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    path = quote(path, "/")
    query = "&".join(f"{k}={quote(v)}" for k, v in (
        ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"), ("X-Amz-Credential", f"{access_key}/{scope}"),
        ("X-Amz-Date", now), ("X-Amz-Expires", str(seconds)), ("X-Amz-SignedHeaders", "host")))
    canonical = "\n".join([method, path, query, f"host:{host}\n", "host", "UNSIGNED-PAYLOAD"])
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    return f"{path}?{query}&X-Amz-Signature={sign(derived_key(secret_key, scope), text).hex()}"


class S3Error(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body[:300]!r}")
        self.status = status


class Client:
    """One connection; not for several threads."""

    def __init__(self, endpoint, access_key, secret_key, region="us-east-1"):
        self.host = urllib.parse.urlsplit(endpoint).netloc
        self.keys = (access_key, secret_key, region, "s3")
        self.connection = http.client.HTTPConnection(self.host, timeout=30)

    def request(self, method, path, query=None, headers=None, body=b""):
        query = query or {}
        path = quote(path, "/")
        payload = hashlib.sha256(body).hexdigest()
        now = datetime.datetime.now(datetime.timezone.utc)
        signed = {k.lower(): v for k, v in (headers or {}).items()}
        signed.update({"host": self.host, "x-amz-content-sha256": payload,
                       "x-amz-date": now.strftime("%Y%m%dT%H%M%SZ")})
        sent = dict(signed, authorization=authorization(method, path, query, signed, payload,
                                                        *self.keys))
        url = path
        if query:
            url += "?" + "&".join(f"{quote(k)}={quote(v)}" for k, v in query.items())
        answer, data = self.send(method, url, body, sent)
        if answer.status >= 300:
            raise S3Error(answer.status, data)
        return answer, data

    def send(self, method, url, body, headers):
        try:
            self.connection.request(method, url, body=body, headers=headers)
            # The gateway uses Nagle's algorithm: otherwise each answer takes 40 ms.
            self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            answer = self.connection.getresponse()
            return answer, answer.read()
        except (http.client.RemoteDisconnected, BrokenPipeError):
            # The server has closed the idle connection.
            self.connection.close()
            return self.send(method, url, body, headers)

    def make_bucket(self, bucket):
        self.request("PUT", f"/{bucket}")

    def new_bucket(self, purpose):
        """Makes a bucket with a name that nobody else has, and returns its name."""
        name = f"{purpose}-{uuid.uuid4().hex}"
        self.make_bucket(name)
        return name

    def put(self, bucket, key, body):
        self.request("PUT", f"/{bucket}/{key}", body=body)

    def get(self, bucket, key):
        return self.request("GET", f"/{bucket}/{key}")[1]

    def delete(self, bucket, key):
        self.request("DELETE", f"/{bucket}/{key}")

    def upload(self, bucket, root, prefix="", names="*"):
        """Uploads every file below a directory, over several connections."""
        root = pathlib.Path(root)
        paths = [p for p in root.rglob(names) if p.is_file()]

        def some(first):
            client = Client(f"http://{self.host}", *self.keys[:3])
            for path in paths[first::UPLOADERS]:
                client.put(bucket, prefix + str(path.relative_to(root)), path.read_bytes())

        with concurrent.futures.ThreadPoolExecutor(UPLOADERS) as pool:
            list(pool.map(some, range(UPLOADERS)))
