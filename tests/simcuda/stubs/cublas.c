/* cuBLAS: state is forgotten, products are not computed. */
#include "stub.h"

/* Where a handle keeps its workspace: behind the modes. */
static void **workspace_of(void *handle)
{
	return (void **)handle + 8;
}

/* A handle takes a workspace of its own from the runtime, as the real one does. */
EXPORT int cublasCreate_v2(void **handle)
{
	size_t bytes = own_memory("SIMCUDA_CUBLAS_MEM");

	*handle = new_object();
	if (bytes == 0)
		return 0;
	return ((int (*)(void **, size_t))cuda_function("cudaMalloc"))(workspace_of(*handle), bytes);
}

EXPORT int cublasDestroy_v2(void *handle)
{
	if (*workspace_of(handle) != NULL)
		((int (*)(void *))cuda_function("cudaFree"))(*workspace_of(handle));
	free(handle);
	return 0;
}

EXPORT int cublasGetVersion_v2(void *handle, int *version)
{
	(void)handle;
	*version = SIMCUDA_CUDA_VERSION * 10;
	return 0;
}

/* The modes are read back to be restored. */
EXPORT int cublasSetPointerMode_v2(int *handle, int mode)
{
	handle[0] = mode;
	return 0;
}

EXPORT int cublasGetPointerMode_v2(const int *handle, int *mode)
{
	*mode = handle[0];
	return 0;
}

EXPORT int cublasSetMathMode(int *handle, int mode)
{
	handle[1] = mode;
	return 0;
}

EXPORT int cublasGetMathMode(const int *handle, int *mode)
{
	*mode = handle[1];
	return 0;
}

EXPORT const char *cublasGetStatusName(int status)
{
	return status == 0 ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_INTERNAL_ERROR";
}

EXPORT const char *cublasGetStatusString(int status)
{
	return status == 0 ? "success" : "an internal operation failed";
}

/* Scalar results may lie on the host, where callers decide on them (pivots). */
#define SCALAR_RESULT(name, type, value)                                                   \
	EXPORT int name(void *handle, int n, const void *x, int incx, type *result)        \
	{                                                                                  \
		(void)handle, (void)n, (void)x, (void)incx;                                \
		*result = value;                                                           \
		return 0;                                                                  \
	}

SCALAR_RESULT(cublasIsamax_v2, int, 1)
SCALAR_RESULT(cublasIdamax_v2, int, 1)
SCALAR_RESULT(cublasIcamax_v2, int, 1)
SCALAR_RESULT(cublasIzamax_v2, int, 1)
SCALAR_RESULT(cublasIsamin_v2, int, 1)
SCALAR_RESULT(cublasIdamin_v2, int, 1)
SCALAR_RESULT(cublasIcamin_v2, int, 1)
SCALAR_RESULT(cublasIzamin_v2, int, 1)
SCALAR_RESULT(cublasSasum_v2, float, 0)
SCALAR_RESULT(cublasDasum_v2, double, 0)
SCALAR_RESULT(cublasScasum_v2, float, 0)
SCALAR_RESULT(cublasDzasum_v2, double, 0)
SCALAR_RESULT(cublasSnrm2_v2, float, 0)
SCALAR_RESULT(cublasDnrm2_v2, double, 0)
SCALAR_RESULT(cublasScnrm2_v2, float, 0)
SCALAR_RESULT(cublasDznrm2_v2, double, 0)

#define DOT_RESULT(name, bytes)                                                            \
	EXPORT int name(void *handle, int n, const void *x, int incx, const void *y,       \
			int incy, void *result)                                            \
	{                                                                                  \
		(void)handle, (void)n, (void)x, (void)incx, (void)y, (void)incy;           \
		memset(result, 0, bytes);                                                  \
		return 0;                                                                  \
	}

DOT_RESULT(cublasSdot_v2, 4)
DOT_RESULT(cublasDdot_v2, 8)
DOT_RESULT(cublasCdotc_v2, 8)
DOT_RESULT(cublasCdotu_v2, 8)
DOT_RESULT(cublasZdotc_v2, 16)
DOT_RESULT(cublasZdotu_v2, 16)

/* Copies are real, like those of the driver. */
static int copy_matrix(int rows, int cols, int size, const char *from, int from_ld, char *to,
		       int to_ld)
{
	for (int col = 0; col < cols; col++)
		memcpy(to + (size_t)col * to_ld * size, from + (size_t)col * from_ld * size,
		       (size_t)rows * size);
	return 0;
}

EXPORT int cublasSetMatrixAsync(int rows, int cols, int size, const void *from, int from_ld,
				void *to, int to_ld, void *stream)
{
	(void)stream;
	return copy_matrix(rows, cols, size, from, from_ld, to, to_ld);
}

EXPORT int cublasGetMatrixAsync(int rows, int cols, int size, const void *from, int from_ld,
				void *to, int to_ld, void *stream)
{
	(void)stream;
	return copy_matrix(rows, cols, size, from, from_ld, to, to_ld);
}

EXPORT int cublasSetVectorAsync(int n, int size, const void *from, int from_step, void *to,
				int to_step, void *stream)
{
	(void)stream;
	return copy_matrix(1, n, size, from, from_step, to, to_step);
}

EXPORT int cublasGetVectorAsync(int n, int size, const void *from, int from_step, void *to,
				int to_step, void *stream)
{
	(void)stream;
	return copy_matrix(1, n, size, from, from_step, to, to_step);
}
