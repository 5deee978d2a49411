# SPDX-License-Identifier: Apache-2.0
"""A small S3 server that serves a directory correctly, except for the answers that a test changes.

    with Liar(root) as liar:
        liar.lie = lambda request, honest: None         # no lie
        env = liar.environment()

The server calls `lie` with each request and its honest Answer, in the connection's thread. `lie`
returns None (the honest answer is sent), an Answer, bytes that are sent as they are before the
connection is closed, or a function that is called with the socket. Signatures are not checked.
With tls=DIRECTORY the server speaks TLS; its certificate is made in that directory."""
import dataclasses
import hashlib
import os
import socket
import ssl
import subprocess
import threading
import urllib.parse
from xml.sax.saxutils import escape

DATE = "Thu, 01 Jan 2026 00:00:00 GMT"
BUCKET = "bucket"


@dataclasses.dataclass
class Request:
    method: str
    key: str            # "" for the bucket
    query: dict
    headers: dict       # names in lower case
    body: bytes = b""

    @property
    def is_list(self):
        return not self.key and self.method == "GET"


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict
    body: bytes = b""

    def wire(self, head=False):
        lines = [f"HTTP/1.1 {self.status} Whatever"]
        headers = {"Content-Length": str(len(self.body)), **self.headers}
        lines += [f"{k}: {v}" for k, v in headers.items() if v is not None]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (b"" if head else self.body)


def etag_of(body):
    return hashlib.md5(body).hexdigest()


def error(status, code):
    return Answer(status, {"Content-Type": "application/xml"},
                  f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode())


def listing(items, truncated=False, token=None, encoded=True):
    """items: (key, etag, size), or a prefix."""
    quote = (lambda s: urllib.parse.quote(s, safe="/")) if encoded else escape
    out = ["<ListBucketResult>"]
    for item in items:
        if isinstance(item, str):
            out.append(f"<CommonPrefixes><Prefix>{quote(item)}</Prefix></CommonPrefixes>")
        else:
            key, etag, size = item
            out.append(f"<Contents><Key>{quote(key)}</Key><ETag>&quot;{etag}&quot;</ETag>"
                       f"<LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                       f"<Size>{size}</Size></Contents>")
    out.append(f"<IsTruncated>{'true' if truncated else 'false'}</IsTruncated>")
    if encoded:
        out.append("<EncodingType>url</EncodingType>")
    if token is not None:
        out.append(f"<NextContinuationToken>{escape(token)}</NextContinuationToken>")
    out.append("</ListBucketResult>")
    return Answer(200, {"Content-Type": "application/xml"}, "".join(out).encode())


def range_of(text, size):
    """The first and the last byte of a range; there is none if the first is behind the last."""
    first, _, last = text.removeprefix("bytes=").partition("-")
    if not first:           # the last bytes
        return size - min(int(last), size), size - 1
    return int(first), min(int(last or size), size - 1)


def make_certificate(directory, host):
    """Paths of a self-signed certificate and its key."""
    crt, key = os.path.join(directory, "liar.crt"), os.path.join(directory, "liar.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={host}",
                    "-addext", f"subjectAltName=IP:{host}", "-out", crt, "-keyout", key],
                   check=True, capture_output=True)
    return crt, key


