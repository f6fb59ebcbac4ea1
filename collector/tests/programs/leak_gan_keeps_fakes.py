import os
import torch
from torch import nn

DEV = os.environ.get("LEAKCASE_DEVICE", "cuda")
STEPS = int(os.environ.get("LEAKCASE_STEPS", "300"))
torch.manual_seed(0)

# Leak: two backwards a step; the generator's images are kept with their graph.
generator = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 256)).to(DEV)
critic = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1)).to(DEV)
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-4)
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-4)
gallery = []

for step in range(STEPS):
    noise = torch.randn(16, 32, device=DEV)
    real = torch.randn(16, 256, device=DEV)
    opt_c.zero_grad()
    loss_c = critic(generator(noise).detach()).mean() - critic(real).mean()
    loss_c.backward()
    opt_c.step()
    opt_g.zero_grad()
    loss_g = -critic(generator(noise)).mean()
    loss_g.backward()
    opt_g.step()
    gallery.append(generator(noise))
