/* The loops that minga is measured against, as one writes them in C: rows, restrict, nothing clever.

   Compiled at measuring time by gcc -O3 -march=native -ffp-contract=off, so that gcc keeps to the operations that are
   written, as minga does, and results can be compared bit for bit. Every function has the signature
   void f(const int64_t *w): w holds pointers and numbers, as a minga kernel's arguments do. Pointers are those of the
   cell with index (0, ..., 0); strides are in elements. */

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef int64_t word;
typedef void (*peer)(const word *);
typedef void (*kernel)(word *, word, word *);

/* Calls without Python between them, of several argument lists in turn: the slots of a field change places. */
void repeat_peer(peer f, const word *const *w, long lists, long times) {
    for (long n = 0; n < times; n++) f(w[n % lists]);
}

void repeat_kernel(kernel f, word *const *args, long lists, long tiles, word *worker, long times) {
    for (long n = 0; n < times; n++)
        for (long tile = 0; tile < tiles; tile++) f(args[n % lists], tile, worker);
}

/* w = to, from, bytes */
void peer_memcpy(const word *w) { memcpy((void *)w[0], (const void *)w[1], (size_t)w[2]); }

/* w = u, new, rows, columns, stride. The copy has the reads and stores that any stencil must have (-fno-tree-loop-
   distribute-patterns keeps gcc from making it a memcpy, whose stores pass by the caches). */
#define ROWS(name, T, VALUE)                                                                                           \
    void name(const word *w) {                                                                                         \
        const T *restrict u = (const T *)w[0];                                                                         \
        T *restrict new = (T *)w[1];                                                                                   \
        const long rows = w[2], columns = w[3], s = w[4];                                                              \
        for (long y = 0; y < rows; y++) {                                                                              \
            const T *restrict c = u + y * s;                                                                           \
            T *restrict o = new + y * s;                                                                               \
            for (long x = 0; x < columns; x++) o[x] = VALUE;                                                           \
        }                                                                                                              \
    }

ROWS(copy_u1, uint8_t, c[x])
ROWS(copy_f4, float, c[x])
ROWS(copy_f8, double, c[x])
ROWS(jacobi_f4, float, 0.25f * (c[x - s] + c[x + s] + c[x - 1] + c[x + 1]))
ROWS(jacobi_f8, double, 0.25 * (c[x - s] + c[x + s] + c[x - 1] + c[x + 1]))

/* Eight bytes that are 0 or 1 have a sum that fits a byte. */
static inline uint8_t born_or_stays(const uint8_t *c, long s) {
    const uint8_t n = (uint8_t)(c[-s - 1] + c[-s] + c[-s + 1] + c[-1] + c[1] + c[s - 1] + c[s] + c[s + 1]);
    return (uint8_t)((n == 3) | ((n == 2) & c[0]));
}
ROWS(life_u1, uint8_t, born_or_stays(c + x, s))

/* w = u, new, cells */
#define MAP(name, T, VALUE)                                                                                            \
    void name(const word *w) {                                                                                         \
        const T *restrict u = (const T *)w[0];                                                                         \
        T *restrict new = (T *)w[1];                                                                                   \
        for (long x = 0; x < w[2]; x++) new[x] = VALUE;                                                                \
    }
MAP(exp_f8, double, exp(u[x]))
MAP(exp_f4, float, expf(u[x]))
MAP(log_f8, double, log(u[x]))
MAP(log_f4, float, logf(u[x]))

/* The Fletcher model: pseudo-acoustic waves in a tilted transversely isotropic medium, eighth order in space
   (Fletcher, Du & Fowler 2009, Geophysics 74(6)). x is the innermost axis; all arrays have the same strides. */
#define A1 (4.0 / 5.0)
#define A2 (-1.0 / 5.0)
#define A3 (4.0 / 105.0)
#define A4 (-1.0 / 280.0)
#define B0 (-205.0 / 72.0)
#define B1 (8.0 / 5.0)
#define B2 (-1.0 / 5.0)
#define B3 (8.0 / 315.0)
#define B4 (-1.0 / 560.0)

