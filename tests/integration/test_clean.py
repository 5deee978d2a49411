# SPDX-License-Identifier: Apache-2.0
"""`hsimage clean` deletes what no domain has, and nothing else. tests/unit/clean stops it and lets
other programs come between at each of its requests; here is what a person sees of it, in a
directory and in S3."""
import os
import pathlib
import re
import shutil
import urllib.parse

import pytest

from mounts import HSIMAGE, TREE, run
from s3liar import DATE, Answer
from s3service import Service

FILE = pathlib.Path(TREE) / "tests/data/import.h5"
DAY = 86400
KEYS = 30       # of the storage of FILE


def hsimage(*args, status=0, env=None):
    done = run(HSIMAGE, *args, timeout=110, env=env)
    assert done.returncode == status, done
    return done


def files(bucket):
    return {str(p.relative_to(bucket)): p.read_bytes() for p in bucket.rglob("*") if p.is_file()}


def make(bucket):
    """Two domains, and the storage of a third one that has lost its name. Returns the prefix of
    that storage."""
    hsimage("import", FILE, bucket / "home/a.h5")
    hsimage("import", FILE, bucket / "b.h5")
    before = {p.name for p in (bucket / "db").iterdir()}
    hsimage("import", FILE, bucket / "gone.h5")
    shutil.rmtree(bucket / "gone.h5")
    return f"db/{({p.name for p in (bucket / 'db').iterdir()} - before).pop()}/"


def grow_old(bucket, prefix, days):
    now = (bucket / prefix).stat().st_mtime
    for path in (bucket / prefix).rglob("*"):
        os.utime(path, (now - days * DAY,) * 2)


def test_directory(bucket):
    prefix = make(bucket)
    whole = files(bucket)
    kept = {k: v for k, v in whole.items() if not k.startswith(prefix)}
    assert "it is younger" in hsimage("clean", "--yes", bucket).stdout
    assert files(bucket) == whole
    grow_old(bucket, prefix, 3)
    assert f"{prefix}: no name leads to this storage" in hsimage("check", bucket).stdout
    found = hsimage("clean", "--dry-run", bucket).stdout.splitlines()
    assert found[0].startswith(f"storage {prefix}: {KEYS} objects, ")
    assert found[-1].startswith("would be deleted: storages 1, uploads 0, temporary files 0, "
                                f"with {KEYS} objects")
    assert "it is younger" in hsimage("clean", "--yes", "--age", "4d", bucket).stdout
    assert "storages 0" in hsimage("clean", "--yes", "--prefix", "db/x", bucket).stdout
    assert "--yes" in hsimage("clean", bucket, status=1).stderr
    assert files(bucket) == whole
    done = hsimage("clean", "--yes", "-b", bucket).stdout
    assert f"deleted: storages 1, uploads 0, temporary files 0, with {KEYS} objects" in done
    assert files(bucket) == kept
    assert not (bucket / prefix).exists()
    assert "notes" not in hsimage("check", bucket).stdout


def test_temporary_files(bucket):
    make(bucket)
    temps = [bucket / "home/.hsmount-tmp-old", bucket / "home/.hsmount-tmp-new"]
    for path in temps:
        path.write_bytes(b"12")
    os.utime(temps[0], (temps[0].stat().st_mtime - 2 * DAY,) * 2)
    done = hsimage("clean", "--yes", bucket).stdout
    assert "temporary file home/.hsmount-tmp-old: 1 object, 2 bytes" in done
    assert "deleted: storages 0, uploads 0, temporary files 1" in done
    assert [p.exists() for p in temps] == [False, True]


@pytest.mark.parametrize("damage", ["document", "listing"])
def test_nothing_is_deleted_if_a_name_cannot_be_read(bucket, damage):
    grow_old(bucket, make(bucket), 3)
    if damage == "document":
        (bucket / "b.h5/.domain.json").write_text("{")
    else:
        (bucket / "zzz").symlink_to("nothing")
    whole = files(bucket)
    for option in "--yes", "--dry-run":
        done = hsimage("clean", option, bucket, status=1)
        assert "nothing is deleted, because not all names can be read" in done.stderr
        assert done.stdout == ""
    assert files(bucket) == whole


@pytest.mark.parametrize("place", ["d" * 200 + "/" + "/".join("e" * 200 for _ in range(5)),
                                   ".hsmount-tmp-mine"])
def test_nothing_is_deleted_if_a_name_is_no_key(bucket, place):
    """The service shows such a domain in a directory; this program does not."""
    make(bucket)
    for path in (bucket / "db").rglob("*"):
        os.utime(path, (1e9, 1e9))
    (bucket / place.split("/")[0]).mkdir()
    at = os.open(bucket / place.split("/")[0], os.O_PATH)
    for name in place.split("/")[1:]:
        os.mkdir(name, dir_fd=at)
        at, above = os.open(name, os.O_PATH, dir_fd=at), at
        os.close(above)
    os.rename(bucket / "b.h5", "b.h5", dst_dir_fd=at)
    os.close(at)
    count = len(list((bucket / "db").rglob("*")))
    done = hsimage("clean", "--yes", bucket, status=1)
    assert "nothing is deleted, because not all names can be read" in done.stderr
    assert f"a listing leaves out the key {place[:60]}" in done.stderr
    assert len(list((bucket / "db").rglob("*"))) == count


