# SPDX-License-Identifier: Apache-2.0
"""nghttpx in front of an S3 server: TLS and HTTP/2. `with H2Proxy(server, certificates, dir) as p:
p: p.endpoint, p.log()`. server: "http://host:port"; certificates: a directory with tls.key and
tls.crt for s3.localhost."""
import collections
import os
import shutil
import signal
import socket
import subprocess
import urllib.parse

import mounts

NGHTTPX = shutil.which("nghttpx") or shutil.which("nghttpx", path="/usr/sbin")

Entry = collections.namedtuple("Entry", "port protocol status request")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


class H2Proxy:
    def __init__(self, server, certificates, directory, *options):
        self.server = urllib.parse.urlsplit(server).netloc.replace(":", ",")
        self.certificates, self.options = os.fspath(certificates), options
        self.log_path = os.path.join(directory, "h2proxy.log")
        self.error_path = os.path.join(directory, "h2proxy.errors")
        self.port = free_port()

    @property
    def endpoint(self):
        return f"https://s3.localhost:{self.port}"

    def __enter__(self):
        command = [NGHTTPX, f"--frontend=127.0.0.1,{self.port}", f"--backend={self.server}",
                   "--workers=1", "--conf=/dev/null", "--no-ocsp",
                   f"--accesslog-file={self.log_path}", f"--errorlog-file={self.error_path}",
                   "--accesslog-format=$remote_port\t$alpn\t$status\t$request", *self.options,
                   os.path.join(self.certificates, "tls.key"),
                   os.path.join(self.certificates, "tls.crt")]
        # In a separate process group, because nghttpx starts a worker process.
        self.process = subprocess.Popen(command, start_new_session=True)
        if not mounts.wait_for(lambda: self.process.poll() is not None or listens(self.port), 10):
            self.__exit__()
            raise AssertionError("nghttpx does not listen")
        assert self.process.poll() is None, self.errors()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
        self.process.wait(10)

    def signal(self, number):
        os.killpg(self.process.pid, number)

    def errors(self):
        with open(self.error_path, encoding="utf-8") as f:
            return f.read()

    def log(self):
        """An Entry for each request that was answered."""
        with open(self.log_path, encoding="utf-8") as f:
            return [Entry(*line.rstrip("\n").split("\t")) for line in f if line.count("\t") == 3]