#define ODD(u, s, k) ((u)[(k) * (s)] - (u)[-(k) * (s)])
#define EVEN(u, s, k) ((u)[(k) * (s)] + (u)[-(k) * (s)])
#define FIRST(u, s) \
    ((float)A1 * ODD(u, s, 1) + (float)A2 * ODD(u, s, 2) + (float)A3 * ODD(u, s, 3) + (float)A4 * ODD(u, s, 4))
#define SECOND(u, s)                                                                                                   \
    ((float)B0 * (u)[0] + (float)B1 * EVEN(u, s, 1) + (float)B2 * EVEN(u, s, 2) + (float)B3 * EVEN(u, s, 3) +          \
     (float)B4 * EVEN(u, s, 4))

/* The full product of two first derivatives: 64 points. */
#define CORNERS(u, s, t, k, l)                                                                                         \
    (u)[(k) * (s) + (l) * (t)] - (u)[(k) * (s) - (l) * (t)] - (u)[-(k) * (s) + (l) * (t)] + (u)[-(k) * (s) - (l) * (t)]
#define BOTH(u, s, t, k, l)                                                                                            \
    CORNERS(u, s, t, k, l) + (u)[(l) * (s) + (k) * (t)] - (u)[(l) * (s) - (k) * (t)] - (u)[-(l) * (s) + (k) * (t)] +   \
        (u)[-(l) * (s) - (k) * (t)]
#define CROSS(u, s, t)                                                                                                 \
    ((float)(A1 * A1) * (CORNERS(u, s, t, 1, 1)) + (float)(A1 * A2) * (BOTH(u, s, t, 1, 2)) +                          \
     (float)(A1 * A3) * (BOTH(u, s, t, 1, 3)) + (float)(A1 * A4) * (BOTH(u, s, t, 1, 4)) +                             \
     (float)(A2 * A2) * (CORNERS(u, s, t, 2, 2)) + (float)(A2 * A3) * (BOTH(u, s, t, 2, 3)) +                          \
     (float)(A2 * A4) * (BOTH(u, s, t, 2, 4)) + (float)(A3 * A3) * (CORNERS(u, s, t, 3, 3)) +                          \
     (float)(A3 * A4) * (BOTH(u, s, t, 3, 4)) + (float)(A4 * A4) * (CORNERS(u, s, t, 4, 4)))

/* w = nz, ny, nx, stride of z, stride of y, 14 arrays (p q old_p old_q, cxx cyy czz cxy cyz cxz, vpx2 vpz2 vsz2 vpn2),
   the address of two floats (1/h2, dt). */
void tti_full(const word *w) {
    const long nz = w[0], ny = w[1], nx = w[2], sz = w[3], sy = w[4];
    const float inverse = ((const float *)w[19])[0], dt = ((const float *)w[19])[1];
    for (long z = 0; z < nz; z++)
        for (long y = 0; y < ny; y++) {
            const long row = z * sz + y * sy;
            const float *restrict p = (const float *)w[5] + row, *restrict q = (const float *)w[6] + row;
            float *restrict op = (float *)w[7] + row, *restrict oq = (float *)w[8] + row;
            const float *restrict cxx = (const float *)w[9] + row, *restrict cyy = (const float *)w[10] + row;
            const float *restrict czz = (const float *)w[11] + row, *restrict cxy = (const float *)w[12] + row;
            const float *restrict cyz = (const float *)w[13] + row, *restrict cxz = (const float *)w[14] + row;
            const float *restrict vpx2 = (const float *)w[15] + row, *restrict vpz2 = (const float *)w[16] + row;
            const float *restrict vsz2 = (const float *)w[17] + row, *restrict vpn2 = (const float *)w[18] + row;
#pragma GCC ivdep
            for (long x = 0; x < nx; x++) {
#define TILTED(u, h1, h2)                                                                                              \
    const float u##xx = SECOND(u + x, 1) * inverse, u##yy = SECOND(u + x, sy) * inverse;                               \
    const float u##zz = SECOND(u + x, sz) * inverse, u##xy = CROSS(u + x, 1, sy) * inverse;                            \
    const float u##yz = CROSS(u + x, sy, sz) * inverse, u##xz = CROSS(u + x, 1, sz) * inverse;                         \
    const float h1 = cxx[x] * u##xx + cyy[x] * u##yy + czz[x] * u##zz + cxy[x] * u##xy + cyz[x] * u##yz +              \
                     cxz[x] * u##xz;                                                                                   \
    const float h2 = u##xx + u##yy + u##zz - h1;
                TILTED(p, h1p, h2p)
                TILTED(q, h1q, h2q)
                const float rp = vpx2[x] * h2p + vpz2[x] * h1q + vsz2[x] * (h1p - h1q);
                const float rq = vpn2[x] * h2p + vpz2[x] * h1q - vsz2[x] * (h2p - h2q);
                op[x] = 2.0f * p[x] - op[x] + dt * dt * rp;
                oq[x] = 2.0f * q[x] - oq[x] + dt * dt * rq;
            }
        }
}

