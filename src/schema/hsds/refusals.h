/* SPDX-License-Identifier: Apache-2.0 */
/* For the test that compares this layer's list of filters with that of the codec. */
#ifndef HSDS_REFUSALS_H
#define HSDS_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the program decodes this filter. */
bool schema_filter_decoded(uint32_t id);

#endif
