import torch
from support import batch, check_driver_agrees, mlp

model = mlp()
inputs = batch()[0]
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    model(inputs).sum().backward()
torch.cuda.current_stream().wait_stream(side)

graph = torch.cuda.CUDAGraph()
assert not torch.cuda.is_current_stream_capturing()
with torch.cuda.graph(graph):
    assert torch.cuda.is_current_stream_capturing()
    # A second stream takes part by waiting for the first, and is joined again.
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        assert torch.cuda.is_current_stream_capturing()
        other = inputs * 2
    torch.cuda.current_stream().wait_stream(side)
    output = model(inputs + other)
assert not torch.cuda.is_current_stream_capturing()
with torch.cuda.stream(side):
    assert not torch.cuda.is_current_stream_capturing()

# The graph's memory is a pool of its own and stays allocated while it replays.
pools = {tuple(segment["segment_pool_id"]) for segment in torch.cuda.memory_snapshot()}
assert (0, 0) in pools and len(pools) == 2, pools
before = torch.cuda.memory_allocated()
for _ in range(10):
    graph.replay()
torch.cuda.synchronize()
assert torch.cuda.memory_allocated() == before
check_driver_agrees()

callable_model = torch.cuda.make_graphed_callables(mlp(), (inputs.clone().requires_grad_(),))
for _ in range(3):
    callable_model(inputs.clone().requires_grad_()).sum().backward()
check_driver_agrees()