/* The same with mixed derivatives as first derivatives of first derivatives, which are kept in a ring of nine planes
   of `rows` rows while a tile is marched through along z. Grid spacing and time step are in the velocities.
   w = as above, but `rows` and the address of four rings instead of the floats. */
#define RING 9
#define MARGIN 4

struct ring {
    float *base;
    long row, plane;
};

/* Cells of a ring's row: room for the margins, and an odd number of cache lines. */
static inline long ring_length(long nx) { return ((nx + 2 * 16 + 15) / 16 * 16) | 16; }

static inline float *ring_row(const struct ring *r, long z, long y) {
    return r->base + ((z + 2 * RING) % RING) * r->plane + y * r->row + 16;
}

#define PLANES(r, y)                                                                                                   \
    const float *restrict r##m4 = ring_row(&r, z - 4, y), *restrict r##m3 = ring_row(&r, z - 3, y);                    \
    const float *restrict r##m2 = ring_row(&r, z - 2, y), *restrict r##m1 = ring_row(&r, z - 1, y);                    \
    const float *restrict r##p1 = ring_row(&r, z + 1, y), *restrict r##p2 = ring_row(&r, z + 2, y);                    \
    const float *restrict r##p3 = ring_row(&r, z + 3, y), *restrict r##p4 = ring_row(&r, z + 4, y);
