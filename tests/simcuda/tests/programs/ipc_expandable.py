# environment: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC=1
"""What ipc.py does, of expandable segments: they are shared by file descriptors."""

import ipc

if __name__ == "__main__":
    ipc.main()
