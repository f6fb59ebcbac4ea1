// A C++ program without Python or PyTorch: memory of every kind from the driver, on two devices where
// there are two. Declares what it uses of the driver's interface by itself.
//
// usage: plain LEDGER
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" {
int cuInit(unsigned);
int cuDeviceGetCount(int *);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxPushCurrent_v2(void *);
int cuCtxPopCurrent_v2(void **);
int cuMemAlloc_v2(uint64_t *, size_t);
int cuMemFree_v2(uint64_t);
int cuMemAllocPitch_v2(uint64_t *, size_t *, size_t, size_t, unsigned);
int cuMemAllocManaged(uint64_t *, size_t, unsigned);
int cuMemHostAlloc(void **, size_t, unsigned);
int cuMemAllocAsync(uint64_t *, size_t, void *);
int cuMemFreeAsync(uint64_t, void *);
int cuDeviceGetDefaultMemPool(void **, int);
int cuMemPoolSetAttribute(void *, int, void *);
int simcuda_write_ledger(const char *);
}

namespace {

constexpr size_t MIB = 1 << 20;

void check(int code, const char *what)
{
	if (code != 0) {
		std::fprintf(stderr, "%s: %d\n", what, code);
		std::exit(1);
	}
}
#define CHECK(call) check(call, #call)

/// Grids of a simulation: some stay, some are for a step.
struct Solver {
	std::vector<uint64_t> grids;

	void allocate(size_t bytes)
	{
		uint64_t address = 0;
		CHECK(cuMemAlloc_v2(&address, bytes));
		grids.push_back(address);
	}
};

void solve(int device)
{
	Solver solver;
	uint64_t pitched = 0, managed = 0, step = 0, from_pool[2] = {};
	size_t pitch = 0;
	void *host = nullptr, *pool = nullptr;
	uint64_t threshold = UINT64_MAX;

	for (size_t grid = 1; grid <= 4; grid++)
		solver.allocate((device + 1) * grid * 2 * MIB);
	CHECK(cuMemAllocPitch_v2(&pitched, &pitch, 1000, 4096, 4));
	CHECK(cuMemAllocManaged(&managed, 8 * MIB, 1));
	CHECK(cuMemHostAlloc(&host, 3 * MIB, 0));
	CHECK(cuDeviceGetDefaultMemPool(&pool, device));
	CHECK(cuMemPoolSetAttribute(pool, 4, &threshold));
	for (uint64_t &address : from_pool)
		CHECK(cuMemAllocAsync(&address, 32 * MIB, nullptr));
	CHECK(cuMemFreeAsync(from_pool[1], nullptr));
	for (int i = 0; i < 10; i++) {
		CHECK(cuMemAlloc_v2(&step, 16 * MIB));
		CHECK(cuMemFree_v2(step));
	}
}

void wait()
{
	int letter;
	while ((letter = std::getchar()) != '\n' && letter != EOF) {
	}
}

} // namespace

int main(int, char **arguments)
{
	int devices = 0;

	std::printf("ready\n");
	std::fflush(stdout);
	wait();
	CHECK(cuInit(0));
	CHECK(cuDeviceGetCount(&devices));
	for (int device = 0; device < devices; device++) {
		void *context = nullptr;
		CHECK(cuDevicePrimaryCtxRetain(&context, device));
		CHECK(cuCtxPushCurrent_v2(context));
		solve(device);
		CHECK(cuCtxPopCurrent_v2(nullptr));
	}
	CHECK(simcuda_write_ledger(arguments[1]));
	std::printf("quiet\n");
	std::fflush(stdout);
	wait();
}
