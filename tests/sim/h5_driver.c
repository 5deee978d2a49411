/* SPDX-License-Identifier: Apache-2.0 */
/* See h5_driver.h. */
#include "h5_driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

/* The clock of the library, which puts the time of each change into the headers of objects. With
 * this one, the bytes of a file follow from the seed. */
int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	*now = (struct timeval){.tv_sec = 1700000100};
	return 0;
}

struct driver {
	H5FD_t base;
	struct driven *f;
	haddr_t eoa, eof;
};

/* What an access list has of the driver. */
struct ticket {
	struct driven *f;
};

static H5FD_t *driver_open(const char *name, unsigned int flags, hid_t access, haddr_t max)
{
	const struct ticket *t = H5Pget_driver_info(access);
	struct driver *d = calloc(1, sizeof(*d));
	struct engine_stat st;
	if (!d)
		abort();
	d->f = t->f;
	if (flags & H5F_ACC_TRUNC)
		d->f->rc = engine_resize(d->f->file, 0, &d->f->err);
	engine_file_stat(d->f->file, &st);
	d->eof = st.size;
	if (!d->f->rc)
		return &d->base;
	free(d);
	return NULL;
}

static herr_t driver_close(H5FD_t *file)
{
	free(file);
	return 0;
}

static int driver_compare(const H5FD_t *a, const H5FD_t *b)
{
	const uintptr_t x = (uintptr_t)((const struct driver *)a)->f->file;
	const uintptr_t y = (uintptr_t)((const struct driver *)b)->f->file;
	return (x > y) - (x < y);
}

/* Those of the driver for files on a disk. */
static herr_t driver_query(const H5FD_t *file, unsigned long *flags)
{
	*flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
		 H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_SUPPORTS_SWMR_IO;
	return 0;
}

static haddr_t driver_eoa(const H5FD_t *file, H5FD_mem_t type)
{
	return ((const struct driver *)file)->eoa;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t eoa)
{
	((struct driver *)file)->eoa = eoa;
	return 0;
}

static haddr_t driver_eof(const H5FD_t *file, H5FD_mem_t type)
{
	return ((const struct driver *)file)->eof;
}

static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t n,
			  void *bytes)
{
	struct driven *f = ((struct driver *)file)->f;
	if (f->rc)
		return -1;
	const ssize_t got = engine_pread(f->file, bytes, n, at, NULL, &f->err);
	if (got < 0) {
		f->rc = (int)got;
		return -1;
	}
	memset((uint8_t *)bytes + got, 0, n - (size_t)got);
	return 0;
}

/* After a failure the library writes what it has when it closes the file; nobody gets that. It
 * does not learn of the failure, because then it keeps objects for ever. */
static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t n,
			   const void *bytes)
{
	struct driver *d = (struct driver *)file;
	struct driven *f = d->f;
	if (!f->rc && f->max_writes && f->writes++ == f->max_writes)
		f->rc = err_set(&f->err, -EINTR, "the program is killed");
	if (f->rc)
		return 0;
	const ssize_t done = engine_pwrite(f->file, bytes, n, at, &f->err);
	if (done < 0)
		f->rc = (int)done;
	else if (d->eof < at + n)
		d->eof = at + n;
	return 0;
}

static herr_t driver_truncate(H5FD_t *file, hid_t transfer, hbool_t closing)
{
	struct driver *d = (struct driver *)file;
	if (d->f->rc || d->eof == d->eoa)
		return 0;
	d->f->rc = engine_resize(d->f->file, d->eoa, &d->f->err);
	d->eof = d->eoa;
	return 0;
}

/* Nobody else has the file. The library marks a file as open only if its driver has locks. */
static herr_t driver_lock(H5FD_t *file, hbool_t exclusive)
{
	return 0;
}

static herr_t driver_unlock(H5FD_t *file)
{
	return 0;
}

static const H5FD_class_t driver_class = {
	.name = "engine",
	.maxaddr = INT64_MAX,
	.fc_degree = H5F_CLOSE_STRONG,
	.fapl_size = sizeof(struct ticket),
	.open = driver_open,
	.close = driver_close,
	.cmp = driver_compare,
	.query = driver_query,
	.get_eoa = driver_eoa,
	.set_eoa = driver_set_eoa,
	.get_eof = driver_eof,
	.read = driver_read,
	.write = driver_write,
	.truncate = driver_truncate,
	.lock = driver_lock,
	.unlock = driver_unlock,
	.fl_map = H5FD_FLMAP_DICHOTOMY,
};

bool h5_driver_use(hid_t list, struct driven *f)
{
	const struct ticket ticket = {f};
	f->driver = H5FDregister(&driver_class);
	return f->driver >= 0 && H5Pset_driver(list, f->driver, &ticket) >= 0;
}
