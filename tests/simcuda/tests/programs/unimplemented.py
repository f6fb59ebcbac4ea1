# expect: signal 6, cuFileBufRegister
"""What nobody has written must not pass for success."""

import torch

torch.cuda.gds.gds_register_buffer(torch.empty(1 << 20, dtype=torch.uint8, device="cuda").untyped_storage())
