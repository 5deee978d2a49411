# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the integration tests. Every test drives the real programs; HSMOUNT_BUILD names the
build directory (default: build/ of the tree)."""
import os
import shutil
import signal
import sys
import tempfile

# NumPy otherwise starts a thread for each processor in every program, which nothing here needs. It
# takes a third of the time to import h5py.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                "support"))

import collection  # noqa: E402
import imports  # noqa: E402
import mounts  # noqa: E402
import sampling  # noqa: E402
from gateway import (client, contract_bucket, environment, gateway,  # noqa: E402,F401
                     sample_bucket, stop_gateway, uploaded)


def pytest_configure(config):
    # A shell that runs the tests in the background has SIGINT ignored, and every program that is
    # started here would inherit that. The workers of xdist inherit what is set here, and may call
    # this function in a thread that cannot set it.
    if not hasattr(config, "workerinput"):
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for marker in sampling.MARKERS:
        config.addinivalue_line("markers", marker)
    # The workers of xdist use the files of the process that started them.
    given = getattr(config, "workerinput", {})
    config.unpacked = given.get("unpacked")
    config.main_pid = given.get("main_pid", os.getpid())
    if not config.unpacked:
        config.unpacked = tempfile.mkdtemp(prefix="hsmount-test-")
        collection.unpack_all(config.unpacked)
    config.collections = collection.all_in(config.unpacked)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput.update(unpacked=node.config.unpacked, main_pid=os.getpid())


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        stop_gateway(config)
        shutil.rmtree(config.unpacked, ignore_errors=True)


def pytest_report_header(config):
    return [f"programs: {mounts.BUILD}", f"sample: {sampling.words()}"] + \
        [f"data: {c}" for c in config.collections]


@pytest.hookimpl(trylast=True)      # after -k and -m
def pytest_collection_modifyitems(config, items):
    chosen = sampling.choose(items)
    left_out = set(items) - set(chosen)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = chosen


def pytest_generate_tests(metafunc):
    """A test with the parameter `entry` runs once for each domain of each collection."""
    if "entry" in metafunc.fixturenames:
        entries = [e for c in metafunc.config.collections for e in c.entries()]
        metafunc.parametrize("entry", entries, ids=str)


@pytest.fixture(scope="session", autouse=True)
def programs():
    for program in (mounts.HSMOUNT, mounts.HSIMAGE):
        assert os.access(program, os.X_OK), f"{program} is not built"


@pytest.fixture(scope="module")
def mounted(request, tmp_path_factory):
    """Mounts of the collections by name. Each is made at its first use and kept for the module."""
    running = {}

    def mounted_collection(which):
        if which.name not in running:
            directory = tmp_path_factory.mktemp(which.name)
            running[which.name] = mounts.Mount(which.bucket.root, directory)
            running[which.name].start()
        assert running[which.name].alive(), running[which.name].log()
        return running[which.name]

    yield mounted_collection
    for mount in running.values():
        code = mount.stop()
        assert code == 0, f"hsmount exits {code}:\n{mount.log()}"
        assert "Sanitizer" not in mount.log(), mount.log()


@pytest.fixture
def mount(tmp_path):
    """Mounts a bucket for one test: mount(bucket, option …, env=…)."""
    running = []

    def start(bucket, *options, env=None):
        directory = tmp_path / f"mount{len(running)}"
        directory.mkdir()
        running.append(mounts.Mount(bucket, directory, *options, env=env))
        running[-1].start()
        return running[-1]

    yield start
    for made in running:
        if made.process is None:
            continue
        code = made.stop()
        assert code == 0, f"hsmount exits {code}:\n{made.log()}"
        assert "Sanitizer" not in made.log(), made.log()


@pytest.fixture
def bucket(tmp_path):
    """An empty bucket, unless the module has one of its own."""
    return imports.make_bucket(tmp_path / "bucket")


@pytest.fixture(scope="session")
def sample(pytestconfig):
    """The collection that is part of the project."""
    return pytestconfig.collections[0]


@pytest.fixture(scope="session")
def foreign(tmp_path_factory):
    """The directory with the files of imports.foreign_names()."""
    directory = tmp_path_factory.mktemp("foreign")
    mounts.run("tar", "-xJf", f"{imports.FOREIGN}.tar.xz", "-C", directory, check=True)
    return directory