def test_domains_among_the_storages(bucket):
    """The service permits the names /db/x.h5 and /db."""
    make(bucket)
    for path in (bucket / "db").rglob("*"):
        os.utime(path, (1e9, 1e9))
    (bucket / "db/home").mkdir()
    shutil.move(bucket / "b.h5", bucket / "db/home/b.h5")
    shutil.move(bucket / "home/a.h5/.domain.json", bucket / "db/.domain.json")
    (bucket / "db/home/store.zarr").mkdir()
    (bucket / "db/home/store.zarr/.zgroup").write_text('{"zarr_format": 2}')
    kept = files(bucket)
    assert f"deleted: storages 1, uploads 0, temporary files 0, with {KEYS} objects" \
        in hsimage("clean", "--yes", bucket).stdout
    gone = {k: v for k, v in kept.items() if k not in files(bucket)}
    assert len(gone) == KEYS and len({k.split("/")[1] for k in gone}) == 1
    assert "storages 0" in hsimage("clean", "--yes", bucket).stdout
    (bucket / "db/home/b.h5/.domain.json").write_text("{")
    assert "nothing is deleted" in hsimage("clean", "--yes", bucket, status=1).stderr


def test_only_a_whole_bucket(bucket):
    make(bucket)
    done = hsimage("clean", "--yes", bucket / "home", status=1)
    assert "name the whole bucket" in done.stderr
    assert "at least an hour" in hsimage("clean", "--age", "59m", bucket, status=2).stderr


def test_a_name_in_another_folder(bucket):
    """Two names of one storage, as the service makes them."""
    grow_old(bucket, make(bucket), 3)
    other = bucket / "zz/y.h5"
    other.mkdir(parents=True)
    shutil.move(bucket / "b.h5/.domain.json", other / ".domain.json")
    for path in (bucket / "db").rglob("*"):
        os.utime(path, (1e9, 1e9))
    assert "storages 1" in hsimage("clean", "--yes", bucket).stdout
    assert "sound: /zz/y.h5" in hsimage("check", bucket).stdout


# ---- S3 ----

UPLOAD = "<Upload><Key>{}</Key><UploadId>{}</UploadId><Initiated>{}</Initiated></Upload>"
OLD, YOUNG = "2025-12-01T00:00:00.000Z", "2025-12-31T23:59:00.000Z"


class Uploads(Service):
    """The server's clock says 2026-01-01. The storage that is left is older, but for marks. The
    uploads are listed one on each page."""
    def __init__(self, root, left):
        super().__init__(root)
        self.left = left
        self.aborted = []
        self.uploads = [(f"{left}d/1-2-3/0", "id-1", OLD), (f"{left}d/1-2-3/1", "id-2", YOUNG),
                        ("plain file", "id-3", OLD)]

    def page(self, request):
        after = request.query.get("upload-id-marker", "")
        rest = [u for u in self.uploads if u[1] > after]
        items = "".join(UPLOAD.format(urllib.parse.quote(k), i, t) for k, i, t in rest[:1])
        more = f"<NextKeyMarker>{urllib.parse.quote(rest[0][0])}</NextKeyMarker>" \
               f"<NextUploadIdMarker>{rest[0][1]}</NextUploadIdMarker>" if rest[1:] else ""
        cut = f"<IsTruncated>{'true' if rest[1:] else 'false'}</IsTruncated>"
        body = "<ListMultipartUploadsResult><EncodingType>url</EncodingType>" \
               f"{items}{more}{cut}</ListMultipartUploadsResult>"
        return Answer(200, {"Content-Type": "application/xml", "Date": DATE}, body.encode())

    def honest(self, request):
        if "uploads" in request.query:
            return self.page(request)
        if request.method == "DELETE" and "uploadId" in request.query:
            self.aborted.append((request.key, request.query["uploadId"]))
            return Answer(204, {})
        answer = super().honest(request)
        if request.is_list:
            old = re.compile(f"(<Key>{self.left}(?!.hsmount).*?<LastModified>)[^<]*".encode())
            answer.body = old.sub(rb"\g<1>" + OLD.encode(), answer.body)
        return answer


def test_s3(tmp_path):
    root = tmp_path / "bucket"
    root.mkdir()
    prefix = make(root)
    kept = {k: v for k, v in files(root).items() if not k.startswith(prefix)}
    with Uploads(root, prefix) as service:
        env = service.environment()
        found = hsimage("check", "s3://bucket", env=env).stdout
        assert found.count("an upload in parts that was begun at") == 3
        n = len(service.requests)
        done = hsimage("clean", "--yes", "s3://bucket", env=env).stdout
        assert f"deleted: storages 1, uploads 1, temporary files 0, with {KEYS + 1} objects" in done
        assert f"upload plain file: begun at {OLD[:10]}" in done
        assert "other programs put such objects, too" in done
        documents = [r for r in service.requests[n:]
                     if r.method == "GET" and r.key.endswith("/.domain.json")]
        assert len(documents) == 2      # the second reading lists only
        assert service.aborted == [(f"{prefix}d/1-2-3/0", "id-1")]
    assert files(root) == kept


def test_s3_without_a_listing_of_uploads(tmp_path):
    root = tmp_path / "bucket"
    root.mkdir()
    prefix = make(root)
    with Uploads(root, prefix) as service:
        service.page = lambda request: Answer(501, {})
        done = hsimage("clean", "--yes", "s3://bucket", env=service.environment())
        assert "storages 1, uploads 0" in done.stdout
        assert "the service does not list uploads" in done.stderr
    assert not (root / prefix).exists() or files(root / prefix) == {}
