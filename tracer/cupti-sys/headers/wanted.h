/* What bindgen reads. */
#include <stddef.h>

#include <cuda_runtime_api.h>
#include <cupti.h>
