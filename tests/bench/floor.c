/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floor FILE MOUNTPOINT: a FUSE file system of one file, "data.h5", that answers from memory. No
 * FUSE program can be faster on the same machine, so a mount is compared with it. It stays in the
 * foreground until it is unmounted. Several threads serve requests; no data changes after the
 * start.
 */
#define FUSE_USE_VERSION 314

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fuse_lowlevel.h>

enum { INO_FILE = 2, MAX_READ = 1 << 20 };
static const char file_name[] = "data.h5";

struct content {
	char *bytes;
	size_t size;
};

static void fill_stat(const struct content *c, fuse_ino_t ino, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_ino = ino;
	st->st_mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0555 : S_IFREG | 0444;
	st->st_nlink = 1;
	st->st_size = ino == INO_FILE ? (off_t)c->size : 0;
}

static void floor_init(void *arg, struct fuse_conn_info *conn)
{
	conn->max_read = MAX_READ;
	conn->max_readahead = MAX_READ;
	if (conn->capable & FUSE_CAP_SPLICE_WRITE)
		conn->want |= FUSE_CAP_SPLICE_WRITE;
}

static void floor_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = {.ino = INO_FILE, .attr_timeout = 60, .entry_timeout = 60};
	if (parent != FUSE_ROOT_ID || strcmp(name, file_name) != 0) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	fill_stat(fuse_req_userdata(req), INO_FILE, &e.attr);
	fuse_reply_entry(req, &e);
}

static void floor_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;
	fill_stat(fuse_req_userdata(req), ino, &st);
	fuse_reply_attr(req, &st, 60);
}

static void floor_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	fi->keep_cache = 0;
	fuse_reply_open(req, fi);
}

static void floor_read(fuse_req_t req, fuse_ino_t ino, size_t n, off_t offset,
		       struct fuse_file_info *fi)
{
	const struct content *c = fuse_req_userdata(req);
	if ((size_t)offset >= c->size)
		n = 0;
	else if (n > c->size - (size_t)offset)
		n = c->size - (size_t)offset;
	fuse_reply_buf(req, c->bytes + (n ? offset : 0), n);
}

static const struct fuse_lowlevel_ops floor_ops = {
	.init = floor_init,
	.lookup = floor_lookup,
	.getattr = floor_getattr,
	.open = floor_open,
	.read = floor_read,
};

static int load(const char *path, struct content *c)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	c->size = (size_t)st.st_size;
	c->bytes = mmap(NULL, c->size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	close(fd);
	return c->bytes == MAP_FAILED ? -1 : 0;
}

int main(int argc, char **argv)
{
	char *fuse_argv[] = {argv[0], "-omax_read=1048576,fsname=floor,ro", NULL};
	struct fuse_args args = FUSE_ARGS_INIT(2, fuse_argv);
	struct content content;
	struct fuse_session *session;
	struct fuse_loop_config *config;
	if (argc != 3) {
		fprintf(stderr, "usage: floor FILE MOUNTPOINT\n");
		return 2;
	}
	if (load(argv[1], &content) < 0) {
		perror(argv[1]);
		return 1;
	}
	session = fuse_session_new(&args, &floor_ops, sizeof(floor_ops), &content);
	if (!session || fuse_session_mount(session, argv[2]) < 0)
		return 1;
	config = fuse_loop_cfg_create();
	fuse_session_loop_mt(session, config);
	fuse_loop_cfg_destroy(config);
	fuse_session_unmount(session);
	fuse_session_destroy(session);
	return 0;
}
