# SPDX-License-Identifier: Apache-2.0
"""The tools that people copy, pack, edit and convert files with do the same in a mount as on a
disk. Each call runs in a directory of a disk and in one of a mount. Then the exit status, the names
and the contents are compared: HDF5 files object by object and by h5diff, others byte by byte."""
import os
import shutil
import sys

import h5py
import numpy as np
import pytest

import imports
import mounts
import rwmounts
from mounts import HSIMAGE, run

PY = ("import sys, h5py, numpy as np\n"
      "def fill(f, n): f['n'] = np.arange(n); f.create_dataset('c', data=np.arange(9 * n), "
      "chunks=(n,), compression='gzip'); f['n'].attrs['unit'] = 'm'\n")


def python(program):
    return f'"$PY" -c "$HEAD""{program}"'


# Each call: its name and what a shell runs in an empty directory. $S has the sources.
CALLS = {
    "cp": "cp $S/a.h5 $S/c.nc $S/text.txt $S/data.bin .",
    "cp-over": "cp $S/a.h5 x.h5; cp $S/b.h5 x.h5; cp $S/text.txt t; cp $S/data.bin t",
    "cp-p": "cp -p $S/a.h5 a.h5; cp -p $S/data.bin .",
    "cp-r": "cp -r $S/tree .",
    "cp-r-twice": "cp -r $S/tree .; cp -r $S/tree .; cp -r tree/sub tree/again",
    "cp-a": "cp -a $S/tree .",
    "cp-n": "cp $S/a.h5 a.h5; cp -n $S/b.h5 a.h5; cp -n $S/b.h5 b.h5",
    "cp-u": "cp -u $S/a.h5 a.h5; cp -u $S/text.txt .; cp -u $S/text.txt .",
    "cp-back-and-forth": "cp $S/a.h5 a.h5; cp a.h5 b.h5; cp $S/text.txt t; cp t u; cp b.h5 a.h5",
    "cp-into-nothing": "cp $S/a.h5 none/a.h5",
    "cp-onto-a-directory": "mkdir d.h5; cp -T $S/a.h5 d.h5",
    "cp-backup": "cp $S/a.h5 a.h5; cp --backup=numbered $S/b.h5 a.h5",
    "cp-sparse": "cp --sparse=always $S/holes.h5 .; cp --sparse=always $S/zeros.bin .",
    "cp-no-extension": "cp $S/a.h5 run; cp $S/text.txt plain",
    "cp-kept-as-it-is": "cp $S/broken.h5 .; cp $S/virtual.h5 .",
    "cat": "cat $S/a.h5 > x.h5; cat $S/text.txt $S/text.txt > t; cat < x.h5 > y.h5",
    "append": "echo one > t; echo two >> t; cat $S/text.txt >> t; echo > empty; : > none",
    "tee": "tee x.h5 < $S/a.h5 > /dev/null; "
           "tee -a t < $S/text.txt > /dev/null; tee -a t < $S/text.txt | wc -l",
    "mv-into": "cp $S/a.h5 $W/m.h5; cp $S/text.txt $W/m; mv $W/m.h5 a.h5; mv $W/m t",
    "mv": "cp $S/a.h5 a.h5; mv a.h5 b.h5; cp $S/text.txt t; mv t u; mkdir d; mv b.h5 u d",
    "mv-over": "cp $S/a.h5 a.h5; cp $S/b.h5 b.h5; mv a.h5 b.h5; cp $S/text.txt t; mv t b.h5",
    "mv-n": "cp $S/a.h5 a.h5; cp $S/b.h5 b.h5; mv -n a.h5 b.h5; mv -n a.h5 c.h5",
    "mv-folder": "cp -r $S/tree .; mv tree other; mkdir d; mv other d",
    "mv-out": "cp $S/a.h5 a.h5; rm -f $W/o.h5; mv a.h5 $W/o.h5; cp $W/o.h5 back.h5",
    "rsync": "rsync $S/a.h5 $S/text.txt .; rsync $S/b.h5 a.h5",
    "rsync-a": "rsync -a $S/tree/ ./; rsync -a $S/tree .",
    "rsync-rt-twice": "rsync -rt $S/tree .; rsync -rt $S/tree .",
    "rsync-delete": "rsync -r $S/tree/ t; echo > t/more; rsync -r --delete $S/tree/sub/ t",
    "rsync-inplace": "cp $S/data.bin x; rsync --inplace $S/text.txt x; "
                     "rsync --inplace --no-whole-file $S/data.bin x; rsync --inplace $S/a.h5 .",
    "rsync-append": "head -c 1000 $S/data.bin > x; rsync --append $S/data.bin x",
    "tar": "tar xf $S/tree.tar; tar cf all.tar tree; tar tf all.tar | sort > list; rm all.tar",
    "tar-over": "tar xf $S/tree.tar; tar xf $S/tree.tar; tar xzf $S/tree.tgz --overwrite; "
                "tar xf $S/tree.tar -k",
    "zip": "unzip -q $S/tree.zip; unzip -qo $S/tree.zip; zip -qr all.zip tree; "
           "unzip -qt all.zip; rm all.zip",
    "install": "install $S/a.h5 a.h5; install -m 600 $S/b.h5 a.h5; install -D $S/text.txt p/q/t; "
               "install -d e/f; install -p $S/c.nc e",
    "sed": "cp $S/text.txt t; sed -i s/line/LINE/ t; sed -i.bak s/LINE/x/ t; sed -n 2p t > u",
    "perl": "cp $S/text.txt t; perl -pi -e s/line/LINE/ t",
    "ed": "cp $S/text.txt t; printf '2d\\n1i\\nnew\\n.\\nw\\nq\\n' | ed -s t",
    "vim": "cp $S/text.txt t; vim -u NONE -es -c '%s/line/word/' -c wq t; "
           "vim -u NONE -es -c 'set backupcopy=no backup' -c '%s/word/line 2/' -c wq t; "
           "vim -u NONE -es -c 'set backupcopy=yes' -c 'normal otext' -c wq new",
    # Emacs renames the old file and writes a new one.
    "emacs": "cp $S/text.txt t; mv t t~; cp $S/data.bin t; chmod 644 t; "
             "cp $S/text.txt '#t#'; rm '#t#'",
    "patch": "cp $S/text.txt t; sed s/line/LINE/ t > u; "
             "diff -u --label a --label b t u > d; patch -s t < d",
    "sort": "sort -r -o t $S/text.txt; sort -o t t; uniq t u; join t u > j; paste t u > p",
    "dd": "dd status=none if=$S/a.h5 of=x.h5 bs=512; "
          "dd status=none if=$S/data.bin of=y bs=1000 count=7; "
          "dd status=none if=$S/a.h5 of=z.h5 bs=1M conv=fsync",
    "dd-notrunc": "cp $S/data.bin x; dd status=none if=$S/text.txt of=x conv=notrunc; "
                  "dd status=none if=$S/text.txt of=x conv=notrunc bs=100 seek=33 count=2; "
                  "dd status=none if=$S/text.txt of=x bs=100 seek=5000 count=1 conv=notrunc",
    "dd-backwards": "for i in 4 2 0 3 1; do dd status=none if=$S/data.bin of=x bs=20K skip=$i "
                    "seek=$i count=1 conv=notrunc; done",
    "truncate": "cp $S/data.bin x; truncate -s 1000 x; truncate -s 100K x; truncate -s 5 new; "
                "cp $S/b.h5 b.h5; : > b.h5",
    "touch": "touch a b.h5; cp $S/a.h5 c.h5; touch c.h5; touch -d 2001-01-01 c.h5 a; touch -r a b",
    "fallocate": "fallocate -l 100K x; fallocate -p -o 4096 -l 4096 x; cp $S/data.bin y; "
                 "fallocate -p -o 8192 -l 10000 y; fallocate -z -o 100 -l 5000 y",
    "shred": "cp $S/data.bin x; shred -n 1 -z -u x; ls | wc -l",
    "mktemp": "d=$(mktemp -d ./XXXXXX); cp $S/a.h5 $d/a.h5; mv $d/a.h5 .; rmdir $d; "
              "t=$(mktemp ./XXXXXX); cp $S/text.txt $t; mv $t t",
    "head": "head -c 3000 $S/a.h5 > x.h5; head -c 100 $S/a.h5 > y; tail -c 3000 $S/a.h5 > z.h5; "
            "cp $S/a.h5 good.h5; head -c 3000 good.h5 | head -c 10 > w",
    "split": "cp $S/a.h5 a.h5; split -b 2000 $S/a.h5 part.; cat part.* > whole.h5; rm part.*",
    "gzip": "cp $S/a.h5 a.h5; cp $S/text.txt t; gzip -nk t; gzip -nc t > u.gz; "
            "gzip -nc $S/a.h5 > b.h5.gz; gunzip -k b.h5.gz; gunzip -f t.gz",
    "mkdir-rmdir": "mkdir -p a/b/c; mkdir a; mkdir -p a/b; rmdir a; rmdir a/b/c; mkdir d.h5; "
                   "rmdir d.h5; cp $S/a.h5 d.h5; mkdir d.h5; mkdir d.h5/e",
    "rm": "cp -r $S/tree .; cp $S/a.h5 .; rm a.h5; rm none; rm tree; rm -f none; rm -r tree/sub; "
          "rm -rf none",
    "rm-r": "cp -r $S/tree .; rm -r tree; cp -r $S/tree .; find . -name '*.h5' -delete",
    "chmod": "cp $S/a.h5 a.h5; chmod 600 a.h5; chmod -R u+w .; cp $S/text.txt t; chmod 644 t; "
             "chown $(id -u):$(id -g) a.h5 t",
    "find": "cp -r $S/tree .; find . -type f | sort > $W/l; find . -type d | sort > d; "
            "find . -name '*.h5' -size +0 | wc -l; cat $W/l",
    "h5repack": "h5repack $S/a.h5 x.h5; h5repack -f GZIP=1 $S/b.h5 y.h5; h5repack -l CONTI x.h5 "
                "z.h5; h5repack --latest $S/d.h5 d.h5",
    "h5repack-over": "cp $S/a.h5 x.h5; h5repack $S/b.h5 x.h5",
    "h5copy": "h5copy -i $S/a.h5 -o x.h5 -s /chunked -d /copy; h5copy -i x.h5 -o y.h5 -s /copy "
              "-d /p/q -p",
    "nccopy": "nccopy $S/c.nc x.nc; nccopy -d 5 x.nc y.nc; nccopy -k classic $S/simple.nc z.nc; "
              "nccopy $S/c.nc x.nc",
    "ncgen": "ncgen -k nc4 -o x.nc $S/simple.cdl; ncdump x.nc > t",
    "ncks": "ncks -h $S/simple.nc x.nc; ncks -hO -v t x.nc y.nc; ncks -hO $S/c.nc x.nc",
    "ncap2": "cp $S/simple.nc x.nc; ncap2 -hO -s 't2=t*2' x.nc w.nc; ncra -h x.nc y.nc",
    "nco-over-itself": "cp $S/simple.nc x.nc; ncks -hO -v t x.nc x.nc; cp $S/simple.nc y.nc; "
                       "ncrcat -hO y.nc y.nc z.nc; ncwa -hO -a k y.nc y.nc",
    "cdo": "cdo --no_history -s -f nc4 -mulc,2 $S/simple.nc x.nc",
    "h5py-w": python("for n in 1, 200, 3:\n with h5py.File('x.h5', 'w') as f: fill(f, n)"),
    "h5py-x": python("for i in 1, 2:\n with h5py.File('x.h5', 'x') as f: fill(f, 10)"),
    "h5py-a": python("with h5py.File('x.h5', 'a', libver='latest') as f: fill(f, 1000)"),
    "h5py-w-no-extension": python("with h5py.File('x', 'w') as f: fill(f, 10)"),
    "h5py-empty": python("h5py.File('x.h5', 'w').close(); h5py.File('y.h5', 'w-').close()"),
    "h5py-flush": python("f = h5py.File('x.h5', 'w')\nfor i in range(5):\n f[str(i)] = "
                         "np.arange(1000)\n f.flush()\nf.close()"),
    "h5py-read-while": python("f = h5py.File('x.h5', 'w'); fill(f, 50); f.flush()\n"
                              "g = h5py.File('x.h5', 'a'); g['more'] = 1\nf.close(); g.close()"),
    "h5py-temporary": python("import os\nwith h5py.File('.x.tmp', 'w') as f: fill(f, 50)\n"
                             "os.replace('.x.tmp', 'x.h5')"),
    # Domains that are changed in place.
    "rsync-inplace": "cp $S/a.h5 a.h5; rsync --inplace --no-whole-file -I $S/b.h5 a.h5",
    "empty-a-domain": "cp $S/a.h5 a.h5; truncate -s 0 a.h5",
    "h5py-a-again": "cp $S/a.h5 a.h5; " + python("h5py.File('a.h5', 'a')['new'] = 1"),
    "h5py-r+": "cp $S/a.h5 a.h5; " + python("h5py.File('a.h5', 'r+')['new'] = 1"),
    "ncatted": "cp $S/simple.nc c.nc; ncatted -h -a units,t,o,c,K c.nc; "
               "ncatted -O -h -a units,t,o,c,degC c.nc",
    "ncrename": "cp $S/simple.nc c.nc; ncrename -h -v t,u c.nc",
    # These copy the file to its new name, and then change it there.
    "ncatted-to-another-name": "cp $S/simple.nc c.nc; ncatted -O -h -a units,t,o,c,K c.nc new.nc",
    "ncrename-to-another-name": "cp $S/simple.nc c.nc; ncrename -O -h -v t,u c.nc new.nc",
    "ncks-append": "cp $S/c.nc c.nc; ncks -A -h $S/simple.nc c.nc",
    "h5copy-into-a-domain": "cp $S/b.h5 b.h5; h5copy -i $S/a.h5 -o b.h5 -s /chunked -d /copy",
    "xarray": python("import xarray as x\nd = x.Dataset({'v': (('y', 'x'), np.ones((3, 4)))})\n"
                     "d.to_netcdf('a.nc'); d.to_netcdf('a.nc')"),
    "python-files": python("import os, mmap\nf = open('t', 'w+b'); f.write(b'x' * 9000); "
                           "f.seek(10); f.write(b'y'); f.flush(); os.fsync(f.fileno())\n"
                           "m = mmap.mmap(f.fileno(), 9000); m[5000] = 65; m.flush(); m.close()\n"
                           "f.truncate(8000); f.seek(0, 2); f.write(b'end'); f.close()\n"
                           "os.rename('t', 'u')"),
}
# Programs that not every machine has.
PROGRAMS = {"zip": "zip", "perl": "perl", "ed": "ed", "vim": "vim",
            "patch": "patch", "cdo": "cdo", "fallocate": "fallocate"}

