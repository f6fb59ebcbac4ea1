/* cuBLASLt. */
#include "stub.h"

/* cublasLtMatmulHeuristicResult_t: algorithm, workspace size, state, and the rest. */
struct heuristic_result {
	uint64_t algorithm[8];
	size_t workspace_bytes;
	int state;
	float waves;
	int reserved[4];
};
_Static_assert(sizeof(struct heuristic_result) == 96, "size of cublasLtMatmulHeuristicResult_t");

EXPORT size_t cublasLtGetVersion(void)
{
	return SIMCUDA_CUDA_VERSION * 10;
}

EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c,
					  void *d, void *preference, int requested,
					  struct heuristic_result *results, int *returned)
{
	(void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
	*returned = requested > 0 ? 1 : 0;
	if (requested > 0)
		memset(results, 0, sizeof(*results));
	return 0;
}

EXPORT int cublasLtMatmulAlgoCheck(void *handle, void *operation, void *a, void *b, void *c, void *d,
				   const void *algorithm, struct heuristic_result *result)
{
	(void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)algorithm;
	memset(result, 0, sizeof(*result));
	return 0;
}

EXPORT int cublasLtMatmulAlgoInit(void *handle, int compute, int scale, int a, int b, int c, int d,
				  int id, void *algorithm)
{
	(void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d, (void)id;
	memset(algorithm, 0, 64);
	return 0;
}

EXPORT int cublasLtMatmulAlgoConfigGetAttribute(const void *algorithm, int attribute, void *value,
						size_t size, size_t *written)
{
	(void)algorithm, (void)attribute;
	memset(value, 0, size);
	if (written != NULL)
		*written = size;
	return 0;
}
