import torch
from support import check_driver_agrees, mlp
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.randn(512, 64), torch.randint(0, 10, (512,)))
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=2, pin_memory=True)
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    steps = 0
    for _ in range(2):
        for inputs, target in loader:
            assert inputs.is_pinned() and target.is_pinned()
            on_device = inputs.to("cuda", non_blocking=True)
            assert torch.equal(on_device.cpu(), inputs), "a copy must arrive unchanged"
            optimizer.zero_grad()
            cross_entropy(model(on_device), target.to("cuda", non_blocking=True)).backward()
            optimizer.step()
            steps += 1
    assert steps == 32, steps
    check_driver_agrees()
