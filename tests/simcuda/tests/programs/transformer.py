import torch
from support import train
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

VOCABULARY, WIDTH, HEADS, LENGTH = 500, 64, 4, 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        rows, length, width = x.shape
        qkv = self.qkv(self.before(x)).view(rows, length, 3, HEADS, width // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(rows, length, width))
        return x + self.mlp(self.after(x))


def model():
    layers = [nn.Embedding(VOCABULARY, WIDTH), Block(), Block(), nn.Linear(WIDTH, VOCABULARY)]
    return nn.Sequential(*layers).cuda()


def batch():
    tokens = torch.randint(0, VOCABULARY, (4, LENGTH), device="cuda")
    return tokens, tokens


def loss(logits, target):
    return cross_entropy(logits.view(-1, VOCABULARY), target.view(-1))


def run(**autocast):
    network = model()
    train(network, torch.optim.AdamW(network.parameters()), batch, loss=loss, steps=8, **autocast)


run()
run(dtype=torch.bfloat16)
run(dtype=torch.float16)
with sdpa_kernel([SDPBackend.MATH]):
    run()