# These make links and devices. They fail in the mount with this message, and leave the domains as
# they were. Programs may print another message.
REFUSED = {
    "h5repack-onto-itself": ("h5repack a.h5 a.h5", ""),
    "ln": ("ln a.h5 l.h5", "Operation not permitted"),
    "ln-s": ("ln -s a.h5 l.h5", "Operation not permitted"),
    "mkfifo": ("mkfifo p", "Operation not permitted"),
}


def make_sources(root):
    rng = np.random.default_rng(1)
    for name, libver in (("a.h5", "earliest"), ("b.h5", "earliest"), ("d.h5", "latest")):
        with h5py.File(root / name, "w", libver=libver) as f:
            n = np.arange(6000) + ord(name[0])
            f.create_dataset("chunked", data=n, chunks=(700,), compression="gzip")
            f.create_dataset("group/plain", data=n.reshape(60, 100)[:, :ord(name[0]) - 90])
            f["text"] = np.array(["a", "", "long " * 20], dtype=h5py.string_dtype())
            f.attrs["name"] = name
    with h5py.File(root / "holes.h5", "w") as f:
        f.create_dataset("d", (1 << 17,), "<i4")[1000] = 3
    with h5py.File(root / "virtual.h5", "w") as f:    # a domain cannot hold this
        layout = h5py.VirtualLayout((60, 11), "<i8")
        layout[:] = h5py.VirtualSource("a.h5", "group/plain", (60, 11))
        f.create_virtual_dataset("v", layout)
    (root / "broken.h5").write_bytes((root / "a.h5").read_bytes()[:9000])
    (root / "text.txt").write_text("".join(f"this is line {i}\n" for i in range(400)))
    (root / "data.bin").write_bytes(rng.bytes(100_000))
    (root / "zeros.bin").write_bytes(bytes(200_000))
    (root / "simple.cdl").write_text(
        'netcdf simple { dimensions: k = unlimited ; variables: float t(k) ; t:units = "m" ; '
        "double k(k) ; data: t = 1, 2, 3 ; k = 5, 6, 7 ; }")
    run("ncgen", "-k", "nc4", "-o", root / "simple.nc", root / "simple.cdl", check=True)
    run("ncgen", "-k", "nc4", "-o", root / "c.nc", root / "simple.cdl", check=True)
    run("ncap2", "-A", "-s", 'defdim("y",4);v[k,y]=k*2.5', root / "c.nc", check=True)
    (root / "tree/sub/deeper").mkdir(parents=True)
    (root / "tree/none").mkdir()
    for source, target in (("a.h5", "a.h5"), ("b.h5", "sub/b.h5"), ("c.nc", "sub/deeper/c.nc"),
                           ("text.txt", "notes.txt"), ("data.bin", "sub/raw")):
        shutil.copy(root / source, root / "tree" / target)
    (root / "tree/sub/empty").touch()
    for options, name in (("cf", "tree.tar"), ("czf", "tree.tgz")):
        run("tar", options, root / name, "-C", root, "tree", check=True)
    if shutil.which("zip"):
        run("zip", "-qr", "tree.zip", "tree", cwd=root, check=True)


