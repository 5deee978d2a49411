/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file driver of libhdf5 over a file of an engine. The first failure of the engine is kept, and
 * no write reaches the engine afterwards: the library writes what it has when it closes the file,
 * and nobody gets that. The caller holds the lock of the library.
 */
#ifndef SIM_H5_DRIVER_H
#define SIM_H5_DRIVER_H

#include <hdf5.h>

#include <hsmount/engine.h>

struct driven {
	struct engine_file *file;
	unsigned int writes, max_writes; /* 0, or: the program is killed after so many */
	int rc;				 /* the first failure */
	struct err err;			 /* its reason */
	hid_t driver;
};

/* Files that are opened with this access list are f, which outlives them. So does f->driver, on
 * which the caller calls H5FDunregister() then: H5Fclose() uses the driver after its last
 * reference. */
bool h5_driver_use(hid_t list, struct driven *f);

#endif
