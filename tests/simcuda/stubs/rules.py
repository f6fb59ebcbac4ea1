"""What an imported function that is not written by hand does when it is called.

The first rule whose pattern is found in the name counts.
"""

import re

CREATE = "create"
COMPUTE = "compute"
NOTHING = "nothing"
UNIMPLEMENTED = "unimplemented"

RULES = [
    # Constructors store a new opaque object through their first argument.
    (r"^(cudnn|cusolver|cusparse|cublas|cublasLt|nvrtc|curand)\w*Create(?!Identity)\w*$", CREATE),
    (r"^cusparse\w+_createDescr$", CREATE),
    # Destructors, and settings that nobody reads back.
    (r"(Destroy|_destroyDescr|Deregister)", NOTHING),
    (r"^(cublas|cublasLt|cudnn|cufft|curand|cusolver|cusparse)\w*Set[A-Z]", NOTHING),
    (r"^cusparse\w+SetPointers$", NOTHING),
    # Computation: the results are never written. Workspace sizes are results that the
    # host needs, so the functions that give them must be written.
    (r"(_bufferSize|_bufferSizeExt|WorkspaceSize)$", UNIMPLEMENTED),
    (r"^cublas([SDCZH]|Gemm|Dot|Axpy|Nrm2|Scal|Cs|Zd|I)\w*$", COMPUTE),
    (r"^cublasLtMatmul$", COMPUTE),
    (r"^cudnn\w*(Forward|Backward)\w*$", COMPUTE),
    (r"^cudnn(CTCLoss|BackendExecute|BackendFinalize|RestoreDropout)", COMPUTE),
    (r"^cufftXt?Exec", COMPUTE),
    (r"^curandGenerate", COMPUTE),
    (r"^cusolverDn[SDCZX][a-z]+(Batched|StridedBatched)?$", COMPUTE),
    (r"^cusolverDnXsyevBatched$", COMPUTE),
    (r"^cusparse([SDCZ][a-z]+mm|[SDCZ][a-z]+mv|SpMM|SpMV|SDDMM|SpSV_|SpSM_|SpGEMM_copy)\w*$", COMPUTE),
    (r"^cusparse([SDCZ]bsrs[mv]2_|Xcsrsort|Xcoosort|Xcoo2csr|CreateIdentity|Xbsrs[mv]2_zeroPivot)", COMPUTE),
    (r"^nccl(Send|Recv|AlltoAll|Gather)$", COMPUTE),
    # Annotation: there is nothing to report.
    (r"^nvtx", NOTHING),
    (r"^nvrtc(AddNameExpression|CompileProgram)$", NOTHING),
]


def behaviour(name):
    """The behaviour of `name`: CREATE, COMPUTE, NOTHING or UNIMPLEMENTED."""
    for pattern, result in RULES:
        if re.search(pattern, name):
            return result
    return UNIMPLEMENTED