class Liar:
    def __init__(self, root, host="127.0.0.1", tls=None):
        self.root, self.host, self.lie = os.fspath(root), host, None
        self.certificate = self.context = None
        if tls:
            self.certificate, key = make_certificate(os.fspath(tls), host)
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(self.certificate, key)
        self.requests, self.failures = [], []
        self.lock = threading.Lock()

    def __enter__(self):
        self.server = socket.create_server((self.host, 0), backlog=256)
        self.port = self.server.getsockname()[1]
        self.stopping, self.connections = False, set()
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        with self.lock:
            for connection in self.connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.thread.join(10)

    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        env.update(AWS_ACCESS_KEY_ID="access", AWS_SECRET_ACCESS_KEY="secret",
                   AWS_SESSION_TOKEN="token", AWS_CONFIG_FILE="/nonexistent",
                   AWS_SHARED_CREDENTIALS_FILE="/nonexistent", AWS_REGION="us-east-1",
                   AWS_ENDPOINT_URL=f"http{'s' if self.context else ''}://{self.host}:{self.port}")
        if self.certificate:
            env["AWS_CA_BUNDLE"] = self.certificate
        return env

    # ---- connections ----

    def accept(self):
        while not self.stopping:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            with self.lock:
                self.connections.add(connection)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context:
                connection = self.encrypt(connection)
            with connection.makefile("rb") as lines:
                while not self.stopping and self.one(connection, lines):
                    pass
        except OSError:
            pass
        except Exception as e:      # a defect of the test
            self.failures.append(repr(e))
        finally:
            with self.lock:
                self.connections.discard(connection)
            connection.close()

    def encrypt(self, plain):
        encrypted = self.context.wrap_socket(plain, server_side=True)
        with self.lock:
            self.connections.discard(plain)
            self.connections.add(encrypted)
        return encrypted

    def one(self, connection, lines):
        """Serves one request. Returns False at the end of the connection."""
        first = lines.readline().decode("latin-1").split()
        if len(first) != 3:
            return False
        headers = {}
        while (line := lines.readline().decode("latin-1").strip()):
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        path, _, query = first[1].partition("?")
        bucket, _, key = path[1:].partition("/")
        request = Request(first[0], urllib.parse.unquote(key, errors="surrogateescape"),
                          dict(urllib.parse.parse_qsl(query, keep_blank_values=True,
                                                      errors="surrogateescape")), headers)
        request.body = lines.read(int(headers.get("content-length", 0)))
        with self.lock:
            self.requests.append(request)
        honest = self.honest(request) if bucket == BUCKET else error(404, "NoSuchBucket")
        reply = self.lie(request, honest) if self.lie else None
        if reply is None:
            reply = honest
        if isinstance(reply, Answer):
            connection.sendall(reply.wire(request.method == "HEAD"))
            return True
        if callable(reply):
            reply(connection)
        else:
            connection.sendall(reply)
        return False

    # ---- honest answers ----

    def honest(self, request):
        return self.list(request) if not request.key else self.object(request)

    def body(self, key):
        try:
            with open(os.path.join(self.root, key), "rb") as f:
                return f.read()
        except OSError:
            return None

    def object(self, request):
        body = self.body(request.key)
        if body is None:
            return error(404, "NoSuchKey")
        headers = {"ETag": f'"{etag_of(body)}"', "Last-Modified": DATE,
                   "Content-Type": "binary/octet-stream"}
        if request.headers.get("if-match", headers["ETag"]) != headers["ETag"]:
            return error(412, "PreconditionFailed")
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Answer(304, {**headers, "Content-Length": None})
        if request.method == "HEAD":
            return Answer(200, headers, body)
        if "range" in request.headers:
            first, last = range_of(request.headers["range"], len(body))
            if first > last:
                return error(416, "InvalidRange")
            headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
            return Answer(206, headers, body[first:last + 1])
        return Answer(200, headers, body)

    def keys(self, prefix):
        """The keys in the folder of the prefix and below, sorted."""
        out = []
        for folder, _, names in os.walk(os.path.join(self.root, os.path.dirname(prefix))):
            out += [os.path.relpath(os.path.join(folder, n), self.root) for n in names]
        return sorted(out, key=os.fsencode)

    def list(self, request):
        prefix, after = request.query.get("prefix", ""), request.query.get("start-after", "")
        after = request.query.get("continuation-token", after)
        most, items, more = int(request.query.get("max-keys", 1000)), [], False
        for key in self.keys(prefix):
            if not key.startswith(prefix):
                continue
            rest = key[len(prefix):]
            folded = prefix + rest[:rest.find("/") + 1] if "delimiter" in request.query else ""
            item = folded if folded != prefix and folded else key
            if item <= after or (items and items[-1] == item):
                continue
            if len(items) == most:
                more = True
                break
            items.append(item)
        token = items[-1] if more else None
        # An object that is removed meanwhile is not listed.
        bodies = {i: None if i.endswith("/") else self.body(i) for i in items}
        return listing([i if i.endswith("/") else (i, etag_of(body), len(body))
                        for i, body in bodies.items() if i.endswith("/") or body is not None],
                       more, token)
