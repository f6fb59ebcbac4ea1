"""Tensors that another process has through a queue: its bytes, and who pays for them."""

import gc
from queue import Empty

import torch
import torch.multiprocessing as mp
from support import check_driver_agrees, driver_bytes

MIB = 1 << 20
BYTES = 30 * MIB
SMALL = 1000


def pattern(size, factor):
    return (torch.arange(size) * factor % 251).byte()


def consume(queue, replies):
    big, small = queue.get()
    # What came is not this process's memory.
    assert torch.cuda.memory_allocated() == 0 and driver_bytes() == 0
    assert torch.equal(big.cpu(), pattern(BYTES, 1)), "the exporter's bytes"
    assert torch.equal(small.cpu(), pattern(SMALL, 3)), "also of a block among others"
    own = torch.zeros(5 * MIB, dtype=torch.uint8, device="cuda")
    own.copy_(big[: 5 * MIB])
    small.copy_(pattern(SMALL, 7).cuda())
    check_driver_agrees()
    replies.put(torch.cuda.memory_allocated())
    # What comes again costs nothing again.
    again = queue.get()
    assert torch.equal(again.cpu(), pattern(BYTES, 1)), "however often it comes"
    check_driver_agrees()
    del again
    replies.put("again")
    assert queue.get() == "drop"
    del big, small
    gc.collect()
    # Nobody has it any more; the mapping was closed.
    replies.put("dropped")
    assert queue.get() == "end"
    check_driver_agrees()
    assert own.numel() == 5 * MIB


def heard(replies, process):
    """The next reply, unless the other process has failed."""
    while process.is_alive() or not replies.empty():
        try:
            return replies.get(timeout=1)
        except Empty:
            continue
    raise SystemExit(f"the consumer ended: {process.exitcode}")


def main():
    context = mp.get_context("spawn")
    queue, replies = context.Queue(), context.Queue()
    process = context.Process(target=consume, args=(queue, replies))
    process.start()
    big = torch.empty(BYTES, dtype=torch.uint8, device="cuda")
    big.copy_(pattern(BYTES, 1))
    small = torch.empty(SMALL, dtype=torch.uint8, device="cuda")
    small.copy_(pattern(SMALL, 3))
    queue.put((big, small))
    assert heard(replies, process) == 5 * MIB
    assert torch.equal(small.cpu(), pattern(SMALL, 7)), "what the importer wrote"
    check_driver_agrees()
    queue.put(big)
    assert heard(replies, process) == "again"

    # What the producer drops stays until the consumer has dropped it too.
    before = torch.cuda.memory_allocated()
    del big
    gc.collect()
    assert torch.cuda.memory_allocated() == before, "the consumer still has it"
    queue.put("drop")
    assert heard(replies, process) == "dropped"
    torch.cuda.ipc_collect()
    assert torch.cuda.memory_allocated() == before - BYTES
    torch.cuda.empty_cache()
    check_driver_agrees()
    queue.put("end")
    process.join()
    assert process.exitcode == 0, process.exitcode


if __name__ == "__main__":
    main()