#define DOWN(r)                                                                                                        \
    ((float)A1 * (r##p1[x] - r##m1[x]) + (float)A2 * (r##p2[x] - r##m2[x]) + (float)A3 * (r##p3[x] - r##m3[x]) +       \
     (float)A4 * (r##p4[x] - r##m4[x]))
#define MIXED(u, X, Y, h1, h2)                                                                                         \
    const float u##xx = SECOND(u + x, 1), u##yy = SECOND(u + x, sy), u##zz = SECOND(u + x, sz);                        \
    const float u##xy = FIRST(Y##here + x, 1), u##yz = DOWN(Y), u##xz = DOWN(X);                                       \
    const float h1 = CXX * u##xx + CYY * u##yy + CZZ * u##zz + CXY * u##xy + CYZ * u##yz + CXZ * u##xz;                \
    const float h2 = u##xx + u##yy + u##zz - h1;

#define FACTORISED(name, POINTERS, COEFFICIENTS)                                                                       \
    void name(const word *w) {                                                                                         \
        const long nz = w[0], ny = w[1], nx = w[2], sz = w[3], sy = w[4], rows = w[19];                                \
        const long length = ring_length(nx), plane = rows * length;                                                        \
        float *const scratch = (float *)w[20];                                                                         \
        const struct ring px = {scratch, length, plane}, py = {scratch + RING * plane, length, plane};                 \
        const struct ring qx = {scratch + 2 * RING * plane, length, plane};                                            \
        const struct ring qy = {scratch + 3 * RING * plane, length, plane};                                            \
        for (long from = 0; from < ny; from += rows) {                                                                 \
            const long to = from + rows < ny ? from + rows : ny;                                                       \
            for (long z = -2 * MARGIN; z < nz; z++) {                                                                  \
                for (long y = from; y < to; y++) {                                                                     \
                    const float *restrict p = (const float *)w[5] + (z + MARGIN) * sz + y * sy;                        \
                    const float *restrict q = (const float *)w[6] + (z + MARGIN) * sz + y * sy;                        \
                    float *restrict a = ring_row(&px, z + MARGIN, y - from);                                           \
                    float *restrict b = ring_row(&py, z + MARGIN, y - from);                                           \
                    float *restrict c = ring_row(&qx, z + MARGIN, y - from);                                           \
                    float *restrict d = ring_row(&qy, z + MARGIN, y - from);                                           \
                    for (long x = 0; x < nx; x++) a[x] = FIRST(p + x, 1);                                              \
                    for (long x = -MARGIN; x < nx + MARGIN; x++) b[x] = FIRST(p + x, sy);                              \
                    for (long x = 0; x < nx; x++) c[x] = FIRST(q + x, 1);                                              \
                    for (long x = -MARGIN; x < nx + MARGIN; x++) d[x] = FIRST(q + x, sy);                              \
                }                                                                                                      \
                if (z < 0) continue;                                                                                   \
                for (long y = from; y < to; y++) {                                                                     \
                    const long row = z * sz + y * sy;                                                                  \
                    const float *restrict p = (const float *)w[5] + row, *restrict q = (const float *)w[6] + row;      \
                    float *restrict op = (float *)w[7] + row, *restrict oq = (float *)w[8] + row;                      \
                    POINTERS                                                                                           \
                    const float *restrict pyhere = ring_row(&py, z, y - from);                                         \
                    const float *restrict qyhere = ring_row(&qy, z, y - from);                                         \
                    PLANES(px, y - from)                                                                               \
                    PLANES(py, y - from)                                                                               \
                    PLANES(qx, y - from)                                                                               \
                    PLANES(qy, y - from)                                                                               \
                    _Pragma("GCC ivdep") for (long x = 0; x < nx; x++) {                                               \
                        COEFFICIENTS                                                                                   \
                        MIXED(p, px, py, h1p, h2p)                                                                     \
                        MIXED(q, qx, qy, h1q, h2q)                                                                     \
                        const float rp = VPX2 * h2p + VPZ2 * h1q + VSZ2 * (h1p - h1q);                                 \
                        const float rq = VPN2 * h2p + VPZ2 * h1q - VSZ2 * (h2p - h2q);                                 \
                        op[x] = 2.0f * p[x] - op[x] + rp;                                                              \
                        oq[x] = 2.0f * q[x] - oq[x] + rq;                                                              \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

#define ROW(name, number) const float *restrict name = (const float *)w[number] + row;
#define TEN_POINTERS                                                                                                   \
    ROW(cxx, 9) ROW(cyy, 10) ROW(czz, 11) ROW(cxy, 12) ROW(cyz, 13) ROW(cxz, 14) ROW(vpx2, 15) ROW(vpz2, 16)           \
    ROW(vsz2, 17) ROW(vpn2, 18)
#define TEN_VALUES                                                                                                     \
    const float CXX = cxx[x], CYY = cyy[x], CZZ = czz[x], CXY = cxy[x], CYZ = cyz[x], CXZ = cxz[x];                    \
    const float VPX2 = vpx2[x], VPZ2 = vpz2[x], VSZ2 = vsz2[x], VPN2 = vpn2[x];

/* Six arrays: the axis' unit vector, vpz2, epsilon and delta (sigma = 3/4). */
#define SIX_POINTERS ROW(ax, 9) ROW(ay, 10) ROW(az, 11) ROW(vpz2, 12) ROW(epsilon, 13) ROW(delta, 14)
#define SIX_VALUES                                                                                                     \
    const float CXX = ax[x] * ax[x], CYY = ay[x] * ay[x], CZZ = az[x] * az[x], CXY = 2.0f * ax[x] * ay[x];             \
    const float CYZ = 2.0f * ay[x] * az[x], CXZ = 2.0f * ax[x] * az[x], VPZ2 = vpz2[x];                                \
    const float VPX2 = VPZ2 * (1.0f + 2.0f * epsilon[x]), VPN2 = VPZ2 * (1.0f + 2.0f * delta[x]);                      \
    const float VSZ2 = VPZ2 * fabsf(epsilon[x] - delta[x]) * (float)(4.0 / 3.0);

FACTORISED(tti_ten, TEN_POINTERS, TEN_VALUES)
FACTORISED(tti_six, SIX_POINTERS, SIX_VALUES)
