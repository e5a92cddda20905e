/* mrc.h for programs that were written with the header of a vendor's early installation: the API of
 * today with the names of then. Only names differ; programs are compiled, not carried over.
 */
#pragma once

#include "openmrc/mrc.h"

/* What mrc_query_device() fills. */
#define mrc_attr mrc_device_attr

/* Attributes of mrc_modify_qp(). */
#define MRC_EV_PROFILE_ID MRC_QP_EV_PROFILE_ID
#define MRC_CC_PROFILE_ID MRC_QP_CC_PROFILE_ID
