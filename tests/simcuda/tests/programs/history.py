import torch
from support import batch, check_driver_agrees, mlp
from torch.nn.functional import cross_entropy
from torch.profiler import ProfilerActivity, profile

torch.cuda.memory._record_memory_history(max_entries=100000)
model = mlp()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(5):
    inputs, target = batch()
    optimizer.zero_grad()
    cross_entropy(model(inputs), target).backward()
    optimizer.step()
snapshot = torch.cuda.memory._snapshot()
blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
live = sum(block["size"] for block in blocks if block["state"] == "active_allocated")
assert live == torch.cuda.memory_allocated()
assert sum(segment["total_size"] for segment in snapshot["segments"]) == torch.cuda.memory_reserved()
actions = [entry["action"] for entry in snapshot["device_traces"][0]]
assert actions.count("alloc") > 100 and "segment_alloc" in actions
assert any("history.py" in frame["filename"] for e in snapshot["device_traces"][0] for frame in e["frames"])
torch.cuda.memory._record_memory_history(enabled=None)

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True) as result:
    product = torch.randn(1000, 1000, device="cuda") @ torch.randn(1000, 1000, device="cuda")
usage = {event.key: event.device_memory_usage for event in result.key_averages()}
assert usage["aten::mm"] == product.numel() * 4 + -product.numel() * 4 % 512, usage
check_driver_agrees()