class World:
    """The sources, a directory of a disk, and a mount."""

    def __init__(self, directory):
        self.directory, self.sources = directory, directory / "sources"
        self.sources.mkdir()
        make_sources(self.sources)
        self.disk = directory / "disk"
        self.bucket = imports.make_bucket(directory / "bucket")
        self.mount = rwmounts.RwMount(self.bucket, directory / "mount")
        self.done = []

    def root(self, which, name):
        return os.path.join(self.disk if which == "disk" else self.mount.file("home"), name)

    def run(self, which, name, command):
        """Runs a command, and reads its result."""
        root, work = self.root(which, name), self.directory / f"work-{which}"
        work.mkdir(exist_ok=True)
        # The versions of tools, times and paths must not get into files.
        env = {**os.environ, "S": os.fspath(self.sources), "W": os.fspath(work), "PY":
               sys.executable, "HEAD": PY, "LC_ALL": "C", "TZ": "UTC"}
        # Before each command, the exit status of the last one is printed.
        done = run("bash", "-c", "umask 022; trap 'echo $? >&2' DEBUG\n" + command, cwd=root,
                   env=env)
        if which == "mount":
            self.mount.released()
        return done


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("tools"))
    made.disk.mkdir()
    (made.directory / "mount").mkdir()
    made.mount.start()
    yield made
    if made.mount.process:
        assert made.mount.stop() == 0, made.mount.log()


