/* Stands in for PyTorch's libc10: the function that the tracers watch. Built as libc10.so, so that
 * they take it for the real one. */

__attribute__((noinline)) void
_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *pointer, long size, unsigned long allocated,
						      unsigned long reserved, unsigned device)
{
	__asm__ volatile("" : : "r"(pointer), "r"(size), "r"(allocated), "r"(reserved), "r"(device) : "memory");
}
