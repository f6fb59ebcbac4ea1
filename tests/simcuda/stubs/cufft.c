/* cuFFT: a plan is a number. */
#include "stub.h"

EXPORT int cufftCreate(int *plan)
{
	static int next;

	*plan = __atomic_add_fetch(&next, 1, __ATOMIC_RELAXED);
	return 0;
}

EXPORT int cufftXtMakePlanMany(int plan, int rank, void *n, void *in_embed, long long in_stride,
			       long long in_dist, int in_type, void *out_embed, long long out_stride,
			       long long out_dist, int out_type, long long batch, size_t *bytes,
			       int execution_type)
{
	(void)plan, (void)rank, (void)n, (void)in_embed, (void)in_stride, (void)in_dist;
	(void)in_type, (void)out_embed, (void)out_stride, (void)out_dist, (void)out_type;
	(void)batch, (void)execution_type;
	if (bytes != NULL)
		*bytes = WORKSPACE_BYTES;
	return 0;
}
