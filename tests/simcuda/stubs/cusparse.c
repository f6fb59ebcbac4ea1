/* cuSPARSE: workspace queries. A product of sparse matrices is empty. */
#include "stub.h"

EXPORT const char *cusparseGetErrorString(int status)
{
	return status == 0 ? "success" : "internal error";
}

static int workspace(size_t *bytes)
{
	*bytes = WORKSPACE_BYTES;
	return 0;
}

#define P __attribute__((unused)) const void *
#define I __attribute__((unused)) int

EXPORT int cusparseSpMV_bufferSize(P h, I op, P alpha, P a, P x, P beta, P y, I type, I algorithm,
				   size_t *bytes)
{
	return workspace(bytes);
}

EXPORT int cusparseSpMM_bufferSize(P h, I op_a, I op_b, P alpha, P a, P b, P beta, P c, I type,
				   I algorithm, size_t *bytes)
{
	return workspace(bytes);
}

EXPORT int cusparseSDDMM_bufferSize(P h, I op_a, I op_b, P alpha, P a, P b, P beta, P c, I type,
				    I algorithm, size_t *bytes)
{
	return workspace(bytes);
}

EXPORT int cusparseSpSV_bufferSize(P h, I op, P alpha, P a, P x, P y, I type, I algorithm, P descr,
				   size_t *bytes)
{
	return workspace(bytes);
}

EXPORT int cusparseSpSM_bufferSize(P h, I op_a, I op_b, P alpha, P a, P b, P c, I type, I algorithm,
				   P descr, size_t *bytes)
{
	return workspace(bytes);
}

EXPORT int cusparseSpGEMM_workEstimation(P h, I op_a, I op_b, P alpha, P a, P b, P beta, P c, I type,
					 I algorithm, P descr, size_t *bytes, P buffer)
{
	return workspace(bytes);
}

EXPORT int cusparseSpGEMM_compute(P h, I op_a, I op_b, P alpha, P a, P b, P beta, P c, I type,
				  I algorithm, P descr, size_t *bytes, P buffer)
{
	return workspace(bytes);
}

EXPORT int cusparseSpMatGetSize(P matrix, int64_t *rows, int64_t *cols, int64_t *nonzero)
{
	*rows = *cols = *nonzero = 0;
	return 0;
}

EXPORT int cusparseXcoosort_bufferSizeExt(P h, I m, I n, I nonzero, P rows, P cols, size_t *bytes)
{
	return workspace(bytes);
}

EXPORT int cusparseXcsrsort_bufferSizeExt(P h, I m, I n, I nonzero, P rows, P cols, size_t *bytes)
{
	return workspace(bytes);
}
