"""Two transformer blocks with fused attention and gradient clipping."""
import torch
from torch import nn

from common import steps


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


embed = nn.Embedding(500, 64).cuda()
blocks = nn.Sequential(Block(64, 4), Block(64, 4)).cuda()
head = nn.Linear(64, 500).cuda()
parameters = [*embed.parameters(), *blocks.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(parameters)
activations = []
for step in steps():
    tokens = torch.randint(0, 500, (4, 32), device="cuda")
    hidden = blocks(embed(tokens))
    loss = nn.functional.cross_entropy(head(hidden).view(-1, 500), tokens.view(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    if step % 7 == 0:
        activations.append(hidden)
