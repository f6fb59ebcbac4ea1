/* cuDNN: descriptors remember nothing, except what a caller reads back. */
#include "stub.h"

EXPORT size_t cudnnGetVersion(void)
{
	return SIMCUDA_CUDNN_VERSION;
}

EXPORT size_t cudnnGetCudartVersion(void)
{
	return SIMCUDA_CUDA_VERSION;
}

EXPORT int cudnnGetProperty(int which, int *value)
{
	const int version[] = { SIMCUDA_CUDNN_VERSION / 10000, SIMCUDA_CUDNN_VERSION / 100 % 100,
				SIMCUDA_CUDNN_VERSION % 100 };

	*value = which >= 0 && which < 3 ? version[which] : 0;
	return 0;
}

EXPORT const char *cudnnGetErrorString(int status)
{
	return status == 0 ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_INTERNAL_ERROR";
}

EXPORT void cudnnGetLastErrorString(char *message, size_t size)
{
	if (size > 0)
		message[0] = '\0';
}

EXPORT int cudnnSetStream(void **handle, void *stream)
{
	handle[0] = stream;
	return 0;
}

EXPORT int cudnnGetStream(void *const *handle, void **stream)
{
	*stream = handle[0];
	return 0;
}

EXPORT int cudnnDropoutGetStatesSize(void *handle, size_t *bytes)
{
	(void)handle;
	*bytes = WORKSPACE_BYTES;
	return 0;
}

/* Convolutions, the older interface. cudnnConvolution*AlgoPerf_t: */
struct algo_perf {
	int algorithm;
	int status;
	float time;
	size_t bytes;
	int determinism;
	int math_type;
	int reserved[3];
};
_Static_assert(sizeof(struct algo_perf) == 48, "size of cudnnConvolutionFwdAlgoPerf_t");

static int one_algorithm(int requested, int *returned, struct algo_perf *results)
{
	*returned = requested > 0 ? 1 : 0;
	if (requested > 0) {
		memset(results, 0, sizeof(*results));
		results->algorithm = 1;
		results->bytes = WORKSPACE_BYTES;
	}
	return 0;
}

#define GET_ALGORITHM(name)                                                                \
	EXPORT int name(void *handle, void *x, void *w, void *conv, void *y, int requested, \
			int *returned, struct algo_perf *results)                          \
	{                                                                                  \
		(void)handle, (void)x, (void)w, (void)conv, (void)y;                       \
		return one_algorithm(requested, returned, results);                        \
	}

GET_ALGORITHM(cudnnGetConvolutionForwardAlgorithm_v7)
GET_ALGORITHM(cudnnGetConvolutionBackwardDataAlgorithm_v7)
GET_ALGORITHM(cudnnGetConvolutionBackwardFilterAlgorithm_v7)

#define FIND_ALGORITHM(name)                                                               \
	EXPORT int name(void *handle, void *x_desc, void *x, void *w_desc, void *w,        \
			void *conv, void *y_desc, void *y, int requested, int *returned,   \
			struct algo_perf *results, void *workspace, size_t bytes)          \
	{                                                                                  \
		(void)handle, (void)x_desc, (void)x, (void)w_desc, (void)w, (void)conv;    \
		(void)y_desc, (void)y, (void)workspace, (void)bytes;                       \
		return one_algorithm(requested, returned, results);                        \
	}

FIND_ALGORITHM(cudnnFindConvolutionForwardAlgorithmEx)
FIND_ALGORITHM(cudnnFindConvolutionBackwardDataAlgorithmEx)
FIND_ALGORITHM(cudnnFindConvolutionBackwardFilterAlgorithmEx)

#define CONVOLUTION_WORKSPACE(name)                                                        \
	EXPORT int name(void *handle, void *x, void *w, void *conv, void *y, int algorithm, \
			size_t *bytes)                                                     \
	{                                                                                  \
		(void)handle, (void)x, (void)w, (void)conv, (void)y, (void)algorithm;      \
		*bytes = WORKSPACE_BYTES;                                                  \
		return 0;                                                                  \
	}

CONVOLUTION_WORKSPACE(cudnnGetConvolutionForwardWorkspaceSize)
CONVOLUTION_WORKSPACE(cudnnGetConvolutionBackwardDataWorkspaceSize)
CONVOLUTION_WORKSPACE(cudnnGetConvolutionBackwardFilterWorkspaceSize)

/* Batch normalization. */
EXPORT int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void *handle, int mode, int ops,
								    void *x, void *z, void *y,
								    void *params, void *activation,
								    size_t *bytes)
{
	(void)handle, (void)mode, (void)ops, (void)x, (void)z, (void)y, (void)params;
	(void)activation;
	*bytes = 0;
	return 0;
}

EXPORT int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void *handle, int mode, int ops, void *x,
							     void *y, void *dy, void *dz, void *dx,
							     void *params, void *activation,
							     size_t *bytes)
{
	(void)handle, (void)mode, (void)ops, (void)x, (void)y, (void)dy, (void)dz, (void)dx;
	(void)params, (void)activation;
	*bytes = 0;
	return 0;
}

EXPORT int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void *handle, int mode, int ops,
								void *activation, void *x,
								size_t *bytes)
{
	(void)handle, (void)mode, (void)ops, (void)activation, (void)x;
	*bytes = 0;
	return 0;
}

/* The graph interface: every attribute that is a list of descriptors has one, whose
 * object the caller made; every number is zero. */
EXPORT int cudnnBackendCreateDescriptor(int kind, void **descriptor)
{
	(void)kind;
	*descriptor = new_object();
	return 0;
}

EXPORT int cudnnBackendDestroyDescriptor(void *descriptor)
{
	free(descriptor);
	return 0;
}

EXPORT int cudnnBackendGetAttribute(void *descriptor, int name, int type, int64_t requested,
				    int64_t *count, void *elements)
{
	enum { TYPE_INT64 = 3, TYPE_BACKEND_DESCRIPTOR = 15 };
	int64_t found = 0;

	(void)descriptor, (void)name;
	if (type == TYPE_BACKEND_DESCRIPTOR) {
		found = 1;
	} else if (type == TYPE_INT64) {
		found = 1;
		if (elements != NULL && requested > 0)
			*(int64_t *)elements = 0;
	}
	if (count != NULL)
		*count = found;
	return 0;
}
