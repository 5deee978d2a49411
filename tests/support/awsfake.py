# SPDX-License-Identifier: Apache-2.0
"""The services that give AWS's tools their credentials, on one port of loopback: instance metadata
(version 2 only), the container endpoint, a URL for a credential_process, and the part of STS that
creates sessions of a role. The credentials are the keys of a real S3 server, or a session of the
STS of that server.

    with Services(access_key, secret_key) as aws:
        aws.lifetime, aws.broken = 5, True      # for the following requests

`served` counts the credentials that were sent; `secrets` has all their secrets."""
import datetime
import hashlib
import http.server
import json
import re
import threading
import urllib.parse

import s3client

ROLES = "/latest/meta-data/iam/security-credentials/"
CONTAINER = "/container/credentials"
PROCESS = "/process"        # for a credential_process
ROLE = "arn:aws:iam:::role/reader"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def give(self):
        aws = self.server.aws
        if aws.broken:
            return self.answer(500, "not now")
        aws.served += 1
        return self.answer(200, json.dumps(aws.keys()))

    def do_PUT(self):
        ttl = self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        if self.path != "/latest/api/token" or not ttl:
            return self.answer(400, "")
        self.server.aws.session += 1
        return self.answer(200, f"session-{self.server.aws.session}")

    def do_POST(self):
        aws = self.server.aws
        body = self.rfile.read(int(self.headers["Content-Length"]))
        form = dict(urllib.parse.parse_qsl(body.decode()))
        assume = {"AssumeRole": self.is_signed, "AssumeRoleWithWebIdentity": self.has_proof}
        check = assume.get(form.get("Action"))
        if not check or self.path != "/" or form["Version"] != "2011-06-15" or \
                form["RoleArn"] != ROLE:
            return self.answer(400, "")
        wrong = check(body, form)
        if wrong:
            return self.answer(400, f"<ErrorResponse><Error><Code>{wrong}</Code><Message>no"
                                    "</Message></Error></ErrorResponse>")
        if aws.broken:
            return self.answer(500, "not now")
        aws.served += 1
        return self.answer(200, aws.session_of(form["RoleArn"], form["Action"]))

    def is_signed(self, body, _):
        """Returns the error of a request for a role, or None if the request is correct."""
        aws, header = self.server.aws, self.headers["Authorization"] or ""
        names = re.search("SignedHeaders=([^,]*)", header)
        signed = {name: self.headers[name] for name in (names[1].split(";") if names else [])}
        if not {"host", "x-amz-date"} <= signed.keys():
            return "MissingAuthenticationToken"
        expected = s3client.authorization("POST", "/", {}, signed, hashlib.sha256(body).hexdigest(),
                                        aws.access_key, aws.secret_key, "us-east-1", "sts")
        return None if header == expected else "SignatureDoesNotMatch"

    def has_proof(self, _, form):
        """The same for a request with a web identity, which is not signed."""
        if self.headers["Authorization"] or form["RoleSessionName"] != "a-pod":
            return "ValidationError"
        return None if form["WebIdentityToken"] == self.server.aws.web_token else \
            "InvalidIdentityToken"

    def do_GET(self):
        aws = self.server.aws
        if self.path == PROCESS:
            return self.give()
        if self.path == CONTAINER:
            if self.headers["Authorization"] != aws.token:
                return self.answer(401, "")
            return self.give()
        if self.headers["X-aws-ec2-metadata-token"] != f"session-{aws.session}":
            return self.answer(401, "")
        if self.path == ROLES:
            return self.answer(200, "the-role")
        if self.path == ROLES + "the-role":
            return self.give()
        return self.answer(404, "")


class Services:
    def __init__(self, access_key, secret_key):
        self.access_key, self.secret_key = access_key, secret_key
        self.lifetime, self.broken, self.served, self.session = 3600, False, 0, 0
        self.lifetimes = []         # of the next credentials; the others have `lifetime`
        self.token = "proof of who we are"
        self.sts, self.web_token, self.secrets = None, "header.payload.signature-1", []

    def end(self):
        end = datetime.datetime.now(datetime.timezone.utc)
        lifetime = self.lifetimes.pop(0) if self.lifetimes else self.lifetime
        end += datetime.timedelta(seconds=lifetime)
        return end.strftime("%Y-%m-%dT%H:%M:%SZ")

    def session_of(self, role, action="AssumeRole"):
        """A real session of the gateway, which lasts longer than the answer says."""
        client = s3client.Client(self.sts, self.access_key, self.secret_key)
        client.keys = (*client.keys[:3], "sts")
        form = {"Action": "AssumeRole", "Version": "2011-06-15", "RoleArn": role,
                "RoleSessionName": "a-pod", "DurationSeconds": "900"}
        _, body = client.request("POST", "/", body=urllib.parse.urlencode(form).encode(), headers={
            "Content-Type": "application/x-www-form-urlencoded"})
        client.connection.close()
        text = body.decode().replace("AssumeRole", action)
        for name in ("SecretAccessKey", "SessionToken"):
            self.secrets += re.findall(f"<{name}>(.+)</{name}>", text)
        return re.sub("<Expiration>.*</Expiration>", f"<Expiration>{self.end()}</Expiration>", text)

    def keys(self):
        # The gateway's keys are permanent. Only a session of the gateway's STS has a token.
        return {"Code": "Success", "AccessKeyId": self.access_key,
                "SecretAccessKey": self.secret_key, "Token": "",
                "Expiration": self.end()}

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.aws = self
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join(10)
        self.server.server_close()
