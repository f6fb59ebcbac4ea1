/* NCCL: a communicator knows its size and rank. Collectives copy what a rank has to
 * where its result belongs; nothing crosses between processes. */
#include "stub.h"

struct communicator {
	int size;
	int rank;
	int device;
	/* Its buffers. */
	size_t bytes;
	uint64_t memory, address;
};

struct unique_id {
	char bytes[128];
};

/* A function of the driver by way of cuGetProcAddress, as NCCL gets all of them. */
static void *driver_function(const char *name)
{
	typedef int look_up(const char *, void **, int, uint64_t, void *);
	void *function = NULL;

	((look_up *)cuda_function("cuGetProcAddress_v2"))(name, &function, 12000, 0, NULL);
	if (function == NULL)
		abort();
	return function;
}

/* CUmemAllocationProp and CUmemAccessDesc. */
struct properties {
	int type, handles;
	int location[2];
	void *meta;
	uint64_t flags;
};
struct access {
	int location[2];
	int flags;
};

/* A communicator takes its buffers as virtual memory, as NCCL does from 2.19 on. */
static void take_buffers(struct communicator *communicator)
{
	typedef int create(uint64_t *, size_t, const struct properties *, uint64_t);
	typedef int reserve(uint64_t *, size_t, size_t, uint64_t, uint64_t);
	typedef int map(uint64_t, size_t, size_t, uint64_t, uint64_t);
	typedef int set_access(uint64_t, size_t, const struct access *, size_t);
	struct properties properties = { .type = 1, .location = { 1, communicator->device } };
	struct access access = { .location = { 1, communicator->device }, .flags = 3 };
	size_t bytes = own_memory("SIMCUDA_NCCL_MEM");

	communicator->bytes = bytes;
	if (bytes == 0)
		return;
	if (((create *)driver_function("cuMemCreate"))(&communicator->memory, bytes, &properties, 0) ||
	    ((reserve *)driver_function("cuMemAddressReserve"))(&communicator->address, bytes, 0, 0, 0) ||
	    ((map *)driver_function("cuMemMap"))(communicator->address, bytes, 0, communicator->memory, 0) ||
	    ((set_access *)driver_function("cuMemSetAccess"))(communicator->address, bytes, &access, 1)) {
		fprintf(stderr, "simcuda: NCCL could not take %zu bytes\n", bytes);
		abort();
	}
}

static int new_communicator(struct communicator **result, int size, int rank, int device)
{
	struct communicator *communicator = new_object();

	communicator->size = size;
	communicator->rank = rank;
	communicator->device = device;
	if (device < 0)
		((int (*)(int *))cuda_function("cudaGetDevice"))(&communicator->device);
	take_buffers(communicator);
	*result = communicator;
	return 0;
}

static int drop_communicator(struct communicator *communicator)
{
	typedef int unmap(uint64_t, size_t);
	typedef int release(uint64_t);

	if (communicator->bytes != 0) {
		((unmap *)driver_function("cuMemUnmap"))(communicator->address, communicator->bytes);
		((release *)driver_function("cuMemRelease"))(communicator->memory);
		((unmap *)driver_function("cuMemAddressFree"))(communicator->address,
							       communicator->bytes);
	}
	free(communicator);
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
	return new_communicator(result, size, rank, -1);
}

EXPORT int ncclCommInitRankConfig(struct communicator **result, int size, struct unique_id id,
				  int rank, void *config)
{
	(void)id, (void)config;
	return new_communicator(result, size, rank, -1);
}

EXPORT int ncclCommInitRankScalable(struct communicator **result, int size, int rank, int ids,
				    void *id, void *config)
{
	(void)ids, (void)id, (void)config;
	return new_communicator(result, size, rank, -1);
}

EXPORT int ncclCommInitAll(struct communicator **results, int count, const int *devices)
{
	for (int i = 0; i < count; i++)
		new_communicator(&results[i], count, i, devices != NULL ? devices[i] : i);
	return 0;
}

EXPORT int ncclCommDestroy(struct communicator *communicator)
{
	return drop_communicator(communicator);
}

EXPORT int ncclCommAbort(struct communicator *communicator)
{
	return drop_communicator(communicator);
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

/* Nothing is mapped anywhere: a registration is only remembered by its caller. */
EXPORT int ncclCommRegister(void *communicator, void *buffer, size_t bytes, void **handle)
{
	(void)communicator, (void)bytes;
	*handle = buffer;
	return 0;
}

EXPORT int ncclCommDeregister(void *communicator, void *handle)
{
	(void)communicator, (void)handle;
	return 0;
}
