# expect: signal 6, cudnnGetCTCLossWorkspaceSize
"""What nobody has written must not pass for success."""

import torch

scores = torch.zeros(10, 1, 5, device="cuda")
labels = torch.ones(3, dtype=torch.int32)
torch._cudnn_ctc_loss(scores, labels, [10], [3], blank=0, deterministic=True, zero_infinity=False)
