/* NCCL: a communicator knows its size and rank. Collectives copy what a rank has to
 * where its result belongs; nothing crosses between processes. */
#include "stub.h"

struct communicator {
	int size;
	int rank;
	int device;
};

struct unique_id {
	char bytes[128];
};

static int new_communicator(struct communicator **result, int size, int rank)
{
	struct communicator *communicator = new_object();

	communicator->size = size;
	communicator->rank = rank;
	*result = communicator;
	return 0;
}

/* Bytes of an element of each ncclDataType_t. */
static size_t element_bytes(int type)
{
	static const unsigned char bytes[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

	return type >= 0 && type < (int)sizeof(bytes) ? bytes[type] : 4;
}

EXPORT int ncclGetVersion(int *version)
{
	*version = SIMCUDA_CUDA_VERSION >= 13000 ? 23007 : 22703;
	return 0;
}

EXPORT const char *ncclGetErrorString(int result)
{
	return result == 0 ? "no error" : "internal error";
}

EXPORT const char *ncclGetLastError(void *communicator)
{
	(void)communicator;
	return "";
}

EXPORT int ncclGetUniqueId(struct unique_id *id)
{
	memset(id, 1, sizeof(*id));
	return 0;
}

EXPORT int ncclCommInitRank(struct communicator **result, int size, struct unique_id id, int rank)
{
	(void)id;
	return new_communicator(result, size, rank);
}

EXPORT int ncclCommInitRankConfig(struct communicator **result, int size, struct unique_id id,
				  int rank, void *config)
{
	(void)id, (void)config;
	return new_communicator(result, size, rank);
}

EXPORT int ncclCommInitRankScalable(struct communicator **result, int size, int rank, int ids,
				    void *id, void *config)
{
	(void)ids, (void)id, (void)config;
	return new_communicator(result, size, rank);
}

EXPORT int ncclCommInitAll(struct communicator **results, int count, const int *devices)
{
	for (int i = 0; i < count; i++) {
		new_communicator(&results[i], count, i);
		results[i]->device = devices != NULL ? devices[i] : i;
	}
	return 0;
}

EXPORT int ncclCommDestroy(struct communicator *communicator)
{
	free(communicator);
	return 0;
}

EXPORT int ncclCommAbort(struct communicator *communicator)
{
	free(communicator);
	return 0;
}

EXPORT int ncclCommFinalize(struct communicator *communicator)
{
	(void)communicator;
	return 0;
}

EXPORT int ncclCommCount(const struct communicator *communicator, int *count)
{
	*count = communicator->size;
	return 0;
}

EXPORT int ncclCommUserRank(const struct communicator *communicator, int *rank)
{
	*rank = communicator->rank;
	return 0;
}

EXPORT int ncclCommGetAsyncError(void *communicator, int *error)
{
	(void)communicator;
	*error = 0;
	return 0;
}

EXPORT int ncclGroupStart(void)
{
	return 0;
}

EXPORT int ncclGroupEnd(void)
{
	return 0;
}

EXPORT int ncclAllReduce(const void *from, void *to, size_t count, int type, int op,
			 void *communicator, void *stream)
{
	(void)op, (void)communicator, (void)stream;
	memmove(to, from, count * element_bytes(type));
	return 0;
}

EXPORT int ncclBroadcast(const void *from, void *to, size_t count, int type, int root,
			 void *communicator, void *stream)
{
	(void)root, (void)communicator, (void)stream;
	memmove(to, from, count * element_bytes(type));
	return 0;
}

EXPORT int ncclBcast(void *buffer, size_t count, int type, int root, void *communicator, void *stream)
{
	(void)buffer, (void)count, (void)type, (void)root, (void)communicator, (void)stream;
	return 0;
}

EXPORT int ncclReduce(const void *from, void *to, size_t count, int type, int op, int root,
		      const struct communicator *communicator, void *stream)
{
	(void)op, (void)stream;
	if (communicator->rank == root)
		memmove(to, from, count * element_bytes(type));
	return 0;
}

EXPORT int ncclAllGather(const void *from, void *to, size_t count, int type,
			 const struct communicator *communicator, void *stream)
{
	size_t bytes = count * element_bytes(type);

	(void)stream;
	for (int rank = 0; rank < communicator->size; rank++)
		memmove((char *)to + rank * bytes, from, bytes);
	return 0;
}

EXPORT int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op,
			     const struct communicator *communicator, void *stream)
{
	size_t bytes = count * element_bytes(type);

	(void)op, (void)stream;
	memmove(to, (const char *)from + communicator->rank * bytes, bytes);
	return 0;
}
