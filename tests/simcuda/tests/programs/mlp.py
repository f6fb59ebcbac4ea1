import torch
from support import mlp, train

for options in ({}, {"foreach": False}, {"foreach": True}, {"fused": True}):
    model = mlp()
    train(model, torch.optim.AdamW(model.parameters(), **options))
    train(model, torch.optim.AdamW(model.parameters(), **options), dtype=torch.bfloat16)
    train(model, torch.optim.AdamW(model.parameters(), **options), dtype=torch.float16)
