/* SPDX-License-Identifier: Apache-2.0 */
/* Reading at an address of a file, and announcing reads: see h5/file.h. */
#include <h5/file.h>

#include <errno.h>
#include <inttypes.h>

#include <base/mem.h>

int h5_file_spend(const struct h5_file *f, uint64_t n, struct err *err)
{
	if (!f->work)
		return 0;
	if (n <= f->work->left) {
		f->work->left -= n;
		return 0;
	}
	f->work->left = 0;
	return err_set(
		err, -EIO,
		"the structures of the file overlap: reading them takes many times its size");
}

int h5_file_read(const struct h5_file *f, uint64_t addr, void *buf, size_t n, struct err *err)
{
	uint64_t offset;
	if (!add_u64(f->base, addr, &offset))
		return err_set(err, -EIO, "address %" PRIu64 " is outside of the file", addr);
	/* A read outside of the file fails without any work. */
	const uint64_t size = h5_file_size(f);
	const bool is_inside = addr <= size && n <= size - addr;
	if (!is_inside && f->is_bounded)
		return err_set(err, -EIO, "%zu bytes at %" PRIu64 " are outside of the file", n,
			       addr);
	int rc = is_inside ? h5_file_spend(f, n, err) : 0;
	return rc ? rc : source_read(f->source, offset, buf, n, err);
}

int h5_file_prepare(const struct h5_file *f, uint64_t addr, uint64_t n, struct source_part *part,
		    struct err *err)
{
	uint64_t offset;
	return add_u64(f->base, addr, &offset) ? source_prepare(f->source, offset, n, part, err)
					       : -ENOTSUP;
}

void h5_file_advise(const struct h5_file *f, uint64_t addr, uint64_t n)
{
	const uint64_t size = h5_file_size(f);
	if (addr < size)
		source_advise(f->source, f->base + addr, min_u64(n, size - addr));
}
