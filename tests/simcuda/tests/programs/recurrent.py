import torch
from support import check_driver_agrees
from torch import nn

ARGUMENTS = [{}, {"bidirectional": True}, {"bias": False}, {"num_layers": 3, "dropout": 0.1}]
for enabled in (True, False):
    with torch.backends.cudnn.flags(enabled=enabled):
        for kind in (nn.RNN, nn.LSTM, nn.GRU):
            for arguments in ARGUMENTS + ([{"proj_size": 8}] if kind is nn.LSTM else []):
                layer = kind(16, 32, batch_first=True, **arguments).cuda()
                optimizer = torch.optim.AdamW(layer.parameters())
                for _ in range(3):
                    output = layer(torch.randn(4, 10, 16, device="cuda"))[0]
                    width = arguments.get("proj_size", 32) * (2 if arguments.get("bidirectional") else 1)
                    assert output.shape == (4, 10, width), output.shape
                    optimizer.zero_grad()
                    output.sum().backward()
                    optimizer.step()
check_driver_agrees()

# The weights share one buffer, and moving them there has not changed them.
before = nn.LSTM(16, 32, num_layers=2)
expected = [parameter.clone() for parameter in before.parameters()]
after = before.cuda()
assert all(torch.equal(p.cpu(), e) for p, e in zip(after.parameters(), expected))
