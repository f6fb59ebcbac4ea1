/* CUPTI for PyTorch's own profiler: it subscribes, and no activity is ever reported. */
#include "stub.h"

enum { ERROR_MAX_LIMIT_REACHED = 12 };

EXPORT int cuptiGetVersion(uint32_t *version)
{
	*version = SIMCUDA_CUDA_VERSION >= 13000 ? 130200 : 26;
	return 0;
}

EXPORT int cuptiSubscribe(void **subscriber, void *callback, void *user)
{
	(void)callback, (void)user;
	*subscriber = new_object();
	return 0;
}

EXPORT int cuptiUnsubscribe(void *subscriber)
{
	free(subscriber);
	return 0;
}

EXPORT int cuptiGetResultString(int result, const char **text)
{
	*text = result == 0 ? "CUPTI_SUCCESS" : "CUPTI_ERROR_UNKNOWN";
	return 0;
}

EXPORT int cuptiGetCallbackName(int domain, uint32_t id, const char **name)
{
	(void)domain, (void)id;
	*name = "unknown";
	return 0;
}

EXPORT int cuptiActivityGetNextRecord(void *buffer, size_t bytes, void **record)
{
	(void)buffer, (void)bytes;
	*record = NULL;
	return ERROR_MAX_LIMIT_REACHED;
}

EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped)
{
	(void)context, (void)stream;
	*dropped = 0;
	return 0;
}

EXPORT int cuptiActivityPopExternalCorrelationId(int kind, uint64_t *id)
{
	(void)kind;
	if (id != NULL)
		*id = 0;
	return 0;
}