def make_directories(world, name, which=("disk", "mount")):
    for place in which:
        os.mkdir(world.root(place, name))


@pytest.mark.parametrize("name", CALLS)
def test_as_on_a_disk(world, name):
    if name in PROGRAMS and not shutil.which(PROGRAMS[name]):
        pytest.skip(f"{PROGRAMS[name]} is not installed")
    make_directories(world, name)
    done = [world.run(which, name, CALLS[name]) for which in ("disk", "mount")]
    one, two = (d.stderr.replace(world.root(w, ""), "") for d, w in zip(done, ("disk", "mount")))
    assert done[0].returncode == done[1].returncode, (one, two, world.mount.log())
    assert sorted(one.splitlines()) == sorted(two.splitlines())
    assert done[0].stdout == done[1].stdout
    assert rwmounts.tree_differences(world.root("disk", name), world.root("mount", name)) == []
    world.done.append(name)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(world, name):
    make_directories(world, name)
    command, message = REFUSED[name]
    copies = {"a.h5": "a.h5", "b.h5": "b.h5", "c.nc": "simple.nc"}
    for shown, source in copies.items():
        shutil.copyfile(world.sources / source, os.path.join(world.root("mount", name), shown))
    done = world.run("mount", name, command)
    assert message in done.stderr
    assert done.returncode != 0
    for shown, source in copies.items():
        assert rwmounts.file_differences(world.sources / source, os.path.join(
            world.root("mount", name), shown)) == []


def test_modes(world):
    """A program that copies the file again, or asks before it removes it, sees that it may."""
    make_directories(world, "modes")
    for name in "a.h5", "text.txt":
        for which in "disk", "mount":
            path = os.path.join(world.root(which, "modes"), name)
            shutil.copyfile(world.sources / name, path)
            for _ in range(2):
                assert os.stat(path).st_mode & 0o600 == 0o600
                with open(path, "rb") as f:
                    f.read()


def test_a_later_mount(world):
    """What the calls have left is in the bucket, HDF5 files as domains, and no draft is left."""
    assert world.mount.stop() == 0, world.mount.log()
    assert rwmounts.journal_entries(world.mount.journal) == []
    with mounts.Mount(world.bucket, world.directory / "mount") as m:
        for name in world.done:
            shown = m.file("home", name)
            assert rwmounts.tree_differences(world.root("disk", name), shown) == []
            for path in filter(None, rwmounts.tree(shown, False).values()):
                kept = os.path.basename(path) in ("virtual.h5", "broken.h5")
                assert rwmounts.is_domain(path) == (rwmounts.opens(path) and not kept), path
    run(HSIMAGE, "check", "--all", world.bucket, check=True)
