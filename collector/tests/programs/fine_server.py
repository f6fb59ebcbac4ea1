import os
import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# No leak: an inference server without any backward remembers the last 32 answers.
import collections

model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 32)).to(DEV).eval()
answers = collections.OrderedDict()


@torch.no_grad()
def serve(request):
    x = torch.randn(1 + request % 7, 64, device=DEV)
    answers[request] = model(x).softmax(-1)
    if len(answers) > 32:
        answers.popitem(last=False)


for step in range(STEPS):
    serve(step)
