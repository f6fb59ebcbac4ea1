import os
import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# Leak: an inference server without any backward remembers every answer by its request.
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 32)).to(DEV).eval()
answers = {}


@torch.no_grad()
def serve(request):
    x = torch.randn(1 + request % 7, 64, device=DEV)
    y = model(x).softmax(-1)
    answers[request] = y
    return int(y.shape[0])


for step in range(STEPS):
    serve(step)
