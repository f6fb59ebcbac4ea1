"""Times training steps of a small MLP or of a 162M-parameter GPT.

usage: steps.py mlp|gpt
Reads commands from stdin: "measure STEPS" answers "result US" (microseconds a step), "recorder
python|all|off" switches PyTorch's own recorder (with Python stacks, or with C++ ones too) and answers "ok".
"""
import sys
import time

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(x)


class Gpt(nn.Module):
    def __init__(self, words=50257, width=768, layers=12, heads=12):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.embed(tokens))))


if sys.argv[1] == "mlp":
    model = nn.Sequential(nn.Linear(64, 256), nn.LayerNorm(256), nn.GELU(), nn.Linear(256, 256), nn.ReLU(),
                          nn.Linear(256, 10)).cuda()

    def loss_of_a_batch():
        x = torch.randn(128, 64, device="cuda")
        y = torch.randint(0, 10, (128,), device="cuda")
        return nn.functional.cross_entropy(model(x), y)
else:
    with torch.device("cuda"):
        model = Gpt()

    def loss_of_a_batch():
        tokens = torch.randint(0, 50257, (8, 512), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(tokens)
            return nn.functional.cross_entropy(logits.view(-1, 50257), tokens.view(-1))


optimizer = torch.optim.AdamW(model.parameters())


def train(steps):
    for _ in range(steps):
        loss = loss_of_a_batch()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train(5)
print("ready", sum(p.numel() for p in model.parameters()) // 1_000_000, flush=True)
for line in sys.stdin:
    command, argument = line.split()
    if command == "recorder":
        if argument != "off":
            torch.cuda.memory._record_memory_history(
                enabled="all", context="all", stacks=argument, max_entries=100_000
            )
        else:
            torch.cuda.memory._record_memory_history(enabled=None)
        print("ok", flush=True)
    else:
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        train(int(argument))
        torch.cuda.synchronize()
        print(f"result {(time.perf_counter_ns() - start) / int(argument) / 1000:.1f}", flush=True)
