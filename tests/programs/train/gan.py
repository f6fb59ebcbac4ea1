"""Two networks, two optimizers, two backward calls a step, one of them on a kept graph."""
import torch
from torch import nn

from common import steps

generator = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32)).cuda()
critic = nn.Sequential(nn.Linear(32, 64), nn.LeakyReLU(), nn.Linear(64, 1)).cuda()
for_generator = torch.optim.Adam(generator.parameters())
for_critic = torch.optim.Adam(critic.parameters())
samples = []
for step in steps():
    fake = generator(torch.randn(64, 16, device="cuda"))
    real = torch.randn(64, 32, device="cuda")
    for_critic.zero_grad()
    (critic(fake.detach()).mean() - critic(real).mean()).backward()
    for_critic.step()
    for_generator.zero_grad()
    loss = -critic(fake).mean()
    loss.backward(retain_graph=True)
    for_generator.step()
    if step % 4 == 0:
        samples.append(fake)
