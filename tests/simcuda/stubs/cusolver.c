/* cuSOLVER: workspace queries. Nothing is solved. */
#include "stub.h"

/* Parameters differ from routine to routine; only the result matters. */
#define P __attribute__((unused)) const void *
#define I __attribute__((unused)) int
#define L __attribute__((unused)) long long
#define RESULT int *elements

#define QUERY(name, parameters)                                                            \
	EXPORT int name parameters                                                         \
	{                                                                                  \
		*elements = WORKSPACE_ELEMENTS;                                            \
		return 0;                                                                  \
	}
#define REAL(routine, parameters)                                                          \
	QUERY(cusolverDnS##routine##_bufferSize, parameters)                               \
	QUERY(cusolverDnD##routine##_bufferSize, parameters)
#define COMPLEX(routine, parameters)                                                       \
	QUERY(cusolverDnC##routine##_bufferSize, parameters)                               \
	QUERY(cusolverDnZ##routine##_bufferSize, parameters)
#define ALL(routine, parameters) REAL(routine, parameters) COMPLEX(routine, parameters)

ALL(potrf, (P h, I uplo, I n, P a, I lda, RESULT))
ALL(getrf, (P h, I m, I n, P a, I lda, RESULT))
ALL(geqrf, (P h, I m, I n, P a, I lda, RESULT))
ALL(sytrf, (P h, I n, P a, I lda, RESULT))
ALL(gesvd, (P h, I m, I n, RESULT))
REAL(orgqr, (P h, I m, I n, I k, P a, I lda, P tau, RESULT))
COMPLEX(ungqr, (P h, I m, I n, I k, P a, I lda, P tau, RESULT))
REAL(ormqr, (P h, I side, I op, I m, I n, I k, P a, I lda, P tau, P c, I ldc, RESULT))
COMPLEX(unmqr, (P h, I side, I op, I m, I n, I k, P a, I lda, P tau, P c, I ldc, RESULT))
REAL(syevd, (P h, I job, I uplo, I n, P a, I lda, P w, RESULT))
COMPLEX(heevd, (P h, I job, I uplo, I n, P a, I lda, P w, RESULT))
REAL(syevj, (P h, I job, I uplo, I n, P a, I lda, P w, RESULT, P info))
COMPLEX(heevj, (P h, I job, I uplo, I n, P a, I lda, P w, RESULT, P info))
REAL(syevjBatched, (P h, I job, I uplo, I n, P a, I lda, P w, RESULT, P info, I batch))
COMPLEX(heevjBatched, (P h, I job, I uplo, I n, P a, I lda, P w, RESULT, P info, I batch))
ALL(gesvdj, (P h, I job, I econ, I m, I n, P a, I lda, P s, P u, I ldu, P v, I ldv, RESULT, P info))
ALL(gesvdjBatched,
    (P h, I job, I m, I n, P a, I lda, P s, P u, I ldu, P v, I ldv, RESULT, P info, I batch))
ALL(gesvdaStridedBatched,
    (P h, I job, I rank, I m, I n, P a, I lda, L sa, P s, L ss, P u, I ldu, L su, P v, I ldv, L sv,
     RESULT, I batch))

/* The 64-bit interface: workspaces in bytes, on the device and on the host. */
#define RESULTS size_t *device_bytes, size_t *host_bytes

#define QUERY_64(routine, parameters)                                                      \
	EXPORT int cusolverDn##routine##_bufferSize parameters                             \
	{                                                                                  \
		*device_bytes = WORKSPACE_BYTES;                                           \
		*host_bytes = 0;                                                           \
		return 0;                                                                  \
	}

QUERY_64(Xpotrf, (P h, P params, I uplo, L n, I ta, P a, L lda, I compute, RESULTS))
QUERY_64(Xgeqrf, (P h, P params, L m, L n, I ta, P a, L lda, I tt, P tau, I compute, RESULTS))
QUERY_64(Xsyevd, (P h, P params, I job, I uplo, L n, I ta, P a, L lda, I tw, P w, I compute, RESULTS))
QUERY_64(XsyevBatched,
	 (P h, P params, I job, I uplo, L n, I ta, P a, L lda, I tw, P w, I compute, RESULTS, L batch))
QUERY_64(Xgeev, (P h, P params, I jl, I jr, L n, I ta, P a, L lda, I tw, P w, I tl, P vl, L ldvl, I tr,
		 P vr, L ldvr, I compute, RESULTS))
QUERY_64(Xsytrs, (P h, I uplo, L n, L nrhs, I ta, P a, L lda, P pivots, I tb, P b, L ldb, RESULTS))
